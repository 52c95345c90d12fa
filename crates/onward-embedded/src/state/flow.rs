//! A message's way through the states of its queue.

use super::{
    chain::Chain,
    queue::Queue,
    side::Side,
    slab::{Entry, Queued, Status},
};
use crate::{Marks, MessageRef};
use onward_core::{Key, Message, Timestamp};
use std::sync::Arc;

impl Queue {
    pub(crate) fn accept(
        &mut self,
        position: u64,
        time: Timestamp,
        message: &Message,
        marks: &Marks,
        skew_us: i64,
    ) {
        let side = Side::of(message, skew_us);
        let entry = Entry {
            seq: position,
            marks: *marks,
            accepted_at: time,
            size: u32::try_from(message.size()).unwrap_or(u32::MAX),
            kind: self.kinds.enter(&message.kind),
            priority: message.priority.get(),
            status: Status::Waiting,
            queued: Queued::No,
            in_line: false,
            has_side: side.is_some(),
            vacant: false,
        };
        self.books.accepted += 1;
        let slot = self.insert(entry, side);
        self.settle_in(slot, position, position, time);
    }

    /// Gives a new entry its first state, by the fact at `position`; `ready_at` is the position that makes it ready.
    pub(super) fn settle_in(&mut self, slot: u32, position: u64, ready_at: u64, time: Timestamp) {
        let delayed = self.side(slot).and_then(|side| side.due).is_some_and(|due| due > time);
        match self.order_key(slot) {
            Some(key) if self.sets_aside() && self.chain(&key).is_stuck() => {
                self.follow_to_dead(slot, position, time);
            }
            _ => self.arrive(slot, if delayed { Status::Delayed } else { Status::Waiting }, ready_at),
        }
    }

    /// Puts an entry in without a state: it belongs to no count yet.
    pub(crate) fn insert(&mut self, entry: Entry, side: Option<Box<Side>>) -> u32 {
        let id = entry.marks.id;
        let slot = self.put(entry, side);
        let slab = &self.slab;
        self.index.insert(id, slot, |slot| slab.id_hash(slot));
        slot
    }

    /// The same, but it can't be found by its id yet.
    pub(super) fn put(&mut self, entry: Entry, side: Option<Box<Side>>) -> u32 {
        let (marks, seq) = (entry.marks, entry.seq);
        let slot = self.slab.insert(entry);
        if let Some(side) = side {
            if side.own_dedup_key {
                self.own_dedup.insert(marks.dedup, slot);
            }
            if let Some(key) = &side.unique_key {
                self.unique.entry(key.clone()).or_insert(slot);
            }
            self.sides.insert(slot, Arc::from(side));
            if let Some(key) = self.order_key(slot) {
                self.chain(&key).members.insert(seq, slot);
            }
        }
        slot
    }

    pub(crate) fn chain(&mut self, key: &Key) -> &mut Chain {
        self.chains.entry_ref(key).or_default()
    }

    /// Takes a message out of its state's counts and structures.
    pub(crate) fn leave(&mut self, slot: u32) {
        let (seq, status, size) = {
            let entry = self.slab.get(slot);
            (entry.seq, entry.status, u64::from(entry.size))
        };
        match status {
            Status::Waiting => {
                self.books.waiting -= 1;
                self.unqueue(slot);
            }
            Status::Delayed => {
                self.books.delayed -= 1;
                if let Some(due) = self.side(slot).and_then(|side| side.due) {
                    self.due.remove(&(due, seq, slot));
                }
            }
            Status::Leased => self.books.leased -= 1,
            Status::Gone => self.books.done -= 1,
            Status::Dead => self.leave_dead(slot, seq),
            Status::Kept => {}
        }
        if matches!(status, Status::Waiting | Status::Delayed) {
            self.stop_expiry(slot, seq);
        }
        if matches!(status, Status::Waiting | Status::Delayed | Status::Leased) {
            self.bytes -= size;
        }
    }

    fn unqueue(&mut self, slot: u32) {
        if !self.slab.get(slot).has_side {
            return self.ready.remove(&mut self.slab, slot, &None);
        }
        let fairness = self.fairness_key(slot);
        self.ready.remove(&mut self.slab, slot, &fairness);
        if let Some(key) = self.order_key(slot) {
            let seq = self.slab.get(slot).seq;
            let chain = self.chain(&key);
            chain.queued = chain.queued.filter(|queued| *queued != seq);
        }
    }

    fn leave_dead(&mut self, slot: u32, seq: u64) {
        self.books.dead -= 1;
        if let Some((position, _)) = self.side_mut(slot).dead.take() {
            self.dead.remove(&(position, seq));
        }
        if let Some(key) = self.order_key(slot) {
            self.chain(&key).dead.remove(&seq);
        }
    }

