//! What the clients of an engine did and saw, to be judged without knowing the engine.
//!
//! A test writes down every call with the moment it was made, the moment it was answered and what the answer
//! was, and hands the whole to [`check`]. The same checker serves every engine, simulated or real: on a real one
//! the moments come from a monotonic clock.
//!
//! # What counts as a fault, and what does not
//!
//! A message may be handed out more than once: that is the contract, not a fault. A further delivery is legal
//! when the lease before it
//! - ran out by the clock of its holder, counted from receipt or from its last answered extension;
//! - was settled by retry or release, or *may* have been (the answer was lost);
//! - ended with its process, because somebody said that the process died or closed;
//! - was forgotten in a power cut, or (where [`Contract::leases_survive_death`] is not set) with the engine's process.
//!
//! Everything else that comes twice is a fault, as is everything that [`FaultKind`] names. An operation whose
//! answer was lost may have happened or not: the checker accepts either, but only one of them.

mod deliveries;
mod ends;
mod event;
mod facts;
mod lives;
mod order;
mod recorder;
mod records;
mod report;
mod schedules;
mod settles;
mod streams;
mod streams_read;
mod subscriptions;
mod topics;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use onward_core::{Inlet, Message, MessageId, Name};

use crate::Random;

pub use event::{Answer, Delivered, Event, How, Moment, RecordExpected, Restart, Sent, Settled, What};
pub use facts::{Addition, EventMark, EventsRead, Planned, SeenEvent, Sought};
pub use recorder::Recorder;
pub use report::{Fault, FaultKind, Report, Tally};

/// What is still there at the end, after everything that could be drained was drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// A dead letter.
    Dead,
    /// Not finished, though nothing holds it back: a fault.
    Unfinished,
}

/// What an engine promised, as far as the checker must know it.
#[derive(Clone, Debug, Default)]
pub struct Contract {
    /// Leases outlive the engine's process: each has its full term again from the reopening. What was handed out
    /// after the last sync may be forgotten in a power cut.
    pub leases_survive_death: bool,
    /// Nothing is accepted under a lease whose time ran out, also while nobody else has the message.
    pub ended_is_stale: bool,
    /// The inlets' rules. An inlet that is not here has the default ones.
    pub inlets: BTreeMap<Inlet, InletRules>,
    /// Topics that keep everything for as long as the history lasts. Of others nothing is said about what is gone.
    pub keeping: BTreeSet<Name>,
}

/// The rules of one inlet that the checker must know.
#[derive(Clone, Debug)]
pub struct InletRules {
    /// Most attempts.
    pub attempts_max: u32,
    /// Messages of one key come in order, one at a time.
    pub ordered: bool,
    /// Handed out once, whatever happens.
    pub at_most_once: bool,
    /// How long a finished id is remembered; a purged one is forgotten at once.
    pub dedup_window: Duration,
}

impl Default for InletRules {
    fn default() -> Self {
        let dedup_window = Duration::from_secs(600);
        InletRules { attempts_max: 5, ordered: false, at_most_once: false, dedup_window }
    }
}

/// Everything that was done and seen.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What was promised.
    pub contract: Contract,
    /// Every call, in the order of [`Event::called`].
    pub events: Vec<Event>,
    /// What is left, if the engine was drained and looked through; without it nothing is said about lost ones.
    pub left: Option<BTreeMap<(Inlet, MessageId), Left>>,
}

/// Judges a history. Pure: the same history has the same report.
pub fn check(history: &History) -> Report {
    let queues = schedules::with_ticks(subscriptions::without(history));
    let lives = lives::Lives::of(&queues);
    let mut report = Report::new(lives.tally());
    judge(&lives, &mut report);
    lives.each().for_each(|life| ends::check(life, &lives, &mut report));
    ends::check_commits(&lives, &topics::evidence(history), &mut report);
    ends::check_books(&lives, &mut report);
    records::check(history, &mut report);
    schedules::check(history, &mut report);
    topics::check(history, &mut report);
    subscriptions::check(history, &mut report);
    streams::check(history, &mut report);
    report
}

/// Judges what was handed out and settled, message by message and key by key.
fn judge(lives: &lives::Lives<'_>, report: &mut Report) {
    for life in lives.each() {
        deliveries::check(life, lives, report);
        settles::check(life, lives, report);
    }
    order::check(lives, report);
}

/// A mark of what must arrive as it was sent: type, version, data.
pub fn content_mark(message: &Message) -> u64 {
    let header = [u64::from(message.version), u64::from(message.edition)];
    let text = message.kind.bytes().chain(message.data.content_type().bytes());
    let bytes = text.chain(message.data.as_bytes().iter().copied()).map(u64::from);
    header.into_iter().chain(bytes).fold(1, |mark, next| Random::new(mark ^ next).number())
}
