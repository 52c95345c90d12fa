//! The reference model: queues and records as vectors, searched one by one. Slow, short, and meant to be obviously right.
//!
//! It is a second implementation of the engine seam beside those under test: the suite is tried on it first, the
//! faulty doubles are wrapped around it, and random operations are compared with it.

mod apply;
mod bulk;
mod engine;
mod hand_out;
mod harness;
mod queue;
mod records;

pub use engine::ModelEngine;
pub use harness::ModelHarness;

use onward_core::{
    BulkId, BulkReport, Cause, CauseKind, Error, Failure, Holder, Inlet, InletConfig, LeaseToken, Message,
    MessageState, Outcome, Payload, Result, SettledAs, Timestamp,
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
    pub(crate) records: Vec<records::Stored>,
    pub(crate) bulks: Vec<(BulkId, BulkReport)>,
    pub(crate) epoch: u64,
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
        for record in &mut self.records {
            record.tick(now);
        }
    }
}

impl Item {
    pub(crate) fn held(&self) -> Option<&Held> {
        match &self.place {
            Place::Leased(held) => Some(held),
            _ => None,
        }
    }

    pub(crate) fn is_here(&self) -> bool {
        matches!(self.place, Place::Here)
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.place, Place::Dead(_))
    }

    fn is_unfinished(&self) -> bool {
        self.is_here() || self.held().is_some()
    }

    pub(crate) fn is_ready(&self, now: Now) -> bool {
        self.is_here() && self.ready <= now.monotonic
    }

    pub(crate) fn state(&self, now: Now) -> MessageState {
        match &self.place {
            Place::Here if self.ready <= now.monotonic => MessageState::Waiting,
            Place::Here => MessageState::Delayed,
            Place::Leased(_) => MessageState::Leased,
            Place::Dead(_) => MessageState::Dead,
            Place::Gone { state, .. } => *state,
        }
    }

    /// Priority with one more for each ageing span waited.
    pub(crate) fn rank(&self, ageing_ms: u64, now: Now) -> u64 {
        let waited = now.monotonic.saturating_sub(self.accepted).as_millis() as u64;
        u64::from(self.message.priority.get()) + waited / ageing_ms.max(1)
    }

    /// What deduplicates it: its own key, or source and id.
    fn identity(&self) -> (Option<&str>, &str, &str) {
        identity(&self.message)
    }

    fn fail(&mut self, failure: Failure, attempt: u32, worker: &str, causes_max: u32, at: Timestamp) {
        self.causes.push(Cause { failure: failure.bounded(), attempt, at, worker: worker.into() });
        if self.causes.len() > causes_max as usize {
            // The first cause and the latest ones are kept.
            let second = 1.min(self.causes.len() - 1);
            self.causes.remove(second);
        }
    }

    fn silent(&mut self, kind: CauseKind, causes_max: u32, at: Timestamp) {
        let worker = self.held().map(|h| h.holder.worker.clone()).unwrap_or_default();
        self.fail(Failure::new(kind, "no word from its holder"), self.attempts, &worker, causes_max, at);
    }
}

fn identity(message: &Message) -> (Option<&str>, &str, &str) {
    match &message.dedup_key {
        Some(key) => (Some(key.as_str()), "", ""),
        None => (None, &message.source, message.id.as_str()),
    }
}
