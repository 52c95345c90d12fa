//! What a topic keeps, without bodies: one small entry per message, in order, in chunks that a frozen copy shares.

use onward_core::Timestamp;
use std::{collections::VecDeque, sync::Arc};

const CHUNK: usize = 4096;

/// One kept message. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shelved {
    /// The position of the fact that published it.
    pub(crate) seq: u64,
    /// The keyed hash of its id.
    pub(crate) id_hash: u64,
    pub(crate) accepted_at: Timestamp,
    pub(crate) size: u32,
    pub(crate) kind: u32,
    pub(crate) source: u32,
    pub(crate) priority: u8,
    /// The topic knows more of it: keys, times.
    pub(crate) has_side: bool,
}

/// The kept messages of a topic by their number: the first one published has 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    chunks: VecDeque<Arc<Vec<Shelved>>>,
    /// Entries at the front of the first chunk that are gone.
    skipped: usize,
    floor: u64,
    len: usize,
}

impl Shelf {
    /// An empty one whose next message has this number.
    pub(crate) fn beginning_at(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    /// The number of the oldest kept message.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// The number that the next message gets.
    pub(crate) fn head(&self) -> u64 {
        self.floor + self.len as u64
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Shelved> {
        let place =
            usize::try_from(number.checked_sub(self.floor)?).ok().filter(|place| *place < self.len)?;
        let place = place + self.skipped;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    pub(crate) fn push(&mut self, entry: Shelved) {
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push_back(Arc::new(Vec::with_capacity(CHUNK.min(64))));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            Arc::make_mut(chunk).push(entry);
            self.len += 1;
        }
    }

    /// Takes the oldest one out.
    pub(crate) fn pop(&mut self) -> Option<Shelved> {
        let entry = *self.get(self.floor)?;
        self.floor += 1;
        self.len -= 1;
        self.skipped += 1;
        if self.skipped == CHUNK || self.len == 0 {
            self.chunks.pop_front();
            self.skipped = 0;
        }
        Some(entry)
    }

    /// The number of the first one at or after this position; the head when there is none.
    pub(crate) fn at_or_after(&self, seq: u64) -> u64 {
        self.first(|entry| entry.seq >= seq)
    }

    /// The number of the first one published at or after this time; the head when there is none.
    pub(crate) fn since(&self, time: Timestamp) -> u64 {
        self.first(|entry| entry.accepted_at >= time)
    }

    /// The number of the message at exactly this position, while it is kept.
    pub(crate) fn number_of(&self, seq: u64) -> Option<u64> {
        let number = self.at_or_after(seq);
        self.get(number).filter(|entry| entry.seq == seq).map(|_| number)
    }

    fn first(&self, holds: impl Fn(&Shelved) -> bool) -> u64 {
        let (mut low, mut high) = (self.floor, self.head());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(&holds) { high = middle } else { low = middle + 1 }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Shelved {
        let accepted_at = Timestamp::from_micros(number as i64);
        Shelved {
            seq: number * 10 + 5,
            id_hash: number,
            accepted_at,
            size: 1,
            kind: 0,
            source: 0,
            priority: 0,
            has_side: false,
        }
    }

    #[test]
    fn numbers_stay_while_the_oldest_go() {
        let mut shelf = Shelf::default();
        (0..10_000).for_each(|number| shelf.push(entry(number)));
        for number in 0..9_000 {
            assert_eq!(shelf.pop(), Some(entry(number)));
        }
        assert_eq!((shelf.floor(), shelf.head()), (9_000, 10_000));
        assert_eq!(shelf.get(8_999), None);
        assert_eq!(shelf.get(9_500), Some(&entry(9_500)));
        assert_eq!((shelf.at_or_after(95_005), shelf.at_or_after(95_006)), (9_500, 9_501));
        assert_eq!((shelf.number_of(95_005), shelf.number_of(95_006)), (Some(9_500), None));
        assert_eq!((shelf.at_or_after(1), shelf.at_or_after(u64::MAX)), (9_000, 10_000));
        (10_000..20_000).for_each(|number| shelf.push(entry(number)));
        assert_eq!(shelf.get(19_999), Some(&entry(19_999)));
        while shelf.pop().is_some() {}
        shelf.push(entry(7));
        assert_eq!((shelf.floor(), shelf.get(20_000)), (20_000, Some(&entry(7))));
    }

    #[test]
    fn a_copy_keeps_what_it_had() {
        let mut shelf = Shelf::default();
        (0..5_000).for_each(|number| shelf.push(entry(number)));
        let copy = shelf.clone();
        (0..4_999).for_each(|_| assert!(shelf.pop().is_some()));
        shelf.push(entry(5_000));
        assert_eq!((copy.floor(), copy.head(), copy.get(10)), (0, 5_000, Some(&entry(10))));
    }
}
