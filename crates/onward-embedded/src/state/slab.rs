//! One small entry per message, in chunks that never move: what every message costs in memory.

use super::packed::{Packed, Rest, fits};
use crate::Marks;
use hashbrown::HashMap;
use onward_core::Timestamp;
use std::sync::Arc;

const CHUNK: usize = 4096;

/// Where a message is in its life, as the engine keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Waiting,
    Delayed,
    Leased,
    /// Leased from an at-most-once inlet: gone from the books, kept until its lease ends.
    Gone,
    Dead,
    /// Finished and kept for its result.
    Kept,
}

/// Whether a ready structure holds the message, and in which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    No,
    Fresh,
    Returned,
    Suspect,
}

/// What is known of every message. Everything else stands in side maps, for those that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    /// Of the fingerprint only [`Marks::short_fingerprint`].
    pub(crate) marks: Marks,
    pub(crate) accepted_at: Timestamp,
    pub(crate) size: u32,
    pub(crate) kind: u32,
    pub(crate) priority: u8,
    pub(crate) status: Status,
    pub(crate) queued: Queued,
    /// The fresh line still names this slot, so it must not be given to another message.
    pub(crate) in_line: bool,
    /// It has an entry in the side map.
    pub(crate) has_side: bool,
    pub(crate) vacant: bool,
}

/// Entries by slot number. A freed slot is used again once the fresh line no longer names it.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// What does not fit into the packed form: of types beyond the first few thousand, and of those much older than
    /// the others of their chunk.
    elsewhere: HashMap<u32, Rest>,
}

/// Entries that lie together.
#[derive(Debug)]
struct Chunk {
    /// Times of acceptance are said as distances from this one.
    base: Timestamp,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    Own(Vec<Packed>),
    /// A frozen copy may have them too: they are copied before they change.
    Shared(Arc<Vec<Packed>>),
}

impl Entries {
    fn all(&self) -> &[Packed] {
        match self {
            Self::Own(entries) => entries,
            Self::Shared(entries) => entries,
        }
    }

    fn own(&mut self) -> &mut Vec<Packed> {
        if let Self::Shared(shared) = self {
            let mut entries = Arc::unwrap_or_clone(std::mem::take(shared));
            entries.reserve_exact(CHUNK - entries.len());
            *self = Self::Own(entries);
        }
        match self {
            Self::Own(entries) => entries,
            Self::Shared(_) => unreachable!("it was just made its own"),
        }
    }

    fn share(&mut self) -> Arc<Vec<Packed>> {
        if let Self::Own(entries) = self {
            *self = Self::Shared(Arc::new(std::mem::take(entries)));
        }
        match self {
            Self::Shared(entries) => entries.clone(),
            Self::Own(_) => unreachable!("it was just shared"),
        }
    }
}

impl Slab {
    fn packed(&self, slot: u32) -> &Packed {
        &self.chunks[slot as usize / CHUNK].entries.all()[slot as usize % CHUNK]
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Entry {
        let base = self.chunks[slot as usize / CHUNK].base;
        self.packed(slot).entry(base, || self.rest(slot))
    }

    #[cold]
    fn rest(&self, slot: u32) -> Rest {
        self.elsewhere[&slot]
    }

    /// The message's sequence alone.
    #[inline]
    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.packed(slot).seq()
    }

    /// The hash of the message's id alone.
    #[inline]
    pub(crate) fn id_hash(&self, slot: u32) -> u64 {
        self.packed(slot).id_hash()
    }

    /// Changes an entry; answers what `change` does.
    #[inline]
    pub(crate) fn change<R>(&mut self, slot: u32, change: impl FnOnce(&mut Entry) -> R) -> R {
        let mut entry = self.get(slot);
        let answer = change(&mut entry);
        self.put(slot, &entry);
        answer
    }

    fn put(&mut self, slot: u32, entry: &Entry) {
        let chunk = &mut self.chunks[slot as usize / CHUNK];
        let (packed, elsewhere) = Packed::of(entry, chunk.base);
        chunk.entries.own()[slot as usize % CHUNK] = packed;
        self.keep_rest(slot, entry, elsewhere);
    }

    fn keep_rest(&mut self, slot: u32, entry: &Entry, elsewhere: bool) {
        if elsewhere {
            self.elsewhere.insert(slot, Rest { accepted_at: entry.accepted_at, kind: entry.kind });
        } else if !self.elsewhere.is_empty() {
            self.elsewhere.remove(&slot);
        }
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.make_fit(slot as usize / CHUNK, entry.accepted_at);
            self.put(slot, &entry);
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.entries.all().len() == CHUNK) {
            let entries = Entries::Own(Vec::with_capacity(CHUNK));
            self.chunks.push(Chunk { base: entry.accepted_at, entries });
        }
        let last = self.chunks.len() - 1;
        self.make_fit(last, entry.accepted_at);
        let chunk = &mut self.chunks[last];
        let (packed, elsewhere) = Packed::of(&entry, chunk.base);
        let entries = chunk.entries.own();
        entries.push(packed);
        let slot = (last * CHUNK + entries.len() - 1) as u32;
        self.keep_rest(slot, &entry, elsewhere);
        slot
    }

    /// Moves a chunk's base on when what is new is too far behind it. What is old then says its time elsewhere.
    ///
    /// It goes over the whole chunk, but once in twelve days.
    fn make_fit(&mut self, chunk: usize, accepted_at: Timestamp) {
        let base = self.chunks[chunk].base;
        if fits(accepted_at, base) || accepted_at < base {
            return;
        }
        let first = chunk * CHUNK;
        let slots = (first..first + self.chunks[chunk].entries.all().len()).map(|slot| slot as u32);
        let entries: Vec<(u32, Entry)> = slots.map(|slot| (slot, self.get(slot))).collect();
        self.chunks[chunk].base = accepted_at;
        entries.iter().filter(|(_, entry)| !entry.vacant).for_each(|(slot, entry)| self.put(*slot, entry));
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        // Nobody asks for these two again, so they need not be kept elsewhere.
        let plain = (self.chunks[slot as usize / CHUNK].base, 0);
        let in_line = self.change(slot, |entry| {
            (entry.vacant, entry.queued) = (true, Queued::No);
            (entry.accepted_at, entry.kind) = plain;
            entry.in_line
        });
        if !in_line {
            self.free.push(slot);
        }
    }

    /// The fresh line no longer names the slot.
    pub(crate) fn out_of_line(&mut self, slot: u32) {
        let vacant = self.change(slot, |entry| {
            entry.in_line = false;
            entry.vacant
        });
        if vacant {
            self.free.push(slot);
        }
    }

    /// The entries as they are now, shared.
    pub(crate) fn frozen(&mut self) -> Slab {
        let share =
            |chunk: &mut Chunk| Chunk { base: chunk.base, entries: Entries::Shared(chunk.entries.share()) };
        let chunks = self.chunks.iter_mut().map(share).collect();
        Slab { chunks, free: Vec::new(), elsewhere: self.elsewhere.clone() }
    }

    /// Slots in use, in slot order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = self.chunks.iter().flat_map(|chunk| chunk.entries.all()).enumerate();
        entries.filter(|(_, entry)| !entry.is_vacant()).map(|(slot, _)| slot as u32)
    }
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
