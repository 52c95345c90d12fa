//! The live leases of an inlet, and how many of them each fairness key has: nothing else counts slots.

use super::lease::Lease;
use hashbrown::HashMap;
use onward_core::Key;
use std::ops::Deref;

/// Live leases by the sequence of their message. Reads go to the map itself.
#[derive(Debug, Default, Clone)]
pub(crate) struct Leases {
    live: HashMap<u64, Lease>,
    by_key: HashMap<Key, u64>,
}

impl Deref for Leases {
    type Target = HashMap<u64, Lease>;

    fn deref(&self) -> &Self::Target {
        &self.live
    }
}

impl Leases {
    /// Of one fairness key.
    pub(crate) fn of_key(&self, key: &Key) -> u64 {
        self.by_key.get(key).copied().unwrap_or(0)
    }

    pub(super) fn insert(&mut self, seq: u64, lease: Lease) {
        let key = lease.fairness_key.clone();
        let before = self.live.insert(seq, lease);
        self.uncount(before.and_then(|before| before.fairness_key));
        if let Some(key) = key {
            *self.by_key.entry(key).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<Lease> {
        let lease = self.live.remove(&seq)?;
        self.uncount(lease.fairness_key.clone());
        Some(lease)
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut Lease> {
        self.live.get_mut(&seq)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&u64, &mut Lease)> {
        self.live.iter_mut()
    }

    fn uncount(&mut self, key: Option<Key>) {
        let Some(key) = key else { return };
        if let Some(count) = self.by_key.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.by_key.remove(&key);
            }
        }
    }
}
