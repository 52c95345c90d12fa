//! One queue: its messages by slot, what it has in each state, and its books.

use super::{
    chain::Chain,
    dedup::{Finished, Remembered},
    kinds::Kinds,
    lease::Lease,
    rates::Rates,
    ready::Ready,
    side::Side,
    slab::{Entry, Queued, Slab, Status},
};
use crate::{InletId, Marks, MessageRef};
use hashbrown::{HashMap, HashTable};
use onward_core::{
    Books, Inlet, InletConfig, Key, Message, MessageState, OrderPolicy, Payload, ProcessId, StuckHead,
    Timestamp,
};
use std::{
    collections::{BTreeMap, BTreeSet},
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
    index: HashTable<u32>,
    own_dedup: HashMap<u64, u32>,
    pub(crate) kinds: Kinds,
    pub(crate) ready: Ready,
    pub(crate) due: Timers,
    pub(crate) expiry: Timers,
    pub(crate) leases: HashMap<u64, Lease>,
    pub(crate) deadlines: BTreeSet<(Timestamp, u64)>,
    /// By position of death and sequence.
    pub(crate) dead: BTreeMap<(u64, u64), u32>,
    pub(crate) kept: Timers,
    pub(crate) kept_bytes: u64,
    sides: HashMap<u32, Box<Side>>,
    pub(crate) chains: HashMap<Key, Chain>,
    unique: HashMap<Key, u32>,
    pub(crate) finished: Finished,
    pub(crate) rates: Rates,
    pub(crate) books: Books,
    pub(crate) bytes: u64,
    pub(crate) counts: Counts,
    pub(crate) freed: Vec<u64>,
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
            index: HashTable::new(),
            own_dedup: HashMap::new(),
            kinds: Kinds::default(),
            ready: Ready::default(),
            due: Timers::new(),
            expiry: Timers::new(),
            leases: HashMap::new(),
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
            moment: Moment::default(),
        }
    }

    // ---- looking ----

    pub(crate) fn side(&self, slot: u32) -> Option<&Side> {
        if !self.slab.get(slot).has_side {
            return None;
        }
        self.sides.get(&slot).map(|side| &**side)
    }

    pub(crate) fn side_mut(&mut self, slot: u32) -> &mut Side {
        self.slab.get_mut(slot).has_side = true;
        self.sides.entry(slot).or_default()
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
        self.index.find(message.id_hash, |slot| self.slab.get(*slot).seq == message.seq).copied()
    }

    /// Messages of an id hash, unfinished ones first, then the newest kept ones.
    pub(crate) fn slot_of_id(&self, id_hash: u64) -> Option<u32> {
        let same = self.index.iter_hash(id_hash).filter(|slot| self.slab.get(**slot).marks.id == id_hash);
        same.copied().min_by_key(|slot| {
            let entry = self.slab.get(*slot);
            (entry.status == Status::Kept, std::cmp::Reverse(entry.seq))
        })
    }

    /// The message that is there and has the same dedup hash.
    pub(crate) fn slot_of_dedup(&self, marks: &Marks, own_key: bool) -> Option<u32> {
        if own_key {
            return self.own_dedup.get(&marks.dedup).copied();
        }
        let same = self.index.iter_hash(marks.id).find(|slot| {
            let entry = self.slab.get(**slot);
            entry.marks.dedup == marks.dedup && entry.marks.id == marks.id && entry.status != Status::Kept
        });
        same.copied()
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

    pub(crate) fn dedup_window(&self) -> Duration {
        Duration::from_millis(self.config.dedup_window_ms)
    }

    /// Where the latest body of a message stands.
    pub(crate) fn body(&self, slot: u32) -> u64 {
        let side = self.side(slot);
        side.and_then(|side| side.edition.or(side.body)).unwrap_or_else(|| self.slab.get(slot).seq)
    }

    /// Where the first edition's body stands.
    pub(crate) fn original_body(&self, slot: u32) -> u64 {
        self.side(slot).and_then(|side| side.body).unwrap_or_else(|| self.slab.get(slot).seq)
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

    // ---- coming in ----

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
        let delayed = self.side(slot).and_then(|side| side.due).is_some_and(|due| due > time);
        match self.order_key(slot) {
            Some(key) if self.sets_aside() && self.chain(&key).is_stuck() => {
                self.follow_to_dead(slot, position, time);
            }
            _ => self.arrive(slot, if delayed { Status::Delayed } else { Status::Waiting }, position),
        }
    }

    /// Puts an entry in without a state: it belongs to no count yet.
    pub(crate) fn insert(&mut self, entry: Entry, side: Option<Box<Side>>) -> u32 {
        let (marks, seq) = (entry.marks, entry.seq);
        let slot = self.slab.insert(entry);
        let slab = &self.slab;
        self.index.insert_unique(marks.id, slot, |slot| slab.get(*slot).marks.id);
        if let Some(side) = side {
            if side.own_dedup_key {
                self.own_dedup.insert(marks.dedup, slot);
            }
            if let Some(key) = &side.unique_key {
                self.unique.entry(key.clone()).or_insert(slot);
            }
            self.sides.insert(slot, side);
            if let Some(key) = self.order_key(slot) {
                self.chain(&key).members.insert(seq, slot);
            }
        }
        slot
    }

    pub(crate) fn chain(&mut self, key: &Key) -> &mut Chain {
        self.chains.entry_ref(key).or_default()
    }

    // ---- changing state ----

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
        let fairness = self.side(slot).and_then(|side| side.fairness_key.clone());
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
        let entry = self.slab.get_mut(slot);
        entry.status = status;
        let (seq, size) = (entry.seq, u64::from(entry.size));
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
        if position == self.slab.get(slot).seq && !suspect {
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
            let fairness = self.side(slot).and_then(|side| side.fairness_key.clone());
            self.ready.remove(&mut self.slab, slot, &fairness);
        }
        self.chain(key).queued = want_seq;
        if let Some(slot) = want {
            self.queue_up(slot, position);
        }
    }

    // ---- going out ----

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
        self.slab.get_mut(slot).status = Status::Kept;
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
        if has_side && let Some(side) = self.sides.remove(&slot) {
            self.freed.push(side.body.unwrap_or(seq));
            self.freed.extend(side.edition);
        } else {
            self.freed.push(seq);
        }
        if let Ok(found) = self.index.find_entry(hash, |found| *found == slot) {
            found.remove();
        }
        self.kinds.leave(kind);
        self.slab.remove(slot);
    }
}
