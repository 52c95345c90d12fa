//! Numbers of an inlet, and its books.

use crate::{Holder, Inlet, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

/// Numbers of one inlet, all of one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Which.
    pub inlet: Inlet,
    /// The counts that must balance.
    pub books: Books,
    /// The counts are the server's own estimate: they need not balance, and `balance` says so.
    pub approximate: bool,
    /// Of the waiting ones: held back behind their order key.
    pub blocked: u64,
    /// Bytes of unfinished messages.
    pub bytes: u64,
    /// Since when the oldest waiting message waits.
    pub oldest_waiting: Option<Timestamp>,
    /// When the next delayed one is due.
    pub next_due: Option<Timestamp>,
    /// Hand-outs so far.
    pub deliveries: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Attempts that succeeded on an at-most-once inlet are not known; its failures are counted here.
    pub lost_at_most_once: u64,
    /// Repeats that were recognised.
    pub duplicates: u64,
    /// Finished ids remembered now.
    pub dedup_entries: u64,
    /// How long a finished id is really remembered, in milliseconds; shorter than declared when entries ran out.
    pub dedup_window_ms: u64,
    /// It hands out nothing until resumed.
    pub paused: bool,
    /// It hands out nothing since its dead letters are full.
    pub stopped_dead_full: bool,
    /// Live leases, oldest first, at most [`crate::PAGE_MAX`].
    pub leases: Vec<LeaseView>,
    /// Of a subscription: how far it is behind its topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
}

/// How far a subscription is behind its topic. What it has not reached yet stands in no book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lag {
    /// Messages that it has still to begin: those of the topic that it has not reached, counted before its filter
    /// looks at them, and those that it has reached and that wait.
    pub messages: u64,
    /// Of those, the ones that it has not reached: how many places of the topic it is behind.
    pub unreached: u64,
    /// When the oldest of them was published.
    pub oldest: Option<Timestamp>,
    /// The position of the next message that it reaches; `None` when it has reached all.
    pub next: Option<crate::Position>,
    /// How often it was moved to process again; part of what makes a delivery's effects idempotent.
    pub replay: u32,
}

/// What was accepted and where it is. All since the inlet was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Books {
    /// Accepted, duplicates not counted.
    pub accepted: u64,
    /// Finished.
    pub done: u64,
    /// Dead letters now.
    pub dead: u64,
    /// Waiting now.
    pub waiting: u64,
    /// Leased now.
    pub leased: u64,
    /// Not due yet.
    pub delayed: u64,
    /// Ran out of time.
    pub expired: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Purged.
    pub purged: u64,
    /// Shed for higher priorities.
    pub shed: u64,
}

impl Books {
    /// Everything that is accounted for.
    pub fn accounted(&self) -> u64 {
        [
            self.done,
            self.dead,
            self.waiting,
            self.leased,
            self.delayed,
            self.expired,
            self.cancelled,
            self.purged,
            self.shed,
        ]
        .iter()
        .sum()
    }

    /// Whether what was accepted is all accounted for.
    pub fn balance(&self) -> bool {
        self.accepted == self.accounted()
    }
}

/// One live lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseView {
    /// The message.
    pub id: MessageId,
    /// Who holds it.
    pub holder: Holder,
    /// Which attempt.
    pub attempt: u32,
    /// Since when.
    pub since: Timestamp,
    /// Until when, unless extended.
    pub until: Timestamp,
}
