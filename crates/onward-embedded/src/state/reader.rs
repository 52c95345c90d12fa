//! What makes a queue a subscription: its place in its topic, and how it takes messages from there.

use super::{
    queue::Queue,
    shelf::Shelved,
    slab::{Entry, Queued, Status},
    spans::Spans,
    topic::Topic,
};
use crate::{End, Marks, MessageRef, Removal, TopicId};
use onward_core::{Filter, Lag, Position, Timestamp};

/// A subscription's place in its topic. Numbers are those of the topic's shelf.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) topic: TopicId,
    pub(crate) filter: Filter,
    /// The next message that it reaches; everything before was taken, did not fit, or was passed over.
    pub(crate) cursor: u64,
    /// Passed over before, and to come again.
    pub(crate) refill: Spans,
    /// Passed over without being processed.
    pub(crate) gaps: Spans,
    /// How often it was moved to process again.
    pub(crate) replay: u32,
    /// Messages that it is done with; not yet told to the topic.
    pub(super) done_with: Vec<u64>,
    /// Messages that were taken and removed without being processed; not yet among the gaps.
    pub(super) removed: Vec<u64>,
}

impl Reader {
    pub(crate) fn new(topic: TopicId, filter: Filter, cursor: u64) -> Self {
        Self {
            topic,
            filter,
            cursor,
            refill: Spans::default(),
            gaps: Spans::of(&[(0, cursor)]),
            replay: 0,
            done_with: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// The lowest number that it still needs.
    pub(crate) fn low(&self) -> u64 {
        self.refill.first().map_or(self.cursor, |(from, _)| from.min(self.cursor))
    }

    pub(crate) fn is_filtered(&self) -> bool {
        !self.filter.is_all()
    }

    /// Messages that it has not reached.
    pub(crate) fn unreached(&self, topic: &Topic) -> u64 {
        let floor = topic.shelf.floor();
        let again = self.refill.spans().into_iter().map(|(from, to)| to.saturating_sub(from.max(floor)));
        topic.shelf.head().saturating_sub(self.cursor.max(floor)) + again.sum::<u64>()
    }

    /// The span that is taken from next, and whether it was passed over before.
    pub(crate) fn next_span(&self, topic: &Topic) -> Option<(u64, u64)> {
        let floor = topic.shelf.floor();
        let again = self.refill.spans().into_iter().map(|(from, to)| (from.max(floor), to));
        let span = again.clone().find(|(from, to)| from < to);
        let span = span.unwrap_or((self.cursor.max(floor), topic.shelf.head()));
        (span.0 < span.1).then_some(span)
    }
}

impl Queue {
    /// What the topic let go before it was reached: counted as accepted and shed.
    pub(super) fn count_missed(&mut self, topic: &Topic, until: u64) {
        let Some(reader) = &mut self.reader else { return };
        let again = reader.refill.take(0, until);
        let mut missed = again.spans();
        if reader.cursor < until {
            missed.push((reader.cursor, until));
            reader.cursor = until;
        }
        drop(reader.gaps.take(0, until));
        for (from, to) in missed {
            let lost = match reader.filter.is_all() {
                true => to - from,
                false => {
                    let entries = (from..to).filter_map(|number| topic.shelf.get(number));
                    entries.filter(|entry| topic.takes(&reader.filter, entry)).count() as u64
                }
            };
            self.books.accepted += lost;
            self.books.shed += lost;
        }
    }

    /// How many messages the topic has let go before this subscription reached them and counted them.
    pub(crate) fn uncounted(&self, topic: &Topic) -> u64 {
        let Some(reader) = &self.reader else { return 0 };
        let floor = topic.shelf.floor();
        let again = reader.refill.clone().take(0, floor).total();
        floor.saturating_sub(reader.cursor) + again
    }

    /// Takes messages from the topic: those of the span that the filter takes and that are not in `unfit`.
    pub(super) fn draw(
        &mut self,
        topic: &mut Topic,
        span: (u64, u64),
        unfit: &[u64],
        position: u64,
        time: Timestamp,
    ) {
        self.count_missed(topic, topic.shelf.floor());
        let Some(mut reader) = self.reader.take() else { return };
        let again = span.0 < reader.cursor;
        for number in span.0.max(topic.shelf.floor())..span.1.min(topic.shelf.head()) {
            let Some(entry) = topic.shelf.get(number).copied() else { continue };
            if topic.takes(&reader.filter, &entry) && unfit.binary_search(&number).is_err() {
                self.take_in(topic, &entry, reader.replay, again, position, time);
            }
        }
        if again {
            drop(reader.refill.take(span.0, span.1));
        } else {
            reader.gaps.add(reader.cursor, span.0);
            reader.cursor = reader.cursor.max(span.1);
        }
        self.reader = Some(reader);
    }

    fn take_in(
        &mut self,
        topic: &mut Topic,
        entry: &Shelved,
        replay: u32,
        again: bool,
        position: u64,
        time: Timestamp,
    ) {
        let message = MessageRef { seq: entry.seq, id_hash: entry.id_hash };
        // A dead letter, or what was begun before a rewind, is here already and goes its own way.
        if self.slot_of(message).is_some() {
            return;
        }
        self.books.accepted += 1;
        let mut side = topic.side(entry).map(|side| (**side).clone());
        if side.as_ref().and_then(|side| side.expiry).is_some_and(|expiry| expiry <= time) {
            self.books.expired += 1;
            return;
        }
        let body = topic.body(entry.seq);
        if body != entry.seq {
            side.get_or_insert_default().body = Some(body);
        }
        if replay > 0 {
            side.get_or_insert_default().replay = replay;
        }
        topic.hold(entry.seq);
        let kind = self.kinds.enter(topic.kinds.name(entry.kind));
        let slot = self.insert(
            Entry {
                seq: entry.seq,
                marks: Marks { id: entry.id_hash, dedup: 0, fingerprint: 0 },
                accepted_at: entry.accepted_at,
                size: entry.size,
                kind,
                priority: entry.priority,
                status: Status::Waiting,
                queued: Queued::No,
                in_line: false,
                has_side: side.is_some(),
                vacant: false,
            },
            side.map(Box::new),
        );
        self.settle_in(slot, position, if again { position } else { entry.seq }, time);
    }

    /// Passes over everything before a number: counted as accepted, and as shed or purged.
    pub(super) fn pass(&mut self, topic: &Topic, until: u64, why: Removal) {
        self.count_missed(topic, topic.shelf.floor());
        let Some(reader) = &mut self.reader else { return };
        let mut passed = reader.refill.take(0, until);
        passed.add(reader.cursor, until);
        reader.cursor = reader.cursor.max(until);
        reader.gaps.add_all(&passed);
        let fits =
            |number: &u64| topic.shelf.get(*number).is_some_and(|entry| topic.takes(&reader.filter, entry));
        let count: u64 = match reader.filter.is_all() {
            true => passed.total(),
            false => passed.spans().into_iter().flat_map(|(from, to)| from..to).filter(fits).count() as u64,
        };
        self.books.accepted += count;
        match why {
            Removal::Shed => self.books.shed += count,
            _ => self.books.purged += count,
        }
    }

    /// Messages that were taken and removed without being processed are gaps.
    pub(super) fn note_removed(&mut self, topic: &Topic) {
        let Some(reader) = &mut self.reader else { return };
        for seq in std::mem::take(&mut reader.removed) {
            if let Some(number) = topic.shelf.number_of(seq) {
                reader.gaps.add(number, number + 1);
            }
        }
    }

    /// Moves it to a number of its topic. Where it is to process again, its leases have ended before.
    pub(super) fn seek(&mut self, topic: &Topic, to: u64, again: bool, position: u64, time: Timestamp) {
        self.count_missed(topic, topic.shelf.floor());
        let from = topic.shelf.get(to).map_or(u64::MAX, |entry| entry.seq);
        self.leave_out_before(topic, to, from, position, time);
        self.note_removed(topic);
        if again {
            self.clear_from(from, position, time);
        }
        let Some(reader) = &mut self.reader else { return };
        // What was cleared comes again anyway.
        reader.removed.clear();
        if again {
            reader.replay = reader.replay.saturating_add(1);
            drop(reader.refill.take(to, u64::MAX));
        }
        if to > reader.cursor {
            reader.gaps.add(reader.cursor, to);
            reader.cursor = to;
        } else if again {
            reader.cursor = to;
            drop(reader.gaps.take(to, u64::MAX));
        } else {
            let passed = reader.gaps.take(to, reader.cursor);
            reader.refill.add_all(&passed);
        }
        self.moment.woken = u32::MAX;
    }

    /// What was taken, was never begun and stands before the new place is passed over, when that is ahead of it.
    fn leave_out_before(&mut self, topic: &Topic, to: u64, from: u64, position: u64, time: Timestamp) {
        let unbegun = |slot: &u32| {
            let begun = self.side(*slot).is_some_and(|side| side.attempts > 0 || side.suspect);
            matches!(self.slab.get(*slot).status, Status::Waiting | Status::Delayed) && !begun
        };
        let mut slots: Vec<u32> = self.slab.slots().filter(unbegun).collect();
        slots.sort_by_key(|slot| self.slab.get(*slot).seq);
        let reached = self.reader.as_ref().map_or(0, |reader| reader.cursor);
        let waiting = |slot: &&u32| self.slab.get(**slot).status == Status::Waiting;
        let first =
            slots.iter().find(waiting).and_then(|slot| topic.shelf.number_of(self.slab.get(*slot).seq));
        if to > first.unwrap_or(reached) {
            slots.retain(|slot| self.slab.get(*slot).seq < from);
            slots.into_iter().for_each(|slot| self.remove(slot, Removal::Purged, position, time));
        }
    }

    /// Removes what comes again from the topic: all from there on but the dead letters, which are redriven.
    fn clear_from(&mut self, from: u64, position: u64, time: Timestamp) {
        let there: Vec<u32> = self.slab.slots().filter(|slot| self.slab.get(*slot).seq >= from).collect();
        for slot in there {
            if self.slab.get(slot).status != Status::Dead {
                self.remove(slot, Removal::Purged, position, time);
            }
        }
    }

    /// How a lease ends when its subscription is moved to process again.
    pub(super) fn end_by_seek(&self, slot: u32) -> End {
        match self.slab.get(slot).status {
            Status::Gone => End::Acked { result: None },
            _ => End::Released { due: None },
        }
    }

    pub(crate) fn lag(&self, topic: &Topic) -> Option<Lag> {
        let reader = self.reader.as_ref()?;
        let unreached = reader.unreached(topic);
        let next = reader.next_span(topic).and_then(|(from, _)| topic.shelf.get(from));
        let oldest = self.ready.oldest(&self.slab).map(|slot| self.slab.get(slot).accepted_at);
        Some(Lag {
            messages: unreached + self.books.waiting + self.books.delayed,
            unreached,
            oldest: next.map(|entry| entry.accepted_at).into_iter().chain(oldest).min(),
            next: next.map(|entry| Position(entry.seq)),
            replay: reader.replay,
        })
    }
}
