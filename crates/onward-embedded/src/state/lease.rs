//! Leases: handing out, extending, and every way in which one ends.

use super::{queue::Queue, recent::LeaseMark, slab::Status};
use crate::{End, Given, MessageRef};
use onward_core::{Cause, CauseKind, DeliveryGuarantee, Holder, Key, MessageState, RequestId, Timestamp};
use std::{sync::Arc, time::Duration};

/// A live lease.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) slot: u32,
    /// Its message's: limits per key go by it.
    pub(crate) fairness_key: Option<Key>,
    pub(crate) nonce: u32,
    pub(crate) epoch: u32,
    pub(crate) attempt: u32,
    pub(crate) holder: Arc<Holder>,
    pub(crate) request: RequestId,
    pub(crate) term: Duration,
    pub(crate) since: Timestamp,
    pub(crate) deadline: Timestamp,
    pub(crate) cancel_requested: bool,
    /// It was handed out alone, as a suspect.
    pub(crate) suspect: bool,
}

impl Lease {
    pub(crate) fn mark(&self, seq: u64) -> LeaseMark {
        LeaseMark { seq, epoch: self.epoch, attempt: self.attempt, nonce: self.nonce }
    }
}

/// What all leases of one request have in common.
#[derive(Debug, Clone)]
pub(crate) struct HandOut {
    pub(crate) request: RequestId,
    pub(crate) holder: Arc<Holder>,
    pub(crate) epoch: u32,
    pub(crate) position: u64,
    pub(crate) time: Timestamp,
}

impl Queue {
    /// Hands out one message; answers whether it was there.
    pub(crate) fn hand_out(&mut self, given: &Given, term: Duration, with: &HandOut) -> Option<bool> {
        let slot = self.slot_of(given.at.message)?;
        let seq = given.at.message.seq;
        let suspect = self.side(slot).is_some_and(|side| side.suspect);
        self.take_tokens(slot, with.time);
        self.leave(slot);
        let lease = Lease {
            slot,
            fairness_key: self.fairness_key(slot),
            nonce: given.nonce,
            epoch: with.epoch,
            attempt: given.attempt,
            holder: with.holder.clone(),
            request: with.request,
            term,
            since: with.time,
            deadline: with.time.plus(term),
            cancel_requested: false,
            suspect,
        };
        self.deadlines.insert((lease.deadline, seq));
        self.leases.insert(seq, lease);
        if let Some(key) = self.order_key(slot) {
            self.chain(&key).leased = Some(seq);
        }
        let once = self.config.guarantee == DeliveryGuarantee::AtMostOnce;
        self.arrive(slot, if once { Status::Gone } else { Status::Leased }, with.position);
        self.counts.deliveries += 1;
        Some(suspect)
    }

    fn take_tokens(&mut self, slot: u32, time: Timestamp) {
        if let Some(rate) = &self.config.rate {
            self.rates.take(rate, time);
        }
        if let Some(rate) = self.config.rate_per_key
            && let Some(key) = self.fairness_key(slot)
        {
            self.rates.take_key(&key, &rate, time);
        }
    }

    pub(crate) fn extend(&mut self, seq: u64, term: Duration, time: Timestamp) {
        if let Some(lease) = self.leases.get_mut(seq) {
            self.deadlines.remove(&(lease.deadline, seq));
            (lease.term, lease.deadline) = (term, time.plus(term));
            self.deadlines.insert((lease.deadline, seq));
        }
    }

    /// The store was opened again: every lease gets its full term.
    pub(crate) fn rearm(&mut self, time: Timestamp) {
        self.deadlines.clear();
        for (seq, lease) in self.leases.iter_mut() {
            lease.deadline = time.plus(lease.term);
            self.deadlines.insert((lease.deadline, *seq));
        }
    }

    /// Takes the lease away; its message is in no state then.
    fn take_lease(&mut self, message: MessageRef) -> Option<Lease> {
        let lease = self.leases.remove(message.seq)?;
        self.deadlines.remove(&(lease.deadline, message.seq));
        if let Some(key) = self.order_key(lease.slot) {
            self.chain(&key).leased = None;
        }
        if let Some(key) = &lease.fairness_key {
            self.ready.recall(key);
        }
        self.moment.woken = self.moment.woken.saturating_add(1);
        Some(lease)
    }

