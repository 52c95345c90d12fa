//! The reference model: queues, records and events as vectors, searched one by one. Slow, short, and meant to be obviously right.
//!
//! It is a second implementation of the engine seam beside those under test: the suite is tried on it first, the
//! faulty doubles are wrapped around it, and random operations are compared with it.

mod apply;
mod bulk;
mod copies;
mod engine;
mod hand_out;
mod harness;
mod item;
mod queue;
mod records;
mod schedules;
mod streams;
mod topics;

pub use engine::ModelEngine;
pub use harness::ModelHarness;

use onward_core::{
    BulkId, BulkReport, Cause, Error, Holder, Inlet, InletConfig, LeaseToken, Message, MessageState, Outcome,
    Payload, Result, SettledAs, Timestamp,
};
use std::time::Duration;

/// One moment on both clocks. Spans are kept on the monotonic one, so that setting the wall clock moves nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) monotonic: Duration,
}

impl Now {
    /// When a wall-clock time comes, on the monotonic clock; a past one is now.
    fn until(self, time: Timestamp) -> Duration {
        self.monotonic + time.since(self.wall)
    }

    /// The wall-clock time of a moment of the monotonic clock.
    fn stamp(self, at: Duration) -> Timestamp {
        match at.checked_sub(self.monotonic) {
            Some(ahead) => self.wall.plus(ahead),
            None => self.wall.minus(self.monotonic - at),
        }
    }
}

/// Everything that the model holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) queues: Vec<Queue>,
    pub(crate) topics: Vec<topics::Topic>,
    pub(crate) records: Vec<records::Stored>,
    pub(crate) events: Vec<streams::Kept>,
    pub(crate) bulks: Vec<(BulkId, BulkReport)>,
    pub(crate) epoch: u64,
    pub(crate) schedules: Vec<schedules::Scheduled>,
    /// What the clock of schedules last showed, and when.
    schedule_clock: Option<(Timestamp, Duration)>,
    serial: u64,
    /// Whose turn it is among the inlets of a request.
    turn: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) inlet: Inlet,
    pub(crate) config: InletConfig,
    pub(crate) paused: bool,
    pub(crate) items: Vec<Item>,
    settled: Vec<(LeaseToken, Outcome, SettledAs)>,
    rate: Option<Bucket>,
    key_rates: Vec<(String, Bucket)>,
    served: Vec<String>,
    pub(crate) counts: Counts,
    /// Of a subscription.
    pub(crate) reader: Option<topics::Reader>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    accepted: u64,
    purged: u64,
    shed: u64,
    deliveries: u64,
    failures: u64,
    duplicates: u64,
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

/// A message and where it is; finished ones stay, since their ids are remembered.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) message: Message,
    original: Option<Box<Message>>,
    pub(crate) arrival: u64,
    accepted_at: Timestamp,
    accepted: Duration,
    ready: Duration,
    expires: Option<Duration>,
    pub(crate) attempts: u32,
    /// Attempts since it was last redriven: what `attempts_max` bounds.
    tries: u32,
    crashes: u32,
    pub(crate) causes: Vec<Cause>,
    progress: Option<Payload>,
    suspect: bool,
    cancel: bool,
    pub(crate) redriven: bool,
    /// Of a subscription: it was left out without being processed, or is to be processed again.
    passed_over: bool,
    replay: u32,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// Waiting or delayed.
    Here,
    Leased(Held),
    Dead(Timestamp),
    Gone {
        state: MessageState,
        at: Duration,
        result: Option<Payload>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) token: LeaseToken,
    holder: Holder,
    request: onward_core::RequestId,
    since: Duration,
    until: Duration,
}

impl Model {
    fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(crate) fn queue(&mut self, inlet: &Inlet) -> Result<&mut Queue> {
        let found = self.queues.iter_mut().find(|q| q.inlet == *inlet);
        found.ok_or_else(|| Error::not_found(format!("{inlet} does not exist")).mend("declare it"))
    }

    /// Everything that time alone brings about.
    pub(crate) fn tick(&mut self, now: Now) {
        for queue in &mut self.queues {
            queue.tick(now);
        }
        self.trim_topics(now);
        for record in &mut self.records {
            record.tick(now);
        }
        self.tick_schedules(now);
    }
}
