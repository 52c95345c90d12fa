//! A copy of what a snapshot holds, made fast enough to be made under the engine's lock.

use super::{Queue, State};

/// Most messages for which room is made before they are seen.
const EXPECTED_MAX: u64 = 1 << 24;

impl State {
    /// A state that gives the same pieces, whatever becomes of this one. It is good for nothing else.
    ///
    /// It shares the entries of messages until they change; what only some messages have, leases, remembered ids and
    /// records are copied without what they point to.
    pub(crate) fn frozen(&self) -> State {
        State {
            end: self.end,
            time: self.time,
            secret: self.secret,
            epoch: self.epoch,
            queues: self
                .queues
                .iter()
                .map(|queue| queue.as_ref().map(|queue| Box::new(queue.frozen())))
                .collect(),
            settled: self.settled.clone(),
            bulks: self.bulks.clone(),
            records: self.records.clone(),
            ..State::new()
        }
    }
}

impl Queue {
    fn frozen(&self) -> Queue {
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
            ..Queue::new(self.id, self.name.clone(), self.config.clone())
        }
    }

    /// Makes room for so many messages at once, since finding room bit by bit goes over all of them each time.
    pub(super) fn expect(&mut self, messages: u64) {
        let (slab, room) = (&self.slab, messages.min(EXPECTED_MAX) as usize);
        self.index.reserve(room, |slot| slab.get(*slot).marks.id);
    }
}
