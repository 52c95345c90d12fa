//! Snapshots: a state as a row of pieces, and a state made of them again.

use super::{
    Body, Counts, Kept, Lease, LeaseMark, Queue, ReaderImage, Remembered, ScheduleImage, SettledMark,
    ShelvedImage, Side, State, Status, StreamPiece, TopicImage,
};
use crate::{At, InletId, Marks};
use bytes::Bytes;
use onward_core::{
    Books, BulkId, BulkReport, Holder, Inlet, InletConfig, Key, RecordKey, RequestId, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// One piece of a snapshot. All pieces of a state, in order, make the same state again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Piece {
    /// How far the facts went that the snapshot holds: the first piece.
    Head {
        /// The position of the last fact applied.
        end: u64,
        /// The time of the last fact applied.
        time: Timestamp,
        /// The key of every hash.
        secret: Option<[u64; 2]>,
        /// The epoch of the last opening.
        epoch: u32,
        /// How many inlet numbers were given.
        inlets: u32,
        /// How many topic numbers were given.
        #[serde(default)]
        topics: u32,
    },
    /// A topic; its messages and remembered ids follow.
    Topic(Box<TopicImage>),
    /// A message that the topic keeps.
    Shelved(Box<ShelvedImage>),
    /// A published message that the topic still remembers.
    TopicRemembered {
        /// Hash of what deduplicates it.
        dedup: u64,
        /// What is remembered.
        what: Remembered,
    },
    /// An inlet; its messages and remembered ids follow.
    Queue(Box<QueueImage>),
    /// A message of the inlet.
    Message(Box<MessageImage>),
    /// A finished message that is still remembered.
    Remembered {
        /// Hash of what deduplicates it.
        dedup: u64,
        /// What is remembered.
        what: Remembered,
    },
    /// A settlement that a repeat is compared with.
    Settled(LeaseMark, SettledMark),
    /// A bulk operation that a repeat is compared with.
    Bulk(BulkId, BulkReport),
    /// A record.
    Record {
        /// Its key.
        key: RecordKey,
        /// Its value.
        value: Bytes,
        /// Its revision.
        revision: u64,
        /// When it is forgotten.
        expires: Option<Timestamp>,
        /// When it was written.
        written: Timestamp,
    },
    /// A schedule.
    Schedule(Box<ScheduleImage>),
    /// Some of what is known of streams.
    Streams(StreamPiece),
    /// Everything was said: the last piece.
    End,
}

/// An inlet without its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueImage {
    /// Its number.
    pub id: InletId,
    /// Its name.
    pub name: Inlet,
    /// Its rules.
    pub config: InletConfig,
    /// It hands out nothing.
    pub paused: bool,
    /// How many messages follow.
    #[serde(default)]
    pub messages: u64,
    /// Counts of what is not there any more.
    pub ended: Books,
    /// Counts that only rise.
    pub counts: Counts,
    /// When its bucket is full.
    pub rate_full_at: Timestamp,
    /// When the bucket of each fairness key is full.
    pub key_rates_full_at: Vec<(Key, Timestamp)>,
    /// Of a subscription: its place in its topic.
    #[serde(default)]
    pub reader: Option<Box<ReaderImage>>,
}

/// A message without its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageImage {
    /// Its sequence.
    pub seq: u64,
    /// Its hashes.
    pub marks: Marks,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Its size in bytes.
    pub size: u32,
    /// Its type.
    pub kind: Arc<str>,
    /// Its priority.
    pub priority: u8,
    /// Its state.
    pub status: u8,
    /// What only some have.
    pub side: Option<Box<Side>>,
    /// Its lease.
    pub lease: Option<Box<LeaseImage>>,
}

/// A live lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseImage {
    /// Part of its token.
    pub nonce: u32,
    /// Part of its token.
    pub epoch: u32,
    /// The attempt.
    pub attempt: u32,
    /// Who holds it.
    pub holder: Holder,
    /// The request that it answered.
    pub request: RequestId,
    /// Its length.
    pub term: Duration,
    /// Since when.
    pub since: Timestamp,
    /// Until when; after an opening, anew.
    pub deadline: Timestamp,
    /// Somebody wants it cancelled.
    pub cancel_requested: bool,
    /// Handed out alone.
    pub suspect: bool,
}

