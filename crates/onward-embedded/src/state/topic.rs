//! One topic: its kept messages, who holds bodies beyond that, and how far its subscriptions are.

use super::{
    dedup::{Finished, Remembered},
    kinds::Kinds,
    shelf::{Shelf, Shelved},
    side::Side,
};
use crate::{InletId, Marks, TopicId};
use hashbrown::HashMap;
use onward_core::{Filter, Message, Name, Timestamp, TopicConfig};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// Most messages that are let go in one step; the next step follows at once.
pub(crate) const TRIM_MAX: u64 = 4096;

/// One topic. A message's body stands once, at the position of the fact that published it or where it was moved to.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) id: TopicId,
    pub(crate) name: Name,
    pub(crate) config: Box<TopicConfig>,
    pub(crate) shelf: Shelf,
    /// By position: what only some have.
    pub(super) sides: HashMap<u64, Arc<Side>>,
    pub(crate) kinds: Kinds,
    pub(crate) sources: Kinds,
    /// Bodies that were copied forward.
    pub(super) moved: HashMap<u64, u64>,
    /// How many subscriptions have a message in hand: its body is needed even when the topic keeps it no longer.
    pub(super) holds: HashMap<u64, u32>,
    pub(crate) finished: Finished,
    pub(crate) bytes: u64,
    /// How far each subscription is: without a filter, and with one.
    pub(super) plain: BTreeSet<(u64, InletId)>,
    pub(super) filtered: BTreeSet<(u64, InletId)>,
}

impl Topic {
    pub(crate) fn new(id: TopicId, name: Name, config: Box<TopicConfig>) -> Self {
        Self {
            id,
            name,
            config,
            shelf: Shelf::default(),
            sides: HashMap::new(),
            kinds: Kinds::default(),
            sources: Kinds::default(),
            moved: HashMap::new(),
            holds: HashMap::new(),
            finished: Finished::default(),
            bytes: 0,
            plain: BTreeSet::new(),
            filtered: BTreeSet::new(),
        }
    }

    pub(crate) fn publish(
        &mut self,
        position: u64,
        time: Timestamp,
        message: &Message,
        marks: &Marks,
        skew_us: i64,
    ) {
        let own_key = message.dedup_key.is_some();
        let what = Remembered {
            id_hash: marks.id,
            fingerprint: marks.fingerprint,
            seq: position,
            at: time,
            id: own_key.then(|| message.id.clone()),
        };
        self.finished.insert(marks.dedup, what, self.dedup_window(), self.config.dedup_entries_max);
        let side = Side::of_published(message, skew_us);
        let entry = Shelved {
            seq: position,
            id_hash: marks.id,
            accepted_at: time,
            size: u32::try_from(message.size()).unwrap_or(u32::MAX),
            kind: self.kinds.enter(&message.kind),
            source: self.sources.enter(&message.source),
            priority: message.priority.get(),
            has_side: side.is_some(),
        };
        self.put(entry, side.map(Arc::from));
    }

    pub(super) fn put(&mut self, entry: Shelved, side: Option<Arc<Side>>) {
        if let Some(side) = side {
            self.sides.insert(entry.seq, side);
        }
        self.bytes += u64::from(entry.size);
        self.shelf.push(entry);
    }

    pub(crate) fn dedup_window(&self) -> Duration {
        Duration::from_millis(self.config.dedup_window_ms)
    }

    pub(crate) fn side(&self, entry: &Shelved) -> Option<&Arc<Side>> {
        if entry.has_side { self.sides.get(&entry.seq) } else { None }
    }

    /// Whether a filter takes a message, as far as its type and source tell.
    pub(crate) fn takes(&self, filter: &Filter, entry: &Shelved) -> bool {
        (filter.types.is_empty() && filter.sources.is_empty())
            || filter.takes(self.kinds.name(entry.kind), self.sources.name(entry.source))
    }

    /// Where a body stands.
    pub(crate) fn body(&self, seq: u64) -> u64 {
        self.moved.get(&seq).copied().unwrap_or(seq)
    }

    /// Where a body stands; `None` when nobody needs it.
    pub(crate) fn body_at(&self, seq: u64) -> Option<u64> {
        (self.keeps(seq) || self.holds.contains_key(&seq)).then(|| self.body(seq))
    }

