//! A simulated file's bytes, and what would be left of them after a power cut.

use std::collections::BTreeMap;

/// What becomes of something unsynced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    Kept,
    Lost,
    /// The beginning is new, the rest old; where, the number says.
    Torn(u64),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    pub(crate) bytes: Vec<u8>,
    pub(crate) durable_length: usize,
    /// What stands durably in each sector that was written since the last sync.
    pub(crate) unsynced: BTreeMap<usize, Vec<u8>>,
    /// The same for sectors of a sync that failed: no later sync saves them, unless they are written again.
    pub(crate) given_up: BTreeMap<usize, Vec<u8>>,
}

impl Inode {
    /// Writes, and remembers what stands durably in the sectors that it touches.
    pub(crate) fn put(&mut self, sector: usize, bytes: &[u8], offset: usize) {
        if self.bytes.len() < offset + bytes.len() {
            self.bytes.resize(offset + bytes.len(), 0);
        }
        for at in offset / sector..(offset + bytes.len()).div_ceil(sector) {
            // Written again, what a failed sync had given up is to be saved by the next one.
            let given_up = self.given_up.remove(&at);
            let old = &self.bytes[at * sector..((at + 1) * sector).min(self.bytes.len())];
            self.unsynced.entry(at).or_insert_with(|| given_up.unwrap_or_else(|| old.to_vec()));
        }
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Decides what is left of each unsynced sector; what is left is durable.
    pub(crate) fn settle(&mut self, sector: usize, fate: &mut impl FnMut() -> Effect) {
        let mut unsynced = std::mem::take(&mut self.unsynced);
        unsynced.extend(std::mem::take(&mut self.given_up));
        for (at, old) in unsynced {
            let keep = match fate() {
                Effect::Kept => continue,
                Effect::Lost => 0,
                Effect::Torn(where_to) => where_to as usize % (old.len() + 1),
            };
            let from = at * sector;
            self.bytes[from + keep..from + old.len()].copy_from_slice(&old[keep..]);
        }
        if self.durable_length < self.bytes.len() && !matches!(fate(), Effect::Kept) {
            self.bytes.truncate(self.durable_length);
        }
        self.durable_length = self.bytes.len();
    }
}