    /// Ends a lease; answers it and the message's state after it.
    pub(crate) fn end_lease(
        &mut self,
        message: MessageRef,
        end: &End,
        position: u64,
        time: Timestamp,
    ) -> Option<(Lease, MessageState)> {
        let lease = self.take_lease(message)?;
        let slot = lease.slot;
        let gone = self.slab.get(slot).status == Status::Gone;
        let state = match end {
            End::Acked { .. } | End::Lost { copy: false, .. } if gone => {
                self.end_gone(&lease, end, position, time)
            }
            End::Lost { cause, .. } => {
                self.counts.lost += 1;
                self.die_of(slot, &lease, cause, position, time)
            }
            End::Acked { result } => {
                self.leave(slot);
                self.books.done += 1;
                self.keep_attempts(&lease);
                self.finish(slot, MessageState::Done, position, time, result.clone());
                MessageState::Done
            }
            End::Retried { due, cause } => self.come_again(slot, &lease, Some((*due, cause)), position, time),
            End::Crashed { due, cause } => {
                let side = self.side_mut(slot);
                (side.crashes, side.suspect) = (side.crashes + 1, true);
                self.come_again(slot, &lease, Some((*due, cause)), position, time)
            }
            End::Suspected => {
                self.side_mut(slot).suspect = true;
                self.come_again(slot, &lease, None, position, time)
            }
            End::Released { due } => self.put_back(slot, *due, position, time),
            End::Died { cause } => self.die_of(slot, &lease, cause, position, time),
            End::Cancelled => {
                self.leave(slot);
                self.books.cancelled += 1;
                self.finish(slot, MessageState::Cancelled, position, time, None);
                MessageState::Cancelled
            }
        };
        Some((lease, state))
    }

    /// The end of an at-most-once lease, whose message was done when it was handed out.
    fn end_gone(&mut self, lease: &Lease, end: &End, position: u64, time: Timestamp) -> MessageState {
        let result = match end {
            End::Acked { result } => result.clone(),
            _ => {
                self.counts.lost += 1;
                self.counts.failures += 1;
                None
            }
        };
        self.keep_attempts(lease);
        self.finish(lease.slot, MessageState::Done, position, time, result);
        MessageState::Done
    }

    /// A finished message that can still be looked at tells its last attempt too.
    fn keep_attempts(&mut self, lease: &Lease) {
        if self.config.result_retention_ms > 0 {
            self.side_mut(lease.slot).attempts = lease.attempt;
        }
    }

    fn die_of(
        &mut self,
        slot: u32,
        lease: &Lease,
        cause: &Cause,
        position: u64,
        time: Timestamp,
    ) -> MessageState {
        self.leave(slot);
        self.counts.failures += 1;
        let side = self.side_mut(slot);
        side.attempts = lease.attempt;
        if cause.failure.kind == CauseKind::Crashed {
            side.crashes += 1;
        }
        self.die(slot, cause, position, time);
        MessageState::Dead
    }

    /// After a failure (which counts), or after the death of its process with others in flight (which does not).
    fn come_again(
        &mut self,
        slot: u32,
        lease: &Lease,
        failed: Option<(Timestamp, &Cause)>,
        position: u64,
        time: Timestamp,
    ) -> MessageState {
        let most = self.config.causes_max;
        if let Some((_, cause)) = failed {
            self.counts.failures += 1;
            let side = self.side_mut(slot);
            side.attempts = lease.attempt;
            side.add_cause(cause, most);
        }
        self.put_back(slot, failed.map(|(due, _)| due), position, time)
    }

    fn put_back(
        &mut self,
        slot: u32,
        due: Option<Timestamp>,
        position: u64,
        time: Timestamp,
    ) -> MessageState {
        self.leave(slot);
        let due = due.filter(|due| *due > time);
        if due.is_some() || self.slab.get(slot).has_side {
            self.side_mut(slot).due = due;
        }
        let (status, state) = match due {
            Some(_) => (Status::Delayed, MessageState::Delayed),
            None => (Status::Waiting, MessageState::Waiting),
        };
        self.arrive(slot, status, position);
        state
    }
}
