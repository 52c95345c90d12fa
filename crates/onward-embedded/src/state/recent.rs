//! What is remembered for a while so that a repeat answers as the first time: settlements and bulk operations.

use crate::Said;
use hashbrown::HashMap;
use onward_core::{BulkId, BulkReport, MessageState, Timestamp};
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// Most settlements remembered per generation; the older of two generations is dropped when the newer is full.
pub const SETTLED_MAX: usize = 100_000;
/// Most bulk operations remembered per generation.
pub const BULKS_MAX: usize = 1_000;

/// A lease that was settled by its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeaseMark {
    /// The message.
    pub seq: u64,
    /// The epoch in which it was leased.
    pub epoch: u32,
    /// The attempt.
    pub attempt: u32,
    /// The token's secret part.
    pub nonce: u32,
}

/// How it was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledMark {
    /// What the holder said.
    pub said: Said,
    /// The message's state after it.
    pub state: MessageState,
    /// When it was to come again.
    pub due: Option<Timestamp>,
}

/// The latest entries, at least `most` and at most twice that.
#[derive(Debug, Clone)]
pub(crate) struct Recent<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
    most: usize,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        Self { new: HashMap::new(), old: HashMap::new(), most }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.new.len() >= self.most {
            // The older one's memory serves for the newer.
            std::mem::swap(&mut self.old, &mut self.new);
            self.new.clear();
        }
        self.old.remove(&key);
        self.new.insert(key, value);
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.new.get(key).or_else(|| self.old.get(key))
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&K, &V)> {
        self.old.iter().chain(&self.new)
    }
}

/// Remembered settlements.
pub(crate) type Settlements = Recent<LeaseMark, SettledMark>;
/// Remembered bulk operations.
pub(crate) type Bulks = Recent<BulkId, BulkReport>;
