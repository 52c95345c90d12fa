//! Shedding low priorities, where that is chosen: old work that nobody needs any more makes room for what matters.

use super::Handling;
use onward_core::{Delivery, PRIORITY_MAX, Timestamp};
use std::time::Duration;

/// What is shed instead of being worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shed {
    below: u8,
    older: Duration,
}

impl Shed {
    /// Whether a delivery is shed at `now`.
    pub(crate) fn takes(self, delivery: &Delivery, now: Timestamp) -> bool {
        // A wall clock that jumps ahead must not shed what is young: only what waited since its due time counts.
        let since = delivery.message.due.map_or(delivery.accepted_at, |due| due.max(delivery.accepted_at));
        delivery.message.priority.get() < self.below && now.since(since) > self.older
    }
}

impl Handling {
    /// Sheds messages of a priority below `priority` (1 to 9) that have waited longer than `older`: they are cancelled
    /// instead of being worked on, and counted as `shed` in report and metrics.
    ///
    /// Nothing is shed unless this is said. It answers lag where old low priorities are worth less than new high ones.
    pub fn shed_below(mut self, priority: u8, older: Duration) -> Self {
        self.shed = Some(Shed { below: priority.min(PRIORITY_MAX), older });
        self
    }
}
