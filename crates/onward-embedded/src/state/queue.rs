//! One queue: its messages by slot, what it has in each state, and its books.

use super::{
    chain::Chain,
    dedup::Finished,
    index::Index,
    kinds::Kinds,
    leases::Leases,
    rates::Rates,
    reader::Reader,
    ready::Ready,
    side::Side,
    slab::{Slab, Status},
};
use crate::{InletId, Marks, MessageRef};
use hashbrown::HashMap;
use onward_core::{Books, Inlet, InletConfig, Key, OrderPolicy, ProcessId, StuckHead, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Most finished messages kept for their results, per inlet; beyond it the oldest are forgotten early.
pub const KEPT_MAX: usize = 100_000;
/// Most bytes of results kept, per inlet; beyond it the oldest are forgotten early.
pub const KEPT_BYTES_MAX: u64 = 64 << 20;

/// When something is to happen to a message: time, sequence, slot.
type Timers = BTreeSet<(Timestamp, u64, u32)>;

/// One inlet and everything in it.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) id: InletId,
    pub(crate) name: Inlet,
    pub(crate) config: Box<InletConfig>,
    pub(crate) paused: bool,
    pub(crate) slab: Slab,
    pub(super) index: Index,
    /// While a snapshot is brought back: what is to be put into the index, by a part of the hash.
    pub(super) unindexed: Vec<Vec<(u64, u32)>>,
    pub(super) own_dedup: HashMap<u64, u32>,
    pub(crate) kinds: Kinds,
    pub(crate) ready: Ready,
    pub(crate) due: Timers,
    pub(crate) expiry: Timers,
    pub(crate) leases: Leases,
    pub(crate) deadlines: BTreeSet<(Timestamp, u64)>,
    /// By position of death and sequence.
    pub(crate) dead: BTreeMap<(u64, u64), u32>,
    pub(crate) kept: Timers,
    pub(crate) kept_bytes: u64,
    pub(super) sides: HashMap<u32, Arc<Side>>,
    pub(crate) chains: HashMap<Key, Chain>,
    pub(super) unique: HashMap<Key, u32>,
    pub(crate) finished: Finished,
    pub(crate) rates: Rates,
    pub(crate) books: Books,
    pub(crate) bytes: u64,
    pub(crate) counts: Counts,
    pub(crate) freed: Vec<u64>,
    /// Of a subscription: its place in its topic.
    pub(crate) reader: Option<Box<Reader>>,
    pub(crate) moment: Moment,
}

/// Counts that only rise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Hand-outs.
    pub deliveries: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Failures on an at-most-once inlet.
    pub lost: u64,
}

/// What belongs to this run of the program and not to the log.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    /// Messages that became ready, or could be handed out again, since somebody looked.
    pub(crate) woken: u32,
    /// It stands in the list of those where somebody should look.
    pub(crate) listed: bool,
    /// Repeats recognised.
    pub(crate) duplicates: u64,
    /// The process that gets nothing new until it is free to take a suspect alone, and until when it is believed to ask.
    pub(crate) drainer: Option<(ProcessId, Timestamp)>,
}

impl Queue {
    pub(crate) fn new(id: InletId, name: Inlet, config: Box<InletConfig>) -> Self {
        Self {
            id,
            name,
            config,
            paused: false,
            slab: Slab::default(),
            index: Index::default(),
            unindexed: Vec::new(),
            own_dedup: HashMap::new(),
            kinds: Kinds::default(),
            ready: Ready::default(),
            due: Timers::new(),
            expiry: Timers::new(),
            leases: Leases::default(),
            deadlines: BTreeSet::new(),
            dead: BTreeMap::new(),
            kept: Timers::new(),
            kept_bytes: 0,
            sides: HashMap::new(),
            chains: HashMap::new(),
            unique: HashMap::new(),
            finished: Finished::default(),
            rates: Rates::default(),
            books: Books::default(),
            bytes: 0,
            counts: Counts::default(),
            freed: Vec::new(),
            reader: None,
            moment: Moment::default(),
        }
    }

    pub(crate) fn side(&self, slot: u32) -> Option<&Side> {
        if !self.slab.get(slot).has_side {
            return None;
        }
        self.sides.get(&slot).map(|side| &**side)
    }

    pub(crate) fn side_mut(&mut self, slot: u32) -> &mut Side {
        self.slab.change(slot, |entry| entry.has_side = true);
        Arc::make_mut(self.sides.entry(slot).or_default())
    }

