//! The end of a message: remembered, kept for its result, or erased.

use super::{
    dedup::Remembered,
    queue::{KEPT_BYTES_MAX, KEPT_MAX, Queue},
    slab::Status,
};
use crate::Removal;
use onward_core::{MessageState, Payload, Timestamp};

impl Queue {
    /// Removes a message that has no lease.
    pub(crate) fn remove(&mut self, slot: u32, why: Removal, position: u64, time: Timestamp) {
        match self.slab.get(slot).status {
            Status::Leased | Status::Gone => return,
            Status::Kept => return self.forget_kept(slot),
            _ => {}
        }
        if why == Removal::Forgotten {
            return;
        }
        let entry = self.slab.get(slot);
        if let Some(reader) = &mut self.reader
            && entry.status != Status::Dead
            && matches!(why, Removal::Purged | Removal::Shed)
        {
            reader.removed.push(entry.seq);
        }
        self.leave(slot);
        match why {
            Removal::Expired => {
                self.books.expired += 1;
                self.finish(slot, MessageState::Expired, position, time, None);
            }
            Removal::Cancelled => {
                self.books.cancelled += 1;
                self.finish(slot, MessageState::Cancelled, position, time, None);
            }
            Removal::Shed => {
                self.books.shed += 1;
                self.discard(slot, position);
            }
            Removal::Purged | Removal::Retired | Removal::Forgotten => {
                self.books.purged += 1;
                self.discard(slot, position);
            }
        }
    }

    /// A message is finished, and out of its state: remembers its id, and drops it or keeps it for its result.
    pub(crate) fn finish(
        &mut self,
        slot: u32,
        state: MessageState,
        position: u64,
        time: Timestamp,
        result: Option<Payload>,
    ) {
        self.remember(slot, time);
        self.detach(slot, position);
        if self.config.result_retention_ms == 0 {
            return self.erase(slot);
        }
        let seq = self.slab.get(slot).seq;
        self.slab.change(slot, |entry| entry.status = Status::Kept);
        self.kept_bytes += result.as_ref().map_or(0, |result| result.as_bytes().len() as u64);
        let side = self.side_mut(slot);
        (side.ended, side.result) = (Some((time, state)), result);
        self.kept.insert((time, seq, slot));
        while self.kept.len() > KEPT_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some(&(_, _, oldest)) = self.kept.first() else { break };
            self.forget_kept(oldest);
        }
    }

    /// Removes a message without remembering it; it is out of its state.
    pub(crate) fn discard(&mut self, slot: u32, position: u64) {
        self.detach(slot, position);
        self.erase(slot);
    }

    pub(crate) fn forget_kept(&mut self, slot: u32) {
        let seq = self.slab.get(slot).seq;
        let side = self.side_mut(slot);
        let bytes = side.result.as_ref().map_or(0, |result| result.as_bytes().len() as u64);
        if let Some((time, _)) = side.ended {
            self.kept.remove(&(time, seq, slot));
        }
        self.kept_bytes -= bytes;
        self.erase(slot);
    }

    fn remember(&mut self, slot: u32, time: Timestamp) {
        let entry = self.slab.get(slot);
        let (dedup, fingerprint, seq) = (entry.marks.dedup, entry.marks.fingerprint, entry.seq);
        let id = self.side(slot).filter(|side| side.own_dedup_key).and_then(|side| side.id.clone());
        let id_hash = self.slab.get(slot).marks.id;
        let what = Remembered { id_hash, fingerprint, seq, at: time, id };
        self.finished.insert(dedup, what, self.dedup_window(), self.config.dedup_entries_max);
    }

    /// Gives up what the message holds: its unique key and its place in its order key.
    pub(crate) fn detach(&mut self, slot: u32, position: u64) {
        if !self.slab.get(slot).has_side {
            return;
        }
        self.release_unique(slot);
        if self.side(slot).is_some_and(|side| side.own_dedup_key) {
            self.own_dedup.remove(&self.slab.get(slot).marks.dedup);
        }
        if let Some(key) = self.order_key(slot) {
            let seq = self.slab.get(slot).seq;
            let chain = self.chain(&key);
            chain.members.remove(&seq);
            chain.leased = chain.leased.filter(|leased| *leased != seq);
            self.reconsider(&key, position);
        }
    }

    pub(crate) fn release_unique(&mut self, slot: u32) {
        if let Some(key) = self.side(slot).and_then(|side| side.unique_key.clone())
            && self.unique.get(&key) == Some(&slot)
        {
            self.unique.remove(&key);
        }
    }

    pub(crate) fn claim_unique(&mut self, slot: u32) {
        if let Some(key) = self.side(slot).and_then(|side| side.unique_key.clone()) {
            self.unique.entry(key).or_insert(slot);
        }
    }

    fn erase(&mut self, slot: u32) {
        let entry = self.slab.get(slot);
        let (seq, hash, kind, has_side) = (entry.seq, entry.marks.id, entry.kind, entry.has_side);
        let side = if has_side { self.sides.remove(&slot) } else { None };
        self.freed.extend(side.as_ref().and_then(|side| side.edition));
        match &mut self.reader {
            // The body is the topic's; others may still need it.
            Some(reader) => reader.done_with.push(seq),
            None => self.freed.push(side.and_then(|side| side.body).unwrap_or(seq)),
        }
        self.index.remove(hash, slot);
        self.kinds.leave(kind);
        self.slab.remove(slot);
    }
}