    fn keeps(&self, seq: u64) -> bool {
        self.shelf.get(self.shelf.floor()).is_some_and(|oldest| oldest.seq <= seq)
    }

    /// Calls `each` with the sequence and the place of every body that is needed.
    pub(crate) fn each_body(&self, each: &mut dyn FnMut(u64, u64)) {
        let kept = (self.shelf.floor()..self.shelf.head()).filter_map(|number| self.shelf.get(number));
        kept.for_each(|entry| each(entry.seq, self.body(entry.seq)));
        let held = self.holds.keys().filter(|seq| !self.keeps(**seq));
        held.for_each(|seq| each(*seq, self.body(*seq)));
    }

    /// A subscription has this message in hand.
    pub(crate) fn hold(&mut self, seq: u64) {
        *self.holds.entry(seq).or_default() += 1;
    }

    /// A subscription is done with this message.
    pub(crate) fn let_go(&mut self, seq: u64, freed: &mut Vec<u64>) {
        if let Some(count) = self.holds.get_mut(&seq) {
            *count -= 1;
            if *count > 0 {
                return;
            }
            self.holds.remove(&seq);
        }
        if !self.keeps(seq) {
            freed.push(self.moved.remove(&seq).unwrap_or(seq));
        }
    }

    /// A body was copied forward.
    pub(super) fn move_body(&mut self, seq: u64, position: u64) -> u64 {
        self.moved.insert(seq, position).unwrap_or(seq)
    }

    /// Lets the oldest message go.
    pub(super) fn drop_oldest(&mut self, freed: &mut Vec<u64>) {
        let Some(entry) = self.shelf.pop() else { return };
        self.sides.remove(&entry.seq);
        self.kinds.leave(entry.kind);
        self.sources.leave(entry.source);
        self.bytes -= u64::from(entry.size);
        if !self.holds.contains_key(&entry.seq) {
            freed.push(self.moved.remove(&entry.seq).unwrap_or(entry.seq));
        }
    }

    /// Says how far a subscription is.
    pub(super) fn set_low(&mut self, inlet: InletId, filtered: bool, before: Option<u64>, low: Option<u64>) {
        let set = if filtered { &mut self.filtered } else { &mut self.plain };
        if let Some(before) = before {
            set.remove(&(before, inlet));
        }
        if let Some(low) = low {
            set.insert((low, inlet));
        }
    }

    /// Every subscription.
    pub(crate) fn readers(&self) -> impl Iterator<Item = InletId> + '_ {
        self.plain.iter().chain(&self.filtered).map(|(_, inlet)| *inlet)
    }

    pub(crate) fn readers_count(&self) -> u64 {
        (self.plain.len() + self.filtered.len()) as u64
    }

    fn retention(&self) -> Option<Duration> {
        self.config.retention_ms.map(Duration::from_millis)
    }

    fn keeps_until_done(&self) -> bool {
        self.config.retention_ms.is_none() && self.config.retention_bytes.is_none()
    }

    /// The number before which everything may be let go now, at most [`TRIM_MAX`] beyond the oldest.
    pub(super) fn trim_to(&self, now: Timestamp) -> u64 {
        let (floor, head) = (self.shelf.floor(), self.shelf.head());
        let most = head.min(floor + TRIM_MAX);
        if self.keeps_until_done() {
            let lows = self.plain.first().into_iter().chain(self.filtered.first());
            return lows.map(|(low, _)| *low).min().unwrap_or(head).clamp(floor, most);
        }
        let mut excess = self.config.retention_bytes.map_or(0, |most| self.bytes.saturating_sub(most));
        let (keep, mut number) = (self.retention(), floor);
        while number < most {
            let Some(entry) = self.shelf.get(number) else { break };
            let old = keep.is_some_and(|keep| entry.accepted_at.plus(keep) <= now);
            if excess == 0 && !old {
                break;
            }
            excess = excess.saturating_sub(u64::from(entry.size));
            number += 1;
        }
        number
    }

    /// When something may be let go next.
    pub(crate) fn next_trim(&self, now: Timestamp) -> Option<Timestamp> {
        if self.trim_to(now) > self.shelf.floor() {
            return Some(now);
        }
        let oldest = self.shelf.get(self.shelf.floor())?;
        Some(oldest.accepted_at.plus(self.retention()?))
    }
}
