//! Dead letters: set aside with their causes, edited, redriven.

use super::{queue::Queue, slab::Status};
use crate::MessageRef;
use onward_core::{Cause, CauseKind, Failure, Message, Timestamp};

impl Queue {
    /// A message, out of its state, becomes a dead letter; later ones of its order key follow where the inlet says so.
    pub(crate) fn die(&mut self, slot: u32, cause: &Cause, position: u64, time: Timestamp) {
        let most = self.config.causes_max;
        self.side_mut(slot).add_cause(cause, most);
        self.release_unique(slot);
        let followers = self.bury(slot, position, time);
        for follower in followers {
            self.leave(follower);
            self.follow_to_dead(follower, position, time);
        }
    }

    /// Sets a message, out of every state, aside behind the dead head of its order key.
    pub(crate) fn follow_to_dead(&mut self, slot: u32, position: u64, time: Timestamp) {
        let failure = Failure::new(
            CauseKind::BehindDeadHead,
            "an earlier message of this order key is a dead letter; it is redriven with that one",
        );
        let cause = Cause { failure, attempt: 0, at: time, worker: "".into() };
        let most = self.config.causes_max;
        self.side_mut(slot).add_cause(&cause, most);
        self.release_unique(slot);
        self.bury(slot, position, time);
    }

    /// Answers the later ones of the same order key that must follow.
    pub(crate) fn bury(&mut self, slot: u32, position: u64, time: Timestamp) -> Vec<u32> {
        self.slab.change(slot, |entry| entry.status = Status::Dead);
        let seq = self.slab.seq(slot);
        self.books.dead += 1;
        self.moment.woken = self.moment.woken.saturating_add(1);
        self.dead.insert((position, seq), slot);
        self.side_mut(slot).dead = Some((position, time));
        let Some(key) = self.order_key(slot) else { return Vec::new() };
        let sets_aside = self.sets_aside();
        let chain = self.chain(&key);
        chain.members.remove(&seq);
        chain.leased = chain.leased.filter(|leased| *leased != seq);
        chain.dead.insert(seq, slot);
        let followers = if sets_aside { chain.members.values().copied().collect() } else { Vec::new() };
        self.reconsider(&key, position);
        followers
    }

    /// A dead letter has a new edition, whose body stands at `position`.
    pub(crate) fn edit_dead(&mut self, message: MessageRef, edition: &Message, position: u64) {
        let Some(slot) = self.slot_of(message) else { return };
        let kind = self.kinds.enter(&edition.kind);
        let size = u32::try_from(edition.size()).unwrap_or(u32::MAX);
        let old_kind = self.slab.change(slot, |entry| {
            entry.size = size;
            std::mem::replace(&mut entry.kind, kind)
        });
        self.kinds.leave(old_kind);
        let side = self.side_mut(slot);
        side.edition_number = edition.edition;
        let replaced = side.edition.replace(position);
        self.freed.extend(replaced);
    }

    /// A dead letter is work again at `due`, with its history; attempts and crashes begin anew.
    pub(crate) fn redrive(&mut self, message: MessageRef, due: Timestamp, position: u64, time: Timestamp) {
        let Some(slot) = self.slot_of(message).filter(|slot| self.slab.get(*slot).status == Status::Dead)
        else {
            return;
        };
        self.leave(slot);
        let side = self.side_mut(slot);
        (side.attempts, side.crashes, side.suspect) = (0, 0, false);
        side.due = (due > time).then_some(due);
        self.claim_unique(slot);
        if let Some(key) = self.order_key(slot) {
            self.chain(&key).members.insert(message.seq, slot);
        }
        self.arrive(slot, if due > time { Status::Delayed } else { Status::Waiting }, position);
    }
}
