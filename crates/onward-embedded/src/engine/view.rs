//! A message as it is shown: what the state knows, then its body.

use super::Core;
use crate::{
    At, Store, Stored,
    state::{Queue, Status},
};
use onward_core::{
    Cause, ErrorKind, Holder, Inlet, LeaseView, MessageState, MessageView, Payload, Position, Result,
    Timestamp,
};
use std::sync::Arc;

/// What the state knows of a message that is to be shown.
#[derive(Debug, Clone)]
pub(super) struct Glimpse {
    pub(super) inlet: Inlet,
    pub(super) seq: u64,
    at: At,
    pub(super) body: u64,
    original: Option<u64>,
    pub(super) state: MessageState,
    attempts: u32,
    crashes: u32,
    blocked: bool,
    suspect: bool,
    cancel_requested: bool,
    accepted_at: Timestamp,
    due: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    lease: Option<(Holder, u32, Timestamp, Timestamp)>,
    causes: Vec<Arc<Cause>>,
    progress: Option<Payload>,
    result: Option<Payload>,
}

/// The state as callers know it.
pub(super) fn state_of(queue: &Queue, slot: u32) -> MessageState {
    match queue.slab.get(slot).status {
        Status::Waiting => MessageState::Waiting,
        Status::Delayed => MessageState::Delayed,
        Status::Leased => MessageState::Leased,
        Status::Gone => MessageState::Done,
        Status::Dead => MessageState::Dead,
        Status::Kept => {
            queue.side(slot).and_then(|side| side.ended).map_or(MessageState::Done, |(_, how)| how)
        }
    }
}

pub(super) fn glimpse(queue: &Queue, slot: u32) -> Glimpse {
    let (entry, side) = (queue.slab.get(slot), queue.side(slot));
    let lease = queue.leases.get(&entry.seq).filter(|lease| lease.slot == slot);
    let ready = entry.queued != crate::state::Queued::No;
    let dead_at = side.and_then(|side| side.dead).map(|(_, at)| at);
    Glimpse {
        inlet: queue.name.clone(),
        seq: entry.seq,
        at: At { inlet: queue.id, message: queue.reference(slot) },
        body: queue.body(slot),
        original: side.and_then(|side| side.edition).map(|_| queue.original_body(slot)),
        state: state_of(queue, slot),
        attempts: lease.map_or(side.map_or(0, |side| side.attempts), |lease| lease.attempt),
        crashes: side.map_or(0, |side| side.crashes),
        blocked: entry.status == Status::Waiting && !ready,
        suspect: side.is_some_and(|side| side.suspect),
        cancel_requested: lease.is_some_and(|lease| lease.cancel_requested),
        accepted_at: entry.accepted_at,
        due: side.and_then(|side| side.due),
        ended_at: dead_at.or(side.and_then(|side| side.ended).map(|(at, _)| at)),
        lease: lease.map(|lease| ((*lease.holder).clone(), lease.attempt, lease.since, lease.deadline)),
        causes: side.map_or(Vec::new(), |side| side.causes.clone()),
        progress: side.and_then(|side| side.progress.clone()),
        result: side.and_then(|side| side.result.clone()),
    }
}

impl<S: Store> Core<S> {
    /// The latest body of a message, which stood at `position` when that was looked up.
    ///
    /// It may have been copied forward since, and its old place given back: then it is looked up again.
    ///
    /// # Errors
    /// `NotFound` when the message is gone, and what the store answers.
    pub(super) fn body(&self, at: At, mut position: u64) -> Result<Stored> {
        loop {
            match self.store.read(position) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    position = self.body_now(at).filter(|now| *now != position).ok_or(error)?;
                }
                read => return read,
            }
        }
    }

    /// Those of the bodies at these positions that can be read in one go; who misses one reads it alone, and hears why.
    pub(super) fn bodies(&self, positions: &[u64]) -> Vec<Option<Stored>> {
        let mut found: Vec<Option<Stored>> = positions.iter().map(|_| None).collect();
        // One alone gains nothing.
        if positions.len() > 1 {
            let _ = self.store.read_many(positions, &mut |index, stored| found[index] = Some(stored));
        }
        found
    }

    /// Each of these positions with the body there: read in one go as far as that goes, what is missed alone.
    pub(super) fn each_body(&self, positions: &[u64]) -> impl Iterator<Item = (u64, Result<Stored>)> {
        let found = self.bodies(positions);
        let alone = |position, stored: Option<Stored>| stored.map_or_else(|| self.store.read(position), Ok);
        positions.iter().zip(found).map(move |(position, stored)| (*position, alone(*position, stored)))
    }

    fn body_now(&self, at: At) -> Option<u64> {
        let inner = self.inner.lock();
        let queue = inner.state.queue(at.inlet)?;
        Some(queue.body(queue.slot_of(at.message)?))
    }

    /// Reads the bodies of what is to be shown, without the lock. What went meanwhile is left out.
    pub(super) fn show(&self, glimpses: Vec<Glimpse>) -> Result<Vec<MessageView>> {
        let mut views = Vec::with_capacity(glimpses.len());
        let bodies = self.bodies(&glimpses.iter().map(|glimpse| glimpse.body).collect::<Vec<_>>());
        for (glimpse, body) in glimpses.into_iter().zip(bodies) {
            match self.show_one(glimpse, body) {
                Ok(view) => views.push(view),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(views)
    }

    fn show_one(&self, glimpse: Glimpse, body: Option<Stored>) -> Result<MessageView> {
        let body = body.map_or_else(|| self.body(glimpse.at, glimpse.body), Ok)?;
        let message = Arc::unwrap_or_clone(body.message);
        let original = match glimpse.original {
            Some(position) => Some(Box::new(Arc::unwrap_or_clone(self.store.read(position)?.message))),
            None => None,
        };
        let lease = glimpse.lease.map(|(holder, attempt, since, until)| LeaseView {
            id: message.id.clone(),
            holder,
            attempt,
            since,
            until,
        });
        Ok(MessageView {
            inlet: glimpse.inlet,
            message,
            original,
            state: glimpse.state,
            attempts: glimpse.attempts,
            crashes: glimpse.crashes,
            blocked: glimpse.blocked,
            suspect: glimpse.suspect,
            cancel_requested: glimpse.cancel_requested,
            accepted_at: glimpse.accepted_at,
            due: glimpse.due,
            ended_at: glimpse.ended_at,
            lease,
            causes: glimpse.causes.into_iter().map(Arc::unwrap_or_clone).collect(),
            progress: glimpse.progress,
            result: glimpse.result,
            position: Some(Position(glimpse.seq)),
        })
    }
}
