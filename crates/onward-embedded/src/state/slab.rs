//! One small entry per message, in chunks that never move: what every message costs in memory.

use crate::Marks;
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
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
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
}

/// Entries that lie together.
#[derive(Debug)]
enum Chunk {
    Own(Vec<Entry>),
    /// A frozen copy may have them too: they are copied before they change.
    Shared(Arc<Vec<Entry>>),
}

impl Chunk {
    fn entries(&self) -> &[Entry] {
        match self {
            Self::Own(entries) => entries,
            Self::Shared(entries) => entries,
        }
    }

    fn own(&mut self) -> &mut Vec<Entry> {
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

    fn share(&mut self) -> Arc<Vec<Entry>> {
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
    pub(crate) fn get(&self, slot: u32) -> &Entry {
        &self.chunks[slot as usize / CHUNK].entries()[slot as usize % CHUNK]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK].own()[slot as usize % CHUNK]
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = entry;
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.entries().len() == CHUNK) {
            self.chunks.push(Chunk::Own(Vec::with_capacity(CHUNK)));
        }
        let chunks = self.chunks.len();
        let chunk = self.chunks[chunks - 1].own();
        chunk.push(entry);
        ((chunks - 1) * CHUNK + chunk.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let entry = self.get_mut(slot);
        entry.vacant = true;
        entry.queued = Queued::No;
        if !entry.in_line {
            self.free.push(slot);
        }
    }

    /// The fresh line no longer names the slot.
    pub(crate) fn out_of_line(&mut self, slot: u32) {
        let entry = self.get_mut(slot);
        entry.in_line = false;
        if entry.vacant {
            self.free.push(slot);
        }
    }

    /// The entries as they are now, shared.
    pub(crate) fn frozen(&mut self) -> Slab {
        let chunks = self.chunks.iter_mut().map(|chunk| Chunk::Shared(chunk.share())).collect();
        Slab { chunks, free: Vec::new() }
    }

    /// Slots in use, in slot order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = self.chunks.iter().flat_map(Chunk::entries).enumerate();
        entries.filter(|(_, entry)| !entry.vacant).map(|(slot, _)| slot as u32)
    }
}
