//! What is said of a worker's flow and of who is told: the second half of its settings.

use super::{Adaptive, Alert, Monitor, Worker};
use std::{sync::Arc, time::Duration};

impl Worker {
    /// Lets concurrency follow what the downstream bears, between `adaptive.min` and [`Worker::concurrency`].
    ///
    /// It begins with a few, rises by one for each round of good ends, and falls by a third on errors that may pass, on
    /// timeouts, and on runs longer than `adaptive.latency_max`.
    pub fn adaptive(mut self, adaptive: Adaptive) -> Self {
        self.options.adaptive = Some(adaptive);
        self
    }

    /// Is told of everything that a person should look at, besides the log: [`Alert`].
    pub fn on_alert(mut self, tell: impl Fn(&Alert) + Send + Sync + 'static) -> Self {
        self.hears.on_alert = Some(Arc::new(tell));
        self
    }

    /// A message that waits longer than this is an alert; [`super::ALERT_AGE_DEFAULT`] where nothing is said.
    pub fn alert_age(mut self, longest: Duration) -> Self {
        self.options.alert_age = longest;
        self
    }

    /// A view into the worker while it runs: capacity, utilisation, where its time goes, lag, and the signal for an
    /// autoscaler.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }
}
