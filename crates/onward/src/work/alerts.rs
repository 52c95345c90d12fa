//! What a worker alerts to, by callback and in the log, without being asked.

use super::{
    DeadAlarm,
    lag::{Lag, Trend},
};
use onward_core::{Inlet, InletConfig, OrderPolicy, Stats, StuckHead};
use std::{fmt, sync::Arc, time::Duration};

/// What lasts is told again after so long.
pub const ALERT_AGAIN: Duration = Duration::from_secs(300);
/// A message that waits longer is an alert, where nothing else is said.
pub const ALERT_AGE_DEFAULT: Duration = Duration::from_secs(300);
/// While work waits, a worker or queue is reported when nothing was taken for so long.
pub const ALERT_IDLE: Duration = Duration::from_secs(30);

/// Something that a person should look at. It says what to do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Alert {
    /// There are new dead letters.
    Dead(DeadAlarm),
    /// Its dead letters are full: it hands out nothing until some are redriven or purged. Nothing is dropped.
    DeadFull(Inlet),
    /// More waits from look to look.
    Growing(Lag),
    /// The oldest message waits longer than it should.
    Old(Lag),
    /// Work waits and nobody takes it.
    NoWorker {
        /// Where.
        inlet: Inlet,
        /// How much waits.
        waiting: u64,
        /// For how long nothing was taken.
        idle: Duration,
    },
    /// This worker lives and has room, work waits, and it is given none.
    TakesNothing {
        /// Where.
        inlet: Inlet,
        /// How much waits.
        waiting: u64,
        /// For how long nothing was taken.
        idle: Duration,
    },
    /// Messages wait behind a dead one of their order key.
    KeyStuck {
        /// Where.
        inlet: Inlet,
        /// How many.
        blocked: u64,
    },
    /// A dependency is down: nothing is taken for it.
    BreakerOpen(Arc<str>),
}

impl Alert {
    /// What it is about and of what kind, so that it is told once and not at each look.
    pub(crate) fn key(&self) -> (&'static str, String) {
        match self {
            Self::Dead(alarm) => ("dead", alarm.inlet.to_string()),
            Self::DeadFull(inlet) => ("dead full", inlet.to_string()),
            Self::Growing(lag) => ("growing", lag.inlet.to_string()),
            Self::Old(lag) => ("old", lag.inlet.to_string()),
            Self::NoWorker { inlet, .. } => ("no worker", inlet.to_string()),
            Self::TakesNothing { inlet, .. } => ("takes nothing", inlet.to_string()),
            Self::KeyStuck { inlet, .. } => ("key stuck", inlet.to_string()),
            Self::BreakerOpen(name) => ("breaker open", name.to_string()),
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dead(a) => {
                write!(f, "{}: {} dead letters, {} new: mend the cause, redrive them", a.inlet, a.dead, a.new)
            }
            Self::DeadFull(inlet) => write!(
                f,
                "{inlet}: its dead letters are full and it hands out nothing: redrive or purge some"
            ),
            Self::Growing(lag) => {
                write!(
                    f,
                    "{}: {} wait, {:.1} more each second: add workers, or slow producers down",
                    lag.inlet, lag.depth, lag.growth
                )
            }
            Self::Old(lag) => {
                write!(f, "{}: the oldest of {} waits for {:?}: add workers", lag.inlet, lag.depth, lag.age)
            }
            Self::NoWorker { inlet, waiting, idle } => {
                write!(f, "{inlet}: {waiting} wait, and nobody took one for {idle:?}: start a worker")
            }
            Self::TakesNothing { inlet, waiting, idle } => {
                write!(
                    f,
                    "{inlet}: {waiting} wait and this worker has room, but was given none for {idle:?}: look at limits, rates and types"
                )
            }
            Self::KeyStuck { inlet, blocked } => {
                write!(
                    f,
                    "{inlet}: {blocked} wait behind a dead letter of their order key: redrive or purge it"
                )
            }
            Self::BreakerOpen(name) => {
                write!(f, "`{name}` is down: nothing is taken for it until it answers again")
            }
        }
    }
}

/// One inlet as it is looked at.
pub(crate) struct Look<'a> {
    pub(crate) stats: &'a Stats,
    pub(crate) config: &'a InletConfig,
    pub(crate) trend: &'a Trend,
    pub(crate) lag: &'a Lag,
    /// This worker has handlers for it; and room to take more, where it has.
    pub(crate) mine: Option<Room>,
    pub(crate) age_max: Duration,
}

/// Whether a worker could take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    None,
}

/// What is to be alerted to in an inlet. Pure.
pub(crate) fn judge(look: &Look<'_>) -> Vec<Alert> {
    let (stats, lag) = (look.stats, look.lag);
    let inlet = stats.inlet.clone();
    let mut alerts = Vec::new();
    if stats.stopped_dead_full {
        alerts.push(Alert::DeadFull(inlet.clone()));
    }
    let waits_for_key = matches!(look.config.order, OrderPolicy::ByKey { stuck_head: StuckHead::Wait });
    if waits_for_key && stats.blocked > 0 && stats.books.dead > 0 {
        alerts.push(Alert::KeyStuck { inlet: inlet.clone(), blocked: stats.blocked });
    }
    // Whoever pauses a queue wants it to wait; a full one was told of already.
    if stats.paused || stats.stopped_dead_full {
        return alerts;
    }
    if look.trend.grows() {
        alerts.push(Alert::Growing(lag.clone()));
    }
    if lag.age > look.age_max {
        alerts.push(Alert::Old(lag.clone()));
    }
    let (waiting, idle) = (stats.books.waiting.saturating_sub(stats.blocked), look.trend.idle());
    let limited = look.config.concurrency_max.is_some_and(|most| stats.books.leased >= u64::from(most));
    if waiting > 0 && idle >= ALERT_IDLE && !limited {
        match look.mine {
            Some(Room::Free) => alerts.push(Alert::TakesNothing { inlet, waiting, idle }),
            None if stats.books.leased == 0 => alerts.push(Alert::NoWorker { inlet, waiting, idle }),
            Some(Room::None) | None => {}
        }
    }
    alerts
}
