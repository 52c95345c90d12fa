//! Rising numbers, many of them in few bytes: the positions of the events of a stream, a type, a tag.
//!
//! They stand in chunks, each number as the difference from the one before it. Full chunks never change again, so a
//! frozen copy shares them.

use std::sync::Arc;

/// Numbers of a full chunk.
pub(crate) const CHUNK: usize = 128;

/// Numbers in an order that never falls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    full: Vec<Chunk>,
    open: Open,
}

/// A full chunk.
#[derive(Debug, Clone)]
struct Chunk {
    first: u64,
    last: u64,
    deltas: Arc<[u8]>,
}

/// The chunk that is being filled.
#[derive(Debug, Clone, Default)]
struct Open {
    first: u64,
    last: u64,
    count: u32,
    deltas: Vec<u8>,
}

/// A chunk as it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) count: u32,
    pub(crate) deltas: &'a [u8],
}

impl Places {
    /// Adds a number that is not less than the last one.
    pub(crate) fn push(&mut self, value: u64) {
        if self.open.count as usize == CHUNK {
            let open = std::mem::take(&mut self.open);
            self.full.push(Chunk { first: open.first, last: open.last, deltas: open.deltas.into() });
        }
        let open = &mut self.open;
        if open.count == 0 {
            open.first = value;
        } else {
            put(value.wrapping_sub(open.last), &mut open.deltas);
        }
        (open.last, open.count) = (value, open.count + 1);
    }

    /// Adds a chunk as [`Places::parts`] showed it.
    pub(crate) fn push_part(&mut self, part: Part<'_>) {
        let mut values = Vec::with_capacity(part.count as usize);
        part.values(&mut values);
        values.into_iter().for_each(|value| self.push(value));
    }

    pub(crate) fn len(&self) -> usize {
        self.full.len() * CHUNK + self.open.count as usize
    }

    pub(crate) fn last(&self) -> Option<u64> {
        match self.open.count {
            0 => self.full.last().map(|chunk| chunk.last),
            _ => Some(self.open.last),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        let part = self.part(index / CHUNK)?;
        let mut values = Vec::with_capacity(CHUNK);
        part.values(&mut values);
        values.get(index % CHUNK).copied()
    }

    /// How many numbers are less than this one, or not greater where `with` it.
    pub(crate) fn rank(&self, value: u64, with: bool) -> usize {
        let below = |other: u64| other < value || (with && other == value);
        let chunk = self.full.partition_point(|chunk| below(chunk.last));
        let Some(part) = self.part(chunk) else { return self.len() };
        let mut values = Vec::with_capacity(CHUNK);
        part.values(&mut values);
        chunk * CHUNK + values.partition_point(|other| below(*other))
    }

    /// Forgets whole chunks before the number of this index; answers how many numbers went.
    pub(crate) fn drop_before(&mut self, index: usize) -> usize {
        let chunks = (index / CHUNK).min(self.full.len());
        self.full.drain(..chunks);
        chunks * CHUNK
    }

    /// Only the numbers that are to stay.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(u64) -> bool) {
        let mut kept = Self::default();
        let mut values = Vec::with_capacity(CHUNK);
        for part in self.parts() {
            values.clear();
            part.values(&mut values);
            values.iter().filter(|value| stays(**value)).for_each(|value| kept.push(*value));
        }
        *self = kept;
    }

    /// All chunks, in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        (0..=self.full.len()).filter_map(|index| self.part(index))
    }

    /// The chunk of that number, unless it is empty.
    fn part(&self, index: usize) -> Option<Part<'_>> {
        if let Some(chunk) = self.full.get(index) {
            let (first, last) = (chunk.first, chunk.last);
            return Some(Part { first, last, count: CHUNK as u32, deltas: &chunk.deltas });
        }
        let open = &self.open;
        let part = Part { first: open.first, last: open.last, count: open.count, deltas: &open.deltas };
        (index == self.full.len() && open.count > 0).then_some(part)
    }

    /// The chunk in which the first number at or after `value` stands.
    fn chunk_after(&self, value: u64) -> Option<usize> {
        let chunk = self.full.partition_point(|chunk| chunk.last < value);
        self.part(chunk).filter(|part| part.last >= value).map(|_| chunk)
    }

    /// The chunk in which the last number at or before `value` stands.
    fn chunk_before(&self, value: u64) -> Option<usize> {
        if self.open.count > 0 && self.open.first <= value {
            return Some(self.full.len());
        }
        self.full.partition_point(|chunk| chunk.first <= value).checked_sub(1)
    }
}

impl Part<'_> {
    /// Adds its numbers to `out`.
    pub(crate) fn values(&self, out: &mut Vec<u64>) {
        let (mut value, mut at) = (self.first, 0);
        out.push(value);
        for _ in 1..self.count {
            let (delta, used) = take(&self.deltas[at..]);
            at += used;
            value = value.wrapping_add(delta);
            out.push(value);
        }
    }
}

fn put(mut delta: u64, out: &mut Vec<u8>) {
    while delta >= 0x80 {
        out.push(delta as u8 | 0x80);
        delta >>= 7;
    }
    out.push(delta as u8);
}

/// A difference and its length in bytes. What is cut off reads as nothing.
fn take(bytes: &[u8]) -> (u64, usize) {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index).min(63);
        if byte & 0x80 == 0 {
            return (value, index + 1);
        }
    }
    (value, bytes.len().min(10))
}

/// Looks numbers up one after the other; fast where the next one stands near the last one.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    places: &'a Places,
    chunk: usize,
    values: Vec<u64>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(places: &'a Places) -> Self {
        Self { places, chunk: 0, values: Vec::new(), at: 0 }
    }

    /// The first number at or after `value`.
    pub(crate) fn at_or_after(&mut self, value: u64) -> Option<u64> {
        if let Some(next) = self.values.get(self.at + 1).filter(|next| **next >= value)
            && self.values[self.at] < value
        {
            self.at += 1;
            return Some(*next);
        }
        let held = self.values.first().is_some_and(|first| *first <= value)
            && self.values.last().is_some_and(|last| *last >= value);
        if !held {
            self.load(self.places.chunk_after(value)?);
        }
        self.at = self.values.partition_point(|other| *other < value);
        self.values.get(self.at).copied()
    }

    /// The last number at or before `value`.
    pub(crate) fn at_or_before(&mut self, value: u64) -> Option<u64> {
        let held = self.values.first().is_some_and(|first| *first <= value)
            && self.values.last().is_some_and(|last| *last >= value);
        if !held {
            self.load(self.places.chunk_before(value)?);
        }
        self.at = self.values.partition_point(|other| *other <= value).checked_sub(1)?;
        self.values.get(self.at).copied()
    }

    fn load(&mut self, chunk: usize) {
        if self.chunk == chunk && !self.values.is_empty() {
            return;
        }
        self.values.clear();
        self.chunk = chunk;
        if let Some(part) = self.places.part(chunk) {
            part.values(&mut self.values);
        }
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
