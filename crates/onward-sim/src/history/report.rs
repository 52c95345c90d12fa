//! What the checker found.

use std::collections::BTreeMap;
use std::fmt;

use onward_core::MessageId;

/// Most faults of one kind that are kept with their details; all are counted.
const DETAILS_MAX: usize = 20;

/// A way in which an engine can break its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Accepted, and neither finished nor there.
    Lost,
    /// Still unfinished though everything was drained.
    Stuck,
    /// Held by two at once, accepted twice, or handed out twice by an at-most-once inlet.
    Duplicated,
    /// Handed out without having been sent, after being refused, or with other content.
    Phantom,
    /// Handed out before an earlier message of its key was gone.
    Reordered,
    /// A lease that had ended was accepted, or two outcomes for one lease.
    StaleSettle,
    /// An attempt beyond the maximum, or one that nobody made.
    Attempts,
    /// An attempt that was made is not counted any more.
    AttemptForgotten,
    /// Handed out before it was due.
    Early,
    /// Handed out after its expiry.
    Expired,
    /// Handed out, or still there, after it was finished.
    AfterSettled,
    /// One part of a commit happened, another did not.
    Torn,
    /// The inlet's numbers don't add up.
    Books,
    /// A record's write was lost, or accepted against its condition.
    Record,
    /// The revisions or places of a stream's events have a gap, fall, or are not what the receipt says.
    Revision,
    /// Two appends were accepted of which each excluded the other.
    TwoWinners,
    /// A reader was led past an event or a message that was there.
    Skipped,
    /// A tick came twice, never, or without having been planned.
    Tick,
}

/// One breach, with the messages concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of which kind.
    pub kind: FaultKind,
    /// Which messages; none for what is about an inlet or a record.
    pub messages: Vec<MessageId>,
    /// What was seen, with times.
    pub what: String,
}

/// How much happened: what rates are counted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that put a message in.
    pub sends: u64,
    /// Of those, the answered ones that were no duplicates.
    pub accepted: u64,
    /// Of those, the ones whose answer was lost.
    pub sends_unknown: u64,
    /// Of those, the ones recognised as duplicates.
    pub duplicates_recognised: u64,
    /// Hand-outs.
    pub deliveries: u64,
    /// Hand-outs of a message beyond its first one: legal ones and others.
    pub redeliveries: u64,
    /// Settlements that were answered.
    pub settled: u64,
    /// Settlements that were refused.
    pub settles_refused: u64,
    /// Times that the engine was opened again.
    pub restarts: u64,
}

/// What the checker found: how much happened, and each breach.
#[derive(Clone, Debug)]
pub struct Report {
    /// How much happened.
    pub tally: Tally,
    counts: BTreeMap<FaultKind, u64>,
    details: Vec<Fault>,
}

impl Report {
    pub(super) fn new(tally: Tally) -> Report {
        Report { tally, counts: BTreeMap::new(), details: Vec::new() }
    }

    pub(super) fn fault(&mut self, kind: FaultKind, messages: &[&MessageId], what: String) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count as usize <= DETAILS_MAX {
            let messages = messages.iter().map(|id| (*id).clone()).collect();
            self.details.push(Fault { kind, messages, what });
        }
    }

    /// Whether the engine kept its word.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often it broke it in this way.
    pub fn count(&self, kind: FaultKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// The same per thousand accepted messages.
    pub fn rate(&self, kind: FaultKind) -> f64 {
        self.count(kind) as f64 * 1_000.0 / self.tally.accepted.max(1) as f64
    }

    /// The kinds that were found.
    pub fn kinds(&self) -> Vec<FaultKind> {
        self.counts.keys().copied().collect()
    }

    /// Breaches with their details, the first of each kind.
    pub fn faults(&self) -> &[Fault] {
        &self.details
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        writeln!(
            f,
            "{} accepted, {} unknown, {} duplicates recognised, {} delivered ({} again), {} settled, {} restarts",
            tally.accepted,
            tally.sends_unknown,
            tally.duplicates_recognised,
            tally.deliveries,
            tally.redeliveries,
            tally.settled,
            tally.restarts
        )?;
        for (kind, count) in &self.counts {
            writeln!(f, "{kind:?}: {count} ({:.3} per thousand)", self.rate(*kind))?;
        }
        self.details.iter().try_for_each(|fault| {
            let ids: Vec<&str> = fault.messages.iter().map(MessageId::as_str).collect();
            writeln!(f, "- {:?} [{}] {}", fault.kind, ids.join(", "), fault.what)
        })
    }
}
