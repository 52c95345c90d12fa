//! The state: everything that is known of queues and records, without bodies of messages. Pure and synchronous.

mod chain;
mod dead;
mod dedup;
mod image;
mod kinds;
mod lease;
mod queue;
mod rates;
mod ready;
mod recent;
mod records;
mod side;
mod slab;

pub use dedup::Remembered;
pub use image::{LeaseImage, MessageImage, Piece, QueueImage};
pub use queue::{Counts, KEPT_BYTES_MAX, KEPT_MAX};
pub use recent::{BULKS_MAX, LeaseMark, SETTLED_MAX, SettledMark};
pub use side::Side;

pub(crate) use lease::{HandOut, Lease};
pub(crate) use queue::Queue;
pub(crate) use ready::Ask;
pub(crate) use records::{Kept, Records, size as record_size};
pub(crate) use slab::{Queued, Status};

use crate::{At, BulkMark, End, Fact, Given, InletId, MessageRef, Removal, Said};
use hashbrown::HashMap;
use onward_core::{Holder, Inlet, MessageState, ProcessId, RequestId, Timestamp};
use recent::{Bulks, Recent, Settlements};
use std::{sync::Arc, time::Duration};

/// Everything that is known, as the facts so far made it.
#[derive(Debug)]
pub struct State {
    end: u64,
    time: Timestamp,
    pub(crate) secret: Option<[u64; 2]>,
    pub(crate) epoch: u32,
    queues: Vec<Option<Box<Queue>>>,
    names: HashMap<Inlet, InletId>,
    pub(crate) requests: HashMap<RequestId, Vec<At>>,
    pub(crate) processes: HashMap<ProcessId, Process>,
    pub(crate) settled: Settlements,
    pub(crate) bulks: Bulks,
    pub(crate) records: Records,
    freed: Vec<u64>,
    woken: Vec<InletId>,
}

/// What one process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) leases: u64,
    pub(crate) suspects: u64,
}

