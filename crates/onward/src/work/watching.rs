//! Watching over a worker's inlets while it runs: numbers, trends and alerts.

use super::{
    alerts::{ALERT_AGAIN, Alert, Look, Room, judge},
    attempt::Shared,
    breaker::Breaker,
    lag::{Lag, Trend},
    meters,
    settle::answered,
};
use crate::gather::sweep;
use onward_core::{AtomicScope, Cursor, Inlet, InletConfig, Result, Stats};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A worker looks at its inlets this often.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Every so many looks all inlets are looked at, also those that have no worker here.
const LOOK_AT_ALL: u64 = 12;

/// Is told what a person should look at.
pub(crate) type OnAlert = Arc<dyn Fn(&Alert) + Send + Sync>;

/// Tells alerts: in the log, as a metric, and to whoever asked; what lasts once in [`ALERT_AGAIN`].
#[derive(Default)]
pub(crate) struct Alerts {
    on_alert: Option<OnAlert>,
    /// Somebody besides the log is told.
    heard: bool,
    told: Mutex<BTreeMap<(&'static str, String), Duration>>,
}

impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alerts")
    }
}

impl Alerts {
    pub(crate) fn new(on_alert: Option<OnAlert>, heard: bool) -> Self {
        Self { on_alert, heard, told: Mutex::default() }
    }

    /// Tells it, unless it was told not long ago.
    fn tell(&self, alert: &Alert, now: Duration) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // What is over long ago takes no place.
        told.retain(|_, at| now < *at + ALERT_AGAIN);
        if told.contains_key(&alert.key()) {
            return;
        }
        told.insert(alert.key(), now);
        drop(told);
        tracing::warn!(kind = alert.key().0, "{alert}");
        self.pass_on(alert);
    }

    /// To whoever asked, and to the metrics.
    pub(crate) fn pass_on(&self, alert: &Alert) {
        meters::alerted(alert.key().0);
        if let Some(tell) = &self.on_alert {
            tell(alert);
        }
    }
}

/// What is kept between looks.
pub(crate) struct Watch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: Arc<str>,
    pub(crate) mine: BTreeSet<Inlet>,
    pub(crate) breakers: Vec<Breaker>,
    pub(crate) age_max: Duration,
    pub(crate) trends: BTreeMap<Inlet, Trend>,
    pub(crate) configs: BTreeMap<Inlet, InletConfig>,
    /// Where the next sweep of gathers begins.
    pub(crate) swept: Option<Cursor>,
}

impl Watch {
    /// Looks for ever.
    pub(crate) async fn run(mut self) {
        let env = self.shared.onward.env().clone();
        for looks in 0_u64.. {
            let all = looks % LOOK_AT_ALL == 0;
            if let Err(error) = self.look(all).await {
                tracing::debug!(%error, "could not look at the inlets; looking again");
            }
            if all {
                self.sweep().await;
            }
            if looks == LOOK_AT_ALL && !self.shared.alerts.heard {
                tracing::warn!(
                    "nobody but this log is told of dead letters, lag and missing workers: give the worker `on_alert(..)`"
                );
            }
            env.sleep(LOOK_EVERY).await;
        }
    }

    /// Counts parts of gathers that ended without their handler.
    async fn sweep(&mut self) {
        let onward = &self.shared.onward;
        if onward.engine().capabilities().atomic != AtomicScope::Store {
            return;
        }
        match sweep(onward, self.swept.take()).await {
            Ok(next) => self.swept = next,
            Err(error) => tracing::debug!(%error, "could not look at the gathers; looking again"),
        }
    }

    async fn look(&mut self, all: bool) -> Result<()> {
        let onward = self.shared.onward.clone();
        let (engine, env) = (onward.engine(), onward.env());
        if all {
            let topology = answered(&onward, "asking what exists", engine.topology()).await?;
            self.configs = topology.inlets.into_iter().collect();
            self.trends.retain(|inlet, _| self.configs.contains_key(inlet));
        }
        let asked = if all { Vec::new() } else { self.mine.iter().cloned().collect() };
        let stats = answered(&onward, "asking for numbers", engine.stats(asked)).await?;
        let (now, mut lags) = (env.monotonic(), Vec::new());
        for stats in &stats {
            let lag = self.judge(stats, now);
            if self.mine.contains(&stats.inlet) {
                meters::looked(&lag);
                lags.push(lag);
            }
        }
        let (running, capacity) = self.shared.monitor.looked(lags);
        meters::worker(&self.name, running, capacity);
        for breaker in self.breakers.iter().filter(|breaker| breaker.is_open()) {
            self.shared.alerts.tell(&Alert::BreakerOpen(breaker.name().into()), now);
        }
        Ok(())
    }

    fn judge(&mut self, stats: &Stats, now: Duration) -> Lag {
        let wall = self.shared.onward.env().now();
        let age = stats.oldest_waiting.map_or(Duration::ZERO, |since| wall.since(since));
        let trend = self.trends.entry(stats.inlet.clone()).or_default();
        trend.push(now, stats);
        let lag = trend.lag(stats, age);
        let room = || if self.shared.monitor.has_room() { Room::Free } else { Room::None };
        let mine = self.mine.contains(&stats.inlet).then(room);
        let default = InletConfig::default();
        let config = self.configs.get(&stats.inlet).unwrap_or(&default);
        let look = Look { stats, config, trend, lag: &lag, mine, age_max: self.age_max };
        judge(&look).iter().for_each(|alert| self.shared.alerts.tell(alert, now));
        lag
    }
}