    fn stop_expiry(&mut self, slot: u32, seq: u64) {
        if let Some(expiry) = self.side(slot).and_then(|side| side.expiry) {
            self.expiry.remove(&(expiry, seq, slot));
        }
    }

    /// Puts a message, out of every state, into one of the unfinished states.
    pub(crate) fn arrive(&mut self, slot: u32, status: Status, position: u64) {
        let (seq, size) = self.slab.change(slot, |entry| {
            entry.status = status;
            (entry.seq, u64::from(entry.size))
        });
        match status {
            Status::Waiting => self.books.waiting += 1,
            Status::Delayed => {
                self.books.delayed += 1;
                if let Some(due) = self.side(slot).and_then(|side| side.due) {
                    self.due.insert((due, seq, slot));
                }
            }
            Status::Leased => self.books.leased += 1,
            Status::Gone => self.books.done += 1,
            Status::Dead | Status::Kept => {}
        }
        if matches!(status, Status::Waiting | Status::Delayed)
            && let Some(expiry) = self.side(slot).and_then(|side| side.expiry)
        {
            self.expiry.insert((expiry, seq, slot));
        }
        if matches!(status, Status::Waiting | Status::Delayed | Status::Leased) {
            self.bytes += size;
        }
        match self.order_key(slot) {
            Some(key) => self.reconsider(&key, position),
            None if status == Status::Waiting => self.queue_up(slot, position),
            None => {}
        }
    }

    /// Puts a waiting message into the ready structure.
    pub(crate) fn queue_up(&mut self, slot: u32, position: u64) {
        self.moment.woken = self.moment.woken.saturating_add(1);
        let (fairness, suspect) = match self.side(slot) {
            Some(side) => (side.fairness_key.clone(), side.suspect),
            None => (None, false),
        };
        if position == self.slab.seq(slot) && !suspect {
            self.ready.push_fresh(&mut self.slab, slot, fairness);
        } else {
            self.ready.push_returned(&mut self.slab, slot, fairness, suspect, position);
        }
    }

    /// Puts a message back that was taken but is not handed out after all.
    pub(crate) fn return_taken(&mut self, slot: u32, ready_at: u64) {
        let (fairness, suspect) = match self.side(slot) {
            Some(side) => (side.fairness_key.clone(), side.suspect),
            None => (None, false),
        };
        if let Some(key) = &fairness {
            // It may have been held for what was to be handed out with this one.
            self.ready.recall(key);
        }
        self.ready.push_returned(&mut self.slab, slot, fairness, suspect, ready_at);
    }

    /// Finds out which member of an order key may be handed out now.
    pub(crate) fn reconsider(&mut self, key: &Key, position: u64) {
        let Some(chain) = self.chains.get(key) else { return };
        let want = chain.head().filter(|slot| self.slab.get(*slot).status == Status::Waiting);
        let (queued, want_seq) = (chain.queued, want.map(|slot| self.slab.get(slot).seq));
        if chain.is_empty() {
            self.chains.remove(key);
            return;
        }
        if queued == want_seq {
            return;
        }
        if let Some(slot) = queued.and_then(|seq| self.chain(key).members.get(&seq).copied()) {
            let fairness = self.fairness_key(slot);
            self.ready.remove(&mut self.slab, slot, &fairness);
        }
        self.chain(key).queued = want_seq;
        if let Some(slot) = want {
            self.queue_up(slot, position);
        }
    }

    /// Delayed messages that are due by `now` are waiting: no fact says so, the time alone does. Answers how many were
    /// looked at: those that are due, and at most one more.
    pub(crate) fn promote(&mut self, now: Timestamp, position: u64) -> usize {
        let mut looked_at = 0;
        while let Some(&(due, _, slot)) = self.due.first() {
            looked_at += 1;
            if due > now {
                break;
            }
            self.leave(slot);
            self.side_mut(slot).due = None;
            self.arrive(slot, Status::Waiting, position);
        }
        looked_at
    }

    pub(super) fn reschedule(&mut self, message: MessageRef, due: Timestamp, position: u64, time: Timestamp) {
        let Some(slot) = self.slot_of(message) else { return };
        if !matches!(self.slab.get(slot).status, Status::Waiting | Status::Delayed) {
            return;
        }
        self.leave(slot);
        let later = due > time;
        self.side_mut(slot).due = later.then_some(due);
        self.arrive(slot, if later { Status::Delayed } else { Status::Waiting }, position);
    }

    pub(super) fn move_body(&mut self, message: MessageRef, edition: bool, position: u64) {
        let Some(slot) = self.slot_of(message) else { return };
        let seq = message.seq;
        let side = self.side_mut(slot);
        let old = if edition {
            side.edition.replace(position)
        } else {
            Some(side.body.replace(position).unwrap_or(seq))
        };
        self.freed.extend(old);
    }
}
