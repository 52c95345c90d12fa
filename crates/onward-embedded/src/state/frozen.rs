//! Snapshots of millions: a copy made fast enough to be made under the engine's lock, an index filled part by part.

use super::{Queue, State, index};

/// Most messages for which room is made before they are seen.
const EXPECTED_MAX: u64 = 1 << 24;

/// From so many messages on, an index does not stay within the processor's cache.
const LARGE: u64 = 1 << 16;

impl State {
    /// A state that gives the same pieces, whatever becomes of this one. It is good for nothing else.
    ///
    /// It shares the entries of messages until they change; what only some messages have, leases, remembered ids and
    /// records are copied without what they point to.
    pub(crate) fn frozen(&mut self) -> State {
        let frozen = |queue: &mut Option<Box<Queue>>| queue.as_mut().map(|queue| Box::new(queue.frozen()));
        let queues = self.queues.iter_mut().map(frozen).collect();
        State {
            end: self.end,
            time: self.time,
            secret: self.secret,
            epoch: self.epoch,
            queues,
            topics: self.topics.clone(),
            settled: self.settled.clone(),
            bulks: self.bulks.clone(),
            records: self.records.clone(),
            schedules: self.schedules.clone(),
            streams: self.streams.frozen(),
            ..State::new()
        }
    }
}

impl Queue {
    fn frozen(&mut self) -> Queue {
        Queue {
            paused: self.paused,
            slab: self.slab.frozen(),
            kinds: self.kinds.clone(),
            leases: self.leases.clone(),
            sides: self.sides.clone(),
            finished: self.finished.clone(),
            rates: self.rates.clone(),
            books: self.books,
            counts: self.counts,
            reader: self.reader.clone(),
            ..Queue::new(self.id, self.name.clone(), self.config.clone())
        }
    }

    /// Makes room for so many messages at once, since finding room bit by bit goes over all of them each time.
    pub(super) fn expect(&mut self, messages: u64) {
        let (slab, room) = (&self.slab, messages.min(EXPECTED_MAX) as usize);
        self.index.reserve(room, |slot| slab.id_hash(slot));
        if messages < LARGE {
            return;
        }
        // Hashes spread evenly, so each part gets about its share; what is made at once is given back at once.
        let each = |region: usize| {
            let share = index::share_of_region(region, room);
            Vec::with_capacity(share + share / 16 + 16)
        };
        self.unindexed = (0..index::REGIONS).map(each).collect();
    }

    /// Puts a message into the index, or remembers it for [`Queue::index_all`] where there are many.
    pub(super) fn index_restored(&mut self, id_hash: u64, slot: u32) {
        match self.unindexed.get_mut(index::region(id_hash)) {
            Some(region) => region.push((id_hash, slot)),
            None => self.index(id_hash, slot),
        }
    }

    fn index(&mut self, id_hash: u64, slot: u32) {
        let slab = &self.slab;
        self.index.insert(id_hash, slot, |slot| slab.id_hash(slot));
    }

    /// Puts what was remembered into the index, a region after the other: each stays within the processor's cache,
    /// where millions at random places would each wait for memory.
    pub(super) fn index_all(&mut self) {
        for (id_hash, slot) in std::mem::take(&mut self.unindexed).into_iter().flatten() {
            self.index(id_hash, slot);
        }
    }
}
