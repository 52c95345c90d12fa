//! Slots by the hash of their messages' ids.
//!
//! One table would be between half empty and full, as it doubles. So there are several of unequal shares: each doubles
//! at another count, so that together they are never far from two thirds full, and no insert has to move all.

use hashbrown::HashTable;

/// Tables. Their shares rise evenly, the last's is nearly twice the first's.
const TABLES: usize = 16;
/// The sum of all shares: the first table has `TABLES` of them, each further one more.
const SHARES: usize = TABLES * TABLES + TABLES * (TABLES - 1) / 2;
/// The table of each share.
const TABLE_OF: [u8; SHARES] = {
    let (mut tables, mut table, mut share) = ([0; SHARES], 0, 0);
    while table < TABLES {
        let end = share + shares(table);
        while share < end {
            tables[share] = table as u8;
            share += 1;
        }
        table += 1;
    }
    tables
};

/// Places of one table that lie together have these bits of the hash in common.
const REGION_SHIFT: u32 = 15;
const REGIONS_PER_TABLE: usize = 32;
/// Parts of the whole index that each fit into the processor's cache.
pub(super) const REGIONS: usize = TABLES * REGIONS_PER_TABLE;

/// Slots by hash. What is the same in two messages, the caller compares.
#[derive(Debug, Default)]
pub(crate) struct Index {
    tables: [HashTable<u32>; TABLES],
}

const fn shares(table: usize) -> usize {
    TABLES + table
}

/// A table places by the lowest bits and tells apart by the highest, so the choice of the table takes what is between.
fn table(hash: u64) -> usize {
    let middle = hash >> 24 & 0xffff_ffff;
    usize::from(TABLE_OF[(middle as usize * SHARES) >> 32])
}

/// The region that a hash falls into.
pub(super) fn region(hash: u64) -> usize {
    table(hash) * REGIONS_PER_TABLE + (hash >> REGION_SHIFT) as usize % REGIONS_PER_TABLE
}

/// How many of `all` fall into a region.
pub(super) fn share_of_region(region: usize, all: usize) -> usize {
    all * shares(region / REGIONS_PER_TABLE) / (SHARES * REGIONS_PER_TABLE)
}

impl Index {
    /// Slots that may be of messages with this hash; others may be among them.
    pub(super) fn of_hash(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        self.tables[table(hash)].iter_hash(hash).copied()
    }

    /// Whether a slot may be of a message with this hash. Asked for many hashes in a row, the processor fetches their
    /// places side by side, which later questions then find near.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        self.of_hash(hash).next().is_some()
    }

    /// Adds a slot. `hash_of` answers the hash of each slot that is there.
    pub(super) fn insert(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        self.tables[table(hash)].insert_unique(hash, slot, |slot| hash_of(*slot));
    }

    pub(super) fn remove(&mut self, hash: u64, slot: u32) {
        if let Ok(found) = self.tables[table(hash)].find_entry(hash, |found| *found == slot) {
            found.remove();
        }
    }

    /// Makes room for `more`, as far as they are spread evenly.
    pub(super) fn reserve(&mut self, more: usize, hash_of: impl Fn(u32) -> u64) {
        for (number, table) in self.tables.iter_mut().enumerate() {
            table.reserve(more * shares(number) / SHARES, |slot| hash_of(*slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(number: u64) -> u64 {
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    #[test]
    fn places_stay_few_at_every_size() {
        let mut index = Index::default();
        for slot in 0..300_000u32 {
            index.insert(spread(slot.into()), slot, |slot| spread(slot.into()));
            let bytes: usize = index.tables.iter().map(HashTable::allocation_size).sum();
            let each = bytes as f64 / f64::from(slot + 1);
            assert!(slot < 20_000 || each < 9.5, "{each} bytes each with {slot}");
        }
    }

    #[test]
    fn a_slot_is_found_by_its_hash_until_it_is_removed() {
        let mut index = Index::default();
        (0..10_000u32).for_each(|slot| index.insert(spread(slot.into()), slot, |slot| spread(slot.into())));
        (0..10_000u32).step_by(2).for_each(|slot| index.remove(spread(slot.into()), slot));
        for slot in 0..10_000u32 {
            let found = index.of_hash(spread(slot.into())).any(|found| found == slot);
            assert_eq!(found, slot % 2 == 1, "slot {slot}");
        }
    }
}
