//! The engine's clock: the wall clock at the opening, moved on by the monotonic one.

use onward_core::{Env, Timestamp};
use std::{sync::Arc, time::Duration};

/// A clock that wall-clock jumps do not touch, and that never stands before what the log has seen.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    env: Arc<dyn Env>,
    anchor: Timestamp,
    started: Duration,
}

impl Clock {
    pub(crate) fn new(env: Arc<dyn Env>, last: Timestamp) -> Self {
        let (anchor, started) = (env.now().max(last), env.monotonic());
        Self { env, anchor, started }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.anchor.plus(self.env.monotonic().saturating_sub(self.started))
    }

    /// This clock less the wall clock, in microseconds.
    pub(crate) fn skew_us(&self) -> i64 {
        self.now().as_micros().saturating_sub(self.env.now().as_micros())
    }
}
