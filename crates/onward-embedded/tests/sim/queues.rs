//! The queues of every run, and what the checker must know of them.

use std::time::Duration;

use onward_core::{
    Curve, DeliveryGuarantee, Inlet, InletConfig, Jitter, OrderPolicy, RecordKey, RetryPolicy, StuckHead,
};
use onward_sim::history::{Contract, InletRules};

use super::plans::TICKS;
use super::topics::{SUBSCRIPTIONS, TOPICS, keeps, name};

/// How long a finished id is remembered: longer than a run.
pub(crate) const DEDUP_WINDOW: Duration = Duration::from_secs(12 * 3600);
pub(crate) const LEASE: Duration = Duration::from_secs(8);
const ATTEMPTS_MAX: u32 = 4;

/// The queues: without order, with both kinds of order, and at most once.
pub(crate) const QUEUES: [&str; 4] = ["plain", "wait", "aside", "once"];

/// Everything that is worked on: queues, subscriptions, and where the schedules' messages go.
pub(crate) fn worked_on() -> impl Iterator<Item = &'static str> + Clone {
    QUEUES.into_iter().chain(SUBSCRIPTIONS).chain([TICKS])
}

pub(crate) fn inlet(name: &str) -> Inlet {
    name.parse().expect("a constant name")
}

pub(crate) fn config(name: &str) -> InletConfig {
    let order = match name {
        "wait" => OrderPolicy::ByKey { stuck_head: StuckHead::Wait },
        "aside" => OrderPolicy::ByKey { stuck_head: StuckHead::SetAside },
        _ => OrderPolicy::Unordered,
    };
    let once = name == "once";
    InletConfig {
        guarantee: if once { DeliveryGuarantee::AtMostOnce } else { DeliveryGuarantee::AtLeastOnce },
        lease_ms: LEASE.as_millis() as u64,
        retry: RetryPolicy {
            attempts_max: ATTEMPTS_MAX,
            curve: Curve::Fixed { every_ms: 2_000 },
            jitter: Jitter::Half,
            ..RetryPolicy::default()
        },
        order,
        dedup_window_ms: DEDUP_WINDOW.as_millis() as u64,
        ..InletConfig::default()
    }
}

pub(crate) fn contract() -> Contract {
    let rules = |name: &str| {
        let own = name.split_once(':').map_or(name, |(_, own)| own);
        let (ordered, at_most_once) = (matches!(own, "wait" | "aside"), own == "once");
        let rules =
            InletRules { attempts_max: ATTEMPTS_MAX, ordered, at_most_once, dedup_window: DEDUP_WINDOW };
        (inlet(name), rules)
    };
    let inlets = worked_on().map(rules).collect();
    let keeping = TOPICS.into_iter().filter(|topic| keeps(topic)).map(name).collect();
    Contract { leases_survive_death: true, ended_is_stale: true, inlets, keeping }
}

/// The records that are written.
pub(crate) fn record_key(index: usize) -> RecordKey {
    RecordKey::try_from(["sim/a", "sim/b", "sim/c"][index]).expect("a constant key")
}

/// The record that a key names.
pub(crate) fn record_index(key: &RecordKey) -> Option<usize> {
    (0..3).find(|index| record_key(*index) == *key)
}