/// A message body that is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// Whose.
    pub at: At,
    /// It is the latest edition's body of an edited message; otherwise the original's.
    pub edition: bool,
    /// Where it stands.
    pub position: u64,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before any fact.
    pub fn new() -> Self {
        Self {
            end: 0,
            time: Timestamp::default(),
            secret: None,
            epoch: 0,
            queues: Vec::new(),
            names: HashMap::new(),
            requests: HashMap::new(),
            processes: HashMap::new(),
            settled: Recent::new(SETTLED_MAX),
            bulks: Recent::new(BULKS_MAX),
            records: Records::default(),
            freed: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// The position of the last fact applied.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The latest time of any fact applied.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The epoch of the last opening; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What must be appended to open the store: it is founded, where that is new, and gets the next epoch.
    pub fn opening(&self, random: &mut dyn FnMut() -> u64) -> Vec<Fact> {
        let founded = self.secret.is_none().then(|| Fact::Founded { secret: [random(), random()] });
        founded.into_iter().chain([Fact::Opened { epoch: self.epoch.saturating_add(1) }]).collect()
    }

    /// Bodies that nobody needs any more since the last call: to be passed to [`crate::Store::released`].
    pub fn take_freed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.freed)
    }

    pub(crate) fn queue(&self, id: InletId) -> Option<&Queue> {
        self.queues.get(id.0 as usize)?.as_deref()
    }

    /// Makes everything that is due by `now` ready, so that two states of the same facts can be compared.
    pub fn advance(&mut self, now: Timestamp) {
        let (end, time, woken) = (self.end, self.time, &mut self.woken);
        for queue in self.queues.iter_mut().flatten() {
            queue.forget_finished(time);
            queue.promote(now, end);
            if queue.moment.woken > 0 && !std::mem::replace(&mut queue.moment.listed, true) {
                woken.push(queue.id);
            }
        }
    }

    /// Inlets at which something may be handed out that could not before, and how much; since the last call.
    pub(crate) fn take_woken(&mut self, each: &mut dyn FnMut(&Queue, u32)) {
        for id in std::mem::take(&mut self.woken) {
            if let Some(queue) = self.queue_mut(id) {
                let count = std::mem::take(&mut queue.moment.woken);
                queue.moment.listed = false;
                each(queue, count);
            }
        }
    }

    pub(crate) fn queue_mut(&mut self, id: InletId) -> Option<&mut Queue> {
        self.queues.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(crate) fn find(&self, name: &Inlet) -> Option<&Queue> {
        self.names.get(name).and_then(|id| self.queue(*id))
    }

    /// All of them, in the order of declaration.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.iter().flatten().map(|queue| &**queue)
    }

    pub(crate) fn next_inlet(&self) -> InletId {
        InletId(self.queues.len() as u32)
    }

    /// Applies one fact. Facts come in log order, each once; those at or before [`State::end`] change nothing, and
    /// a fact about something that is not there changes nothing.
    pub fn apply(&mut self, fact: &Fact, position: u64, time: Timestamp) {
        if position <= self.end {
            return;
        }
        self.end = position;
        self.time = self.time.max(time);
        match fact {
            Fact::Enqueued { inlet, message, marks, skew_us } => {
                self.with(*inlet, |queue| queue.accept(position, time, message, marks, *skew_us));
            }
            Fact::Leased { request, holder, terms_us, given } => {
                self.apply_leased(*request, holder, terms_us, given, position, time);
            }
            Fact::Settled { at, said, end } => self.apply_settled(*at, *said, end, position, time),
            Fact::Extended { leases, term } => {
                for at in leases {
                    self.with(at.inlet, |queue| queue.extend(at.message.seq, *term, time));
                }
            }
            Fact::Removed { inlet, messages, why, bulk } => {
                self.apply_removed(*inlet, messages, *why, position, time);
                self.mark_bulk(bulk);
            }
            Fact::Redriven { inlet, messages, bulk } => {
                self.with(*inlet, |queue| {
                    for (message, due) in messages {
                        queue.redrive(*message, *due, position, time);
                    }
                });
                self.mark_bulk(bulk);
            }
            _ => self.apply_rare(fact, position, time),
        }
    }

    fn apply_rare(&mut self, fact: &Fact, position: u64, time: Timestamp) {
        match fact {
            Fact::Founded { secret } => self.secret = Some(*secret),
            Fact::Opened { epoch } => {
                self.epoch = *epoch;
                self.queues.iter_mut().flatten().for_each(|queue| queue.rearm(time));
            }
            Fact::Declared { inlet, name, config } => self.apply_declared(*inlet, name, config),
            Fact::Dropped { inlet } => self.apply_dropped(*inlet),
            Fact::Paused { inlet, paused } => self.with(*inlet, |queue| {
                queue.paused = *paused;
                queue.moment.woken = u32::MAX;
            }),
            Fact::CancelRequested { at } => self.with(at.inlet, |queue| {
                if let Some(lease) = queue.leases.get_mut(&at.message.seq) {
                    lease.cancel_requested = true;
                }
            }),
            Fact::Rescheduled { at, due } => {
                self.with(at.inlet, |queue| queue.reschedule(at.message, *due, position, time));
            }
            Fact::Progressed { at, detail } => self.with(at.inlet, |queue| {
                if let Some(slot) = queue.slot_of(at.message) {
                    queue.side_mut(slot).progress = Some(detail.clone());
                }
            }),
            Fact::Edited { at, message } => {
                self.with(at.inlet, |queue| queue.edit_dead(at.message, message, position));
            }
            Fact::Moved { at, edition, .. } => {
                self.with(at.inlet, |queue| queue.move_body(at.message, *edition, position));
            }
            Fact::RecordPut { key, value, expires } => {
                let kept =
                    Kept { value: value.clone(), revision: position, expires: *expires, written: time };
                self.records.put(key.clone(), kept);
            }
            Fact::RecordDeleted { key } => self.records.remove(key),
            Fact::RecordsExpired { keys } => keys.iter().for_each(|key| self.records.remove(key)),
            _ => {}
        }
    }

    fn with(&mut self, inlet: InletId, change: impl FnOnce(&mut Queue)) {
        let Some(queue) = self.queues.get_mut(inlet.0 as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        queue.promote(self.time, self.end);
        change(queue);
        self.freed.append(&mut queue.freed);
        if queue.moment.woken > 0 && !std::mem::replace(&mut queue.moment.listed, true) {
            self.woken.push(inlet);
        }
    }

    fn mark_bulk(&mut self, bulk: &Option<BulkMark>) {
        if let Some(mark) = bulk {
            self.bulks.insert(mark.id, mark.report);
        }
    }

    fn apply_declared(&mut self, id: InletId, name: &Inlet, config: &onward_core::InletConfig) {
        if let Some(queue) = self.queue_mut(id) {
            *queue.config = config.clone();
            queue.moment.woken = u32::MAX;
            return;
        }
        let at = id.0 as usize;
        if at >= self.queues.len() {
            self.queues.resize_with(at + 1, || None);
        }
        self.queues[at] = Some(Box::new(Queue::new(id, name.clone(), Box::new(config.clone()))));
        self.names.insert(name.clone(), id);
    }

    fn apply_dropped(&mut self, id: InletId) {
        let Some(queue) = self.queues.get_mut(id.0 as usize).and_then(Option::take) else { return };
        self.names.remove(&queue.name);
        for (seq, lease) in &queue.leases {
            self.forget_lease(id, *seq, lease);
        }
        for slot in queue.slab.slots() {
            self.freed.push(queue.original_body(slot));
            self.freed.extend(queue.side(slot).and_then(|side| side.edition));
        }
    }

    fn apply_leased(
        &mut self,
        request: RequestId,
        holder: &Holder,
        terms_us: &[u64],
        given: &[Given],
        position: u64,
        time: Timestamp,
    ) {
        let with = HandOut { request, holder: Arc::new(holder.clone()), epoch: self.epoch, position, time };
        let mut process = self.processes.get(&holder.process).copied().unwrap_or_default();
        for (given, term) in given.iter().zip(terms_us) {
            let now = self.time;
            let Some(queue) = self.queue_mut(given.at.inlet) else { continue };
            queue.promote(now, position);
            if let Some(suspect) = queue.hand_out(given, Duration::from_micros(*term), &with) {
                process.leases += 1;
                process.suspects += u64::from(suspect);
            }
        }
        self.processes.insert(holder.process.clone(), process);
        self.requests.insert(request, given.iter().map(|given| given.at).collect());
    }

    fn apply_settled(&mut self, at: At, said: Option<Said>, end: &End, position: u64, time: Timestamp) {
        let mut ended: Option<(Lease, MessageState)> = None;
        self.with(at.inlet, |queue| ended = queue.end_lease(at.message, end, position, time));
        let Some((lease, state)) = ended else { return };
        if let Some(said) = said {
            let due = match end {
                End::Retried { due, .. } => Some(*due),
                End::Released { due } => *due,
                _ => None,
            };
            self.settled.insert(lease.mark(at.message.seq), SettledMark { said, state, due });
        }
        self.forget_lease(at.inlet, at.message.seq, &lease);
    }

    fn forget_lease(&mut self, inlet: InletId, seq: u64, lease: &Lease) {
        let process = &lease.holder.process;
        if let Some(held) = self.processes.get_mut(process) {
            held.leases = held.leases.saturating_sub(1);
            held.suspects = held.suspects.saturating_sub(u64::from(lease.suspect));
            if held.leases == 0 {
                self.processes.remove(process);
            }
        }
        if let Some(given) = self.requests.get_mut(&lease.request) {
            given.retain(|at| at.inlet != inlet || at.message.seq != seq);
            if given.is_empty() {
                self.requests.remove(&lease.request);
            }
        }
    }

    fn apply_removed(
        &mut self,
        inlet: InletId,
        messages: &[MessageRef],
        why: Removal,
        position: u64,
        time: Timestamp,
    ) {
        self.with(inlet, |queue| {
            for message in messages {
                if let Some(slot) = queue.slot_of(*message) {
                    queue.remove(slot, why, position, time);
                }
            }
        });
    }
}

