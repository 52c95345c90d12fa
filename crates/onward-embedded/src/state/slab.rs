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
///
/// Chunks may be shared with a frozen copy: what is changed afterwards is copied a chunk at a time.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Arc<Vec<Entry>>>,
    free: Vec<u32>,
}

impl Slab {
    pub(crate) fn get(&self, slot: u32) -> &Entry {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Entry {
        &mut Arc::make_mut(&mut self.chunks[slot as usize / CHUNK])[slot as usize % CHUNK]
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = entry;
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        let chunks = self.chunks.len();
        let chunk = Arc::make_mut(&mut self.chunks[chunks - 1]);
        // A chunk that was copied has room for what it held only.
        chunk.reserve_exact(CHUNK - chunk.len());
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
    pub(crate) fn frozen(&self) -> Slab {
        Slab { chunks: self.chunks.clone(), free: Vec::new() }
    }

    /// Slots in use, in slot order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = self.chunks.iter().flat_map(|chunk| chunk.iter()).enumerate();
        entries.filter(|(_, entry)| !entry.vacant).map(|(slot, _)| slot as u32)
    }
}
