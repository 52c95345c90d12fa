//! Finished messages that are still remembered, so that a repeat is recognised: two generations, rotated.

use hashbrown::{HashMap, HashSet};
use onward_core::{MessageId, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is remembered of a finished message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Hash of its id.
    pub id_hash: u64,
    /// Hash of its content.
    pub fingerprint: u64,
    /// Its sequence.
    pub seq: u64,
    /// When it finished.
    pub at: Timestamp,
    /// Its id, where it had a dedup key of its own.
    pub id: Option<MessageId>,
}

/// Remembered finished messages by the hash of what deduplicates them.
///
/// Limits: `entries_max`; half of them per generation. A full generation is rotated early, which shortens the window.
#[derive(Debug, Default, Clone)]
pub(crate) struct Finished {
    new: HashMap<u64, Remembered>,
    old: HashMap<u64, Remembered>,
    new_ids: HashSet<u64>,
    old_ids: HashSet<u64>,
    new_since: Timestamp,
    old_since: Timestamp,
    cut_short: bool,
}

impl Finished {
    pub(crate) fn insert(&mut self, dedup: u64, what: Remembered, window: Duration, entries_max: u64) {
        if window.is_zero() || entries_max == 0 {
            return;
        }
        let now = what.at;
        let full = self.new.len() as u64 >= (entries_max / 2).max(1);
        if full || now.since(self.new_since) >= window {
            self.cut_short = full && !self.old.is_empty() && now.since(self.new_since) < window;
            self.old = std::mem::take(&mut self.new);
            self.old_ids = std::mem::take(&mut self.new_ids);
            (self.old_since, self.new_since) = (self.new_since, now);
        }
        if self.new.is_empty() {
            self.new_since = now;
        }
        self.new_ids.insert(what.id_hash);
        self.new.insert(dedup, what);
    }

    pub(crate) fn get(&self, dedup: u64, now: Timestamp, window: Duration) -> Option<&Remembered> {
        let found = self.new.get(&dedup).or_else(|| self.old.get(&dedup))?;
        (now.since(found.at) < window).then_some(found)
    }

    /// Whether a message of this id finished lately; perhaps a little longer ago than the window.
    pub(crate) fn has_id(&self, id_hash: u64) -> bool {
        self.new_ids.contains(&id_hash) || self.old_ids.contains(&id_hash)
    }

    pub(crate) fn len(&self) -> u64 {
        (self.new.len() + self.old.len()) as u64
    }

    /// How long a finished id is really remembered.
    pub(crate) fn window(&self, now: Timestamp, declared: Duration) -> Duration {
        let oldest = if self.old.is_empty() { self.new_since } else { self.old_since };
        if self.cut_short { now.since(oldest).min(declared) } else { declared }
    }

    /// Drops what is past the window.
    pub(crate) fn forget(&mut self, now: Timestamp, window: Duration) {
        if now.since(self.new_since) >= window.saturating_mul(2) {
            *self = Self::default();
        } else if now.since(self.new_since) >= window {
            (self.old, self.old_ids) = (HashMap::new(), HashSet::new());
        }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, &Remembered)> {
        let newer = |hash: &u64| !self.new.contains_key(hash);
        let old = self.old.iter().filter(move |(hash, _)| newer(hash));
        old.chain(&self.new).map(|(hash, what)| (*hash, what))
    }
}
