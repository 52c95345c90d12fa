//! Metrics of a worker through the `metrics` facade. Install the recorder before the worker starts.
//!
//! | name | kind | labels |
//! |---|---|---|
//! | `onward_worker_deliveries_total` | counter | inlet, type, outcome |
//! | `onward_worker_handler_seconds` | histogram | inlet, type |
//! | `onward_worker_running`, `onward_worker_capacity` | gauge | worker |
//! | `onward_inlet_depth`, `onward_inlet_age_seconds`, `onward_inlet_growth_per_second` | gauge | inlet |
//! | `onward_alerts_total` | counter | kind |
//!
//! The label `type` is the one that the handler was given, `*` for a handler of all types: the number of series is
//! bounded by what the program says, never by what is sent to it.

use super::{decide::Count, lag::Lag};
use metrics::{Counter, Histogram, counter, gauge, histogram};
use onward_core::Inlet;
use std::{sync::Arc, time::Duration};

/// The series of one handler, looked up once.
#[derive(Debug)]
pub(crate) struct Meters {
    outcomes: [Counter; Count::ALL.len()],
    seconds: Histogram,
}

impl Meters {
    pub(crate) fn new(inlet: &Inlet, kind: &Arc<str>) -> Self {
        let (inlet, kind) = (inlet.to_string(), kind.to_string());
        let outcomes = Count::ALL.map(|count| {
            counter!(
                "onward_worker_deliveries_total",
                "inlet" => inlet.clone(), "type" => kind.clone(), "outcome" => count.word()
            )
        });
        let seconds = histogram!("onward_worker_handler_seconds", "inlet" => inlet, "type" => kind);
        Self { outcomes, seconds }
    }

    pub(crate) fn ended(&self, took: Duration, count: Count) {
        self.outcomes[count as usize].increment(1);
        self.seconds.record(took.as_secs_f64());
    }
}

/// What a look at an inlet gave.
pub(crate) fn looked(lag: &Lag) {
    let inlet = lag.inlet.to_string();
    gauge!("onward_inlet_depth", "inlet" => inlet.clone()).set(lag.depth as f64);
    gauge!("onward_inlet_age_seconds", "inlet" => inlet.clone()).set(lag.age.as_secs_f64());
    gauge!("onward_inlet_growth_per_second", "inlet" => inlet).set(lag.growth);
}

/// How the worker stands.
pub(crate) fn worker(name: &Arc<str>, running: u32, capacity: u32) {
    gauge!("onward_worker_running", "worker" => name.to_string()).set(f64::from(running));
    gauge!("onward_worker_capacity", "worker" => name.to_string()).set(f64::from(capacity));
}

/// Something was alerted to.
pub(crate) fn alerted(kind: &'static str) {
    counter!("onward_alerts_total", "kind" => kind).increment(1);
}
