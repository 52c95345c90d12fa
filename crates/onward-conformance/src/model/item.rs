//! One message of the model and its places.

use super::{Held, Item, Now, Place};
use onward_core::{Cause, CauseKind, Failure, Message, MessageState, Payload, Timestamp};
use std::time::Duration;

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

    pub(super) fn is_unfinished(&self) -> bool {
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
    pub(super) fn identity(&self) -> (Option<&str>, &str, &str) {
        identity(&self.message)
    }

    pub(super) fn fail(
        &mut self,
        failure: Failure,
        attempt: u32,
        worker: &str,
        causes_max: u32,
        at: Timestamp,
    ) {
        self.causes.push(Cause { failure: failure.bounded(), attempt, at, worker: worker.into() });
        if self.causes.len() > causes_max as usize {
            // The first cause and the latest ones are kept.
            let second = 1.min(self.causes.len() - 1);
            self.causes.remove(second);
        }
    }

    pub(super) fn silent(&mut self, kind: CauseKind, causes_max: u32, at: Timestamp) {
        let worker = self.held().map(|h| h.holder.worker.clone()).unwrap_or_default();
        self.fail(Failure::new(kind, "no word from its holder"), self.attempts, &worker, causes_max, at);
    }

    pub(super) fn new(message: Message, arrival: u64, now: Now) -> Self {
        let ready = message.due.map_or(now.monotonic, |due| now.until(due));
        let expires = message.expiry.map(|at| now.until(at));
        Self {
            message,
            original: None,
            arrival,
            accepted_at: now.wall,
            accepted: now.monotonic,
            ready,
            expires,
            attempts: 0,
            tries: 0,
            crashes: 0,
            causes: Vec::new(),
            progress: None,
            suspect: false,
            cancel: false,
            redriven: false,
            passed_over: false,
            replay: 0,
            place: Place::Here,
        }
    }

    pub(crate) fn gone(&mut self, state: MessageState, now: Now) {
        self.place = Place::Gone { state, at: now.monotonic, result: None };
    }

    pub(crate) fn done(&mut self, result: Option<Payload>, now: Now) {
        self.place = Place::Gone { state: MessageState::Done, at: now.monotonic, result };
    }

    /// Back without counting the attempt.
    pub(crate) fn put_back(&mut self, delay: Duration, now: Now) {
        self.attempts -= 1;
        self.tries -= 1;
        self.place = Place::Here;
        self.ready = now.monotonic + delay;
    }
}

/// What deduplicates a message: its own key, or source and id.
pub(super) fn identity(message: &Message) -> (Option<&str>, &str, &str) {
    match &message.dedup_key {
        Some(key) => (Some(key.as_str()), "", ""),
        None => (None, &message.source, message.id.as_str()),
    }
}
