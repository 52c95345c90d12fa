//! From facts to the state.

use super::{HandOut, Kept, Lease, Queue, SettledMark, State, streams::Entry};
use crate::{At, BulkMark, End, Fact, Given, InletId, MessageRef, Removal, Said};
use onward_core::{Holder, Inlet, MessageState, RequestId, Timestamp};
use std::{sync::Arc, time::Duration};

impl State {
    /// Applies one fact. Facts come in log order, each once; those at or before [`State::end`] change nothing, and
    /// a fact about something that is not there changes nothing.
    pub fn apply(&mut self, fact: &Fact, position: u64, time: Timestamp) {
        if position <= self.end {
            return;
        }
        self.end = position;
        self.time = self.time.max(time);
        match fact {
            Fact::Published { topic, message, marks, skew_us } => {
                self.apply_published(*topic, message, marks, *skew_us, position, time);
            }
            Fact::Drawn { inlet, from, until, unfit } => {
                self.apply_drawn(*inlet, (*from, *until), unfit, position, time);
            }
            Fact::Enqueued { inlet, message, marks, skew_us } => {
                self.with(*inlet, |queue| queue.accept(position, time, message, marks, *skew_us));
            }
            Fact::Appended { stream, revision, message, tags, mark } => {
                let (stream, revision, kind, mark) = (*stream, *revision, &message.kind, *mark);
                let entry = Entry { stream, revision, kind, tags, mark };
                self.streams.appended(entry, position, self.time);
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
                if let Some(lease) = queue.leases.get_mut(at.message.seq) {
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
            Fact::ScheduleSet { .. } | Fact::ScheduleRemoved { .. } | Fact::ScheduleTicked { .. } => {
                self.schedules.apply(fact);
            }
            Fact::StreamNamed { stream, name } => self.streams.named(*stream, name),
            Fact::Truncated { stream, before } => self.streams.truncated(*stream, *before, &mut self.freed),
            _ => self.apply_topic(fact, position, time),
        }
    }

    pub(super) fn with(&mut self, inlet: InletId, change: impl FnOnce(&mut Queue)) {
        let Some(queue) = self.queues.get_mut(inlet.0 as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        queue.promote(self.time, self.end);
        change(queue);
        self.freed.append(&mut queue.freed);
        if queue.reader.is_some() {
            super::topics::tell_topic(queue, &mut self.topics, &mut self.freed);
        }
        if queue.moment.woken > 0 && !std::mem::replace(&mut queue.moment.listed, true) {
            self.woken.push(inlet);
        }
    }

    pub(super) fn mark_bulk(&mut self, bulk: &Option<BulkMark>) {
        if let Some(mark) = bulk {
            self.bulks.insert(mark.id, mark.report);
        }
    }

    pub(super) fn apply_declared(&mut self, id: InletId, name: &Inlet, config: &onward_core::InletConfig) {
        if let Some(queue) = self.queue_mut(id) {
            *queue.config = config.clone();
            queue.ready.recall_all();
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
        for (seq, lease) in queue.leases.iter() {
            self.forget_lease(id, *seq, lease);
        }
        for slot in queue.slab.slots() {
            self.freed.extend(queue.side(slot).and_then(|side| side.edition));
            if queue.reader.is_none() {
                self.freed.push(queue.original_body(slot));
            }
        }
        self.leave_topic(&queue);
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

    pub(super) fn forget_lease(&mut self, inlet: InletId, seq: u64, lease: &Lease) {
        let process = &lease.holder.process;
        if let Some(held) = self.processes.get_mut(process) {
            held.leases = held.leases.saturating_sub(1);
            held.suspects = held.suspects.saturating_sub(u64::from(lease.suspect));
            if held.leases == 0 {
                self.processes.remove(process);
            }
        }
        if let Some(given) = self.requests.get_mut(&lease.request) {
            let is_it = |at: &At| at.inlet == inlet && at.message.seq == seq;
            // Mostly they end in the order in which they were given, so that it is the first.
            if let Some(place) = given.iter().position(is_it) {
                given.remove(place);
            }
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
