//! A state made of the pieces of a snapshot.

use super::{
    Kept, Lease, LeaseImage, MessageImage, Piece, Queue, QueueImage, State, Status,
    image::STATUSES,
    rates::Rates,
    slab::{Entry, Queued},
};
use crate::{At, Marks};
use std::sync::Arc;

impl State {
    /// Takes one piece of a snapshot into a new state; the pieces come in the order of [`State::pieces`].
    pub fn restore(&mut self, piece: Piece) {
        match piece {
            Piece::Topic(image) => self.restore_topic(*image),
            Piece::Shelved(image) => self.restore_shelved(*image),
            Piece::TopicRemembered { dedup, what } => self.restore_topic_remembered(dedup, what),
            Piece::Head { end, time, secret, epoch, inlets, topics } => {
                (self.end, self.time, self.secret, self.epoch) = (end, time, secret, epoch);
                self.expect_topics(topics);
                self.queues.resize_with(inlets as usize, || None);
            }
            Piece::Record { key, value, revision, expires, written } => {
                self.records.put(key, Kept { value, revision, expires, written });
            }
            Piece::Schedule(image) => self.schedules.insert(*image),
            Piece::Settled(mark, how) => self.settled.insert(mark, how),
            Piece::Bulk(id, report) => self.bulks.insert(id, report),
            Piece::Streams(piece) => self.streams.restore(piece),
            Piece::Queue(image) => self.restore_queue(*image),
            Piece::Message(image) => self.restore_message(*image),
            Piece::End => self.queues.iter_mut().flatten().for_each(|queue| queue.index_all()),
            Piece::Remembered { dedup, mut what } => {
                what.fingerprint = Marks::short_fingerprint(what.fingerprint);
                if let Some(queue) = self.last_queue() {
                    let window = queue.dedup_window();
                    queue.finished.insert(dedup, what, window, queue.config.dedup_entries_max);
                }
            }
        }
    }

    fn last_queue(&mut self) -> Option<&mut Queue> {
        self.queues.iter_mut().rev().find_map(Option::as_deref_mut)
    }

    fn restore_queue(&mut self, image: QueueImage) {
        let mut queue = Queue::new(image.id, image.name.clone(), Box::new(image.config));
        queue.reader = image.reader.and_then(|reader| self.restore_reader(image.id, *reader));
        queue.expect(image.messages);
        (queue.paused, queue.books, queue.counts) = (image.paused, image.ended, image.counts);
        queue.rates = Rates::restored(image.rate_full_at, image.key_rates_full_at);
        let at = image.id.0 as usize;
        if at >= self.queues.len() {
            self.queues.resize_with(at + 1, || None);
        }
        self.queues[at] = Some(Box::new(queue));
        self.names.insert(image.name, image.id);
    }

    /// Takes a [`Piece::Message`], of which there may be millions.
    pub(crate) fn restore_message(&mut self, mut image: MessageImage) {
        let lease = image.lease.take();
        let Some(queue) = self.last_queue() else { return };
        let (inlet, seq) = (queue.id, image.seq);
        let body = image.side.as_ref().and_then(|side| side.body);
        let topic = queue.reader.as_ref().map(|reader| reader.topic);
        let slot = queue.restore_message(image);
        if let Some(topic) = topic {
            self.restore_hold(topic, seq, body);
        }
        if let Some(lease) = lease {
            let process = self.processes.entry(lease.holder.process.clone()).or_default();
            process.leases += 1;
            process.suspects += u64::from(lease.suspect);
            let Some(queue) = self.queue_mut(inlet) else { return };
            let at = At { inlet, message: queue.reference(slot) };
            let request = lease.request;
            queue.restore_lease(seq, slot, *lease);
            self.requests.entry(request).or_default().push_back(at);
        }
    }
}

impl Queue {
    fn restore_message(&mut self, image: MessageImage) -> u32 {
        let status = STATUSES.get(image.status as usize).copied().unwrap_or(Status::Waiting);
        if image.side.is_none() && status == Status::Waiting {
            return self.restore_plain(&image);
        }
        let (dead, ended) = image.side.as_ref().map_or((None, None), |side| (side.dead, side.ended));
        let result = image.side.as_ref().and_then(|side| side.result.as_ref());
        let result_bytes = result.map_or(0, |result| result.as_bytes().len() as u64);
        let entry = Entry { has_side: image.side.is_some(), ..self.restored_entry(&image, status) };
        let seq = image.seq;
        let id = entry.marks.id;
        let slot = self.put(entry, image.side);
        self.index_restored(id, slot);
        match (status, dead, ended) {
            (Status::Dead, Some((position, time)), _) => {
                self.release_unique(slot);
                self.bury(slot, position, time);
            }
            (Status::Kept, _, Some((time, _))) => {
                self.detach(slot, seq);
                self.kept.insert((time, seq, slot));
                self.kept_bytes += result_bytes;
            }
            _ => self.arrive(slot, status, seq),
        }
        slot
    }

    fn restored_entry(&mut self, image: &MessageImage, status: Status) -> Entry {
        Entry {
            seq: image.seq,
            marks: image.marks,
            accepted_at: image.accepted_at,
            size: image.size,
            kind: self.kinds.enter(&image.kind),
            priority: image.priority,
            status,
            queued: Queued::No,
            in_line: false,
            has_side: false,
            vacant: false,
        }
    }

    /// A message that waits and has nothing else: what [`Queue::arrive`] does of it, with its entry made once.
    fn restore_plain(&mut self, image: &MessageImage) -> u32 {
        let entry = self.restored_entry(image, Status::Waiting);
        let slot = self.slab.insert(Entry { queued: Queued::Fresh, in_line: true, ..entry });
        self.index_restored(entry.marks.id, slot);
        self.books.waiting += 1;
        self.bytes += u64::from(entry.size);
        self.moment.woken = self.moment.woken.saturating_add(1);
        self.ready.line_up(entry.priority, entry.kind, None, slot);
        slot
    }

    fn restore_lease(&mut self, seq: u64, slot: u32, image: LeaseImage) {
        let lease = Lease {
            slot,
            fairness_key: self.fairness_key(slot),
            nonce: image.nonce,
            epoch: image.epoch,
            attempt: image.attempt,
            holder: Arc::new(image.holder),
            request: image.request,
            term: image.term,
            since: image.since,
            deadline: image.deadline,
            cancel_requested: image.cancel_requested,
            suspect: image.suspect,
        };
        self.deadlines.insert((lease.deadline, seq));
        self.leases.insert(seq, lease);
        if let Some(key) = self.order_key(slot) {
            self.chain(&key).leased = Some(seq);
            self.reconsider(&key, seq);
        }
    }
}