impl Queue {
    /// Removes a message that has no lease.
    fn remove(&mut self, slot: u32, why: Removal, position: u64, time: Timestamp) {
        match self.slab.get(slot).status {
            Status::Leased | Status::Gone => return,
            Status::Kept => return self.forget_kept(slot),
            _ => {}
        }
        if why == Removal::Forgotten {
            return;
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

    /// Delayed messages that are due by `now` are waiting: no fact says so, the time alone does.
    pub(crate) fn promote(&mut self, now: Timestamp, position: u64) {
        while let Some(&(due, _, slot)) = self.due.first() {
            if due > now {
                return;
            }
            self.leave(slot);
            self.side_mut(slot).due = None;
            self.arrive(slot, Status::Waiting, position);
        }
    }

    fn reschedule(&mut self, message: MessageRef, due: Timestamp, position: u64, time: Timestamp) {
        let Some(slot) = self.slot_of(message) else { return };
        if !matches!(self.slab.get(slot).status, Status::Waiting | Status::Delayed) {
            return;
        }
        self.leave(slot);
        let later = due > time;
        self.side_mut(slot).due = later.then_some(due);
        self.arrive(slot, if later { Status::Delayed } else { Status::Waiting }, position);
    }

    fn move_body(&mut self, message: MessageRef, edition: bool, position: u64) {
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