    /// Lets go of finished ids that are past the window. It changes no answer, only memory.
    pub(crate) fn forget_finished(&mut self, now: Timestamp) {
        let window = self.dedup_window();
        self.finished.forget(now, window);
    }

    pub(crate) fn reference(&self, slot: u32) -> MessageRef {
        let entry = self.slab.get(slot);
        MessageRef { seq: entry.seq, id_hash: entry.marks.id }
    }

    pub(crate) fn slot_of(&self, message: MessageRef) -> Option<u32> {
        self.index.of_hash(message.id_hash).find(|slot| self.slab.seq(*slot) == message.seq)
    }

    /// Messages of an id hash, unfinished ones first, then the newest kept ones.
    pub(crate) fn slot_of_id(&self, id_hash: u64) -> Option<u32> {
        let same = self.index.of_hash(id_hash).filter(|slot| self.slab.id_hash(*slot) == id_hash);
        same.min_by_key(|slot| {
            let entry = self.slab.get(*slot);
            (entry.status == Status::Kept, std::cmp::Reverse(entry.seq))
        })
    }

    /// The message that is there and has the same dedup hash.
    /// Has the places fetched at which these messages would be found.
    pub(crate) fn fetch<'a>(&self, marks: impl Iterator<Item = &'a Marks>) {
        let found = marks.filter(|marks| self.index.may_have(marks.id)).count();
        std::hint::black_box(found);
    }

    pub(crate) fn slot_of_dedup(&self, marks: &Marks, own_key: bool) -> Option<u32> {
        if own_key {
            return self.own_dedup.get(&marks.dedup).copied();
        }
        self.index.of_hash(marks.id).find(|slot| {
            let entry = self.slab.get(*slot);
            entry.marks.dedup == marks.dedup && entry.marks.id == marks.id && entry.status != Status::Kept
        })
    }

    pub(crate) fn slot_of_unique(&self, key: &Key) -> Option<u32> {
        self.unique.get(key).copied()
    }

    /// Unfinished messages, dead letters not counted.
    pub(crate) fn depth(&self) -> u64 {
        self.books.waiting + self.books.delayed + self.books.leased
    }

    pub(crate) fn stopped_dead_full(&self) -> bool {
        self.books.dead >= self.config.dead_max
    }

    /// A subscription remembers no finished ids: its topic takes each message once, and its place says what it has had.
    pub(crate) fn dedup_window(&self) -> Duration {
        let window = if self.reader.is_some() { 0 } else { self.config.dedup_window_ms };
        Duration::from_millis(window)
    }

    /// Where the latest body of a message stands.
    pub(crate) fn body(&self, slot: u32) -> u64 {
        let side = self.side(slot);
        side.and_then(|side| side.edition.or(side.body)).unwrap_or_else(|| self.slab.seq(slot))
    }

    /// Where the first edition's body stands.
    pub(crate) fn original_body(&self, slot: u32) -> u64 {
        self.side(slot).and_then(|side| side.body).unwrap_or_else(|| self.slab.seq(slot))
    }

    /// Sequences and latest bodies of the dead letters, or of the others that have no lease.
    pub(crate) fn bodies(&self, dead: bool) -> Vec<(u64, u64)> {
        let wanted = |slot: &u32| match self.slab.get(*slot).status {
            Status::Dead => dead,
            Status::Waiting | Status::Delayed => !dead,
            _ => false,
        };
        let slots = self.slab.slots().filter(wanted);
        slots.map(|slot| (self.slab.get(slot).seq, self.body(slot))).collect()
    }

    pub(crate) fn fairness_key(&self, slot: u32) -> Option<Key> {
        self.side(slot)?.fairness_key.clone()
    }

    pub(crate) fn order_key(&self, slot: u32) -> Option<Key> {
        match self.config.order {
            OrderPolicy::Unordered => None,
            OrderPolicy::ByKey { .. } => self.side(slot)?.order_key.clone(),
        }
    }

    pub(crate) fn sets_aside(&self) -> bool {
        matches!(self.config.order, OrderPolicy::ByKey { stuck_head: StuckHead::SetAside })
    }

    /// Waiting ones that are held back behind their order key.
    pub(crate) fn blocked(&self) -> u64 {
        self.books.waiting - (self.ready.len() as u64).min(self.books.waiting)
    }
}