impl State {
    /// Calls `each` with every piece of a snapshot.
    pub fn pieces(&self, each: &mut dyn FnMut(Piece)) {
        each(Piece::Head {
            end: self.end,
            time: self.time,
            secret: self.secret,
            epoch: self.epoch,
            inlets: self.next_inlet().0,
            topics: self.next_topic().0,
        });
        for (key, record) in self.records.each() {
            let Kept { value, revision, expires, written } = record.clone();
            each(Piece::Record { key: key.clone(), value, revision, expires, written });
        }
        self.schedules.each().for_each(|entry| each(Piece::Schedule(Box::new(entry.clone()))));
        let mut settled: Vec<_> = self.settled.each().map(|(mark, how)| (*mark, *how)).collect();
        settled.sort_by_key(|(mark, _)| *mark);
        settled.into_iter().for_each(|(mark, how)| each(Piece::Settled(mark, how)));
        let mut bulks: Vec<_> = self.bulks.each().map(|(id, report)| (*id, *report)).collect();
        bulks.sort_by_key(|(id, _)| id.0);
        bulks.into_iter().for_each(|(id, report)| each(Piece::Bulk(id, report)));
        self.topics().for_each(|topic| topic.pieces(self.time, each));
        self.queues().for_each(|queue| queue.pieces(self.time, each));
        self.streams.pieces(&mut |piece| each(Piece::Streams(piece)));
        each(Piece::End);
    }

    /// Bodies of queues that are still needed and stand before `position`, and editions of subscriptions.
    pub fn bodies_before(&self, position: u64) -> Vec<Body> {
        let all = self.queues().flat_map(|queue| {
            queue.slab.slots().flat_map(move |slot| {
                let at = At { inlet: queue.id, message: queue.reference(slot) };
                let own = queue.reader.is_none();
                let original = own.then(|| Body { at, edition: false, position: queue.original_body(slot) });
                let edition = queue.side(slot).and_then(|side| side.edition);
                let edition = edition.map(|position| Body { at, edition: true, position });
                original.into_iter().chain(edition)
            })
        });
        all.filter(|body| body.position < position).collect()
    }
}

pub(super) const STATUSES: [Status; 6] =
    [Status::Waiting, Status::Delayed, Status::Leased, Status::Gone, Status::Dead, Status::Kept];

impl Queue {
    fn pieces(&self, time: Timestamp, each: &mut dyn FnMut(Piece)) {
        let (messages, gone) = self.slab.slots().fold((0, 0), |(messages, gone), slot| {
            (messages + 1, gone + u64::from(self.slab.get(slot).status == Status::Gone))
        });
        let books = self.books;
        each(Piece::Queue(Box::new(QueueImage {
            id: self.id,
            name: self.name.clone(),
            config: (*self.config).clone(),
            paused: self.paused,
            messages,
            ended: Books { done: books.done - gone, waiting: 0, delayed: 0, leased: 0, dead: 0, ..books },
            counts: self.counts,
            rate_full_at: self.rates.all.full_at,
            key_rates_full_at: self.rates.keys().map(|(key, full_at)| (key.clone(), full_at)).collect(),
            reader: self.reader_image().map(Box::new),
        })));
        for slot in self.slots_by_sequence() {
            each(Piece::Message(Box::new(self.message_image(slot))));
        }
        let window = self.dedup_window();
        let live = |(_, what): &(u64, &Remembered)| time.since(what.at) < window;
        let mut remembered: Vec<_> =
            self.finished.each().filter(live).map(|(dedup, what)| (dedup, what.clone())).collect();
        remembered.sort_by_key(|(dedup, what)| (what.at, *dedup));
        remembered.into_iter().for_each(|(dedup, what)| each(Piece::Remembered { dedup, what }));
    }

    /// Slots in use, by sequence. As a rule they lie in that order, and no list of millions is needed.
    fn slots_by_sequence(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        if self.slab.slots().is_sorted_by_key(|slot| self.slab.seq(slot)) {
            return Box::new(self.slab.slots());
        }
        let mut slots: Vec<u32> = self.slab.slots().collect();
        slots.sort_unstable_by_key(|slot| self.slab.seq(*slot));
        Box::new(slots.into_iter())
    }

    fn message_image(&self, slot: u32) -> MessageImage {
        let entry = self.slab.get(slot);
        let lease = self.leases.get(&entry.seq).filter(|lease| lease.slot == slot);
        MessageImage {
            seq: entry.seq,
            marks: entry.marks,
            accepted_at: entry.accepted_at,
            size: entry.size,
            kind: self.kinds.name(entry.kind).clone(),
            priority: entry.priority,
            status: STATUSES.iter().position(|status| *status == entry.status).unwrap_or(0) as u8,
            side: self.side(slot).cloned().map(Box::new),
            lease: lease.map(|lease| Box::new(lease.image())),
        }
    }
}

impl Lease {
    fn image(&self) -> LeaseImage {
        LeaseImage {
            nonce: self.nonce,
            epoch: self.epoch,
            attempt: self.attempt,
            holder: (*self.holder).clone(),
            request: self.request,
            term: self.term,
            since: self.since,
            deadline: self.deadline,
            cancel_requested: self.cancel_requested,
            suspect: self.suspect,
        }
    }
}
