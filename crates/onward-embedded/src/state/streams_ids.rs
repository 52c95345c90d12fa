//! Ids of events appended lately, so that a repeat that expects no exact revision is recognised: two generations.

use crate::StreamId;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Most events remembered per generation; the older of two generations is dropped when the newer is full.
pub const EVENT_IDS_MAX: usize = 1 << 17;

/// Where an event was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its stream.
    pub stream: StreamId,
    /// Its revision there.
    pub revision: u64,
}

/// Where events stand by their mark: the keyed hash of stream and id.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventIds {
    new: HashMap<u64, Found>,
    old: HashMap<u64, Found>,
}

impl EventIds {
    pub(crate) fn insert(&mut self, mark: u64, found: Found) {
        if self.new.len() >= EVENT_IDS_MAX {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(mark, found);
    }

    pub(crate) fn get(&self, mark: u64) -> Option<Found> {
        self.new.get(&mark).or_else(|| self.old.get(&mark)).copied()
    }

    /// Of one generation, in the order of the marks.
    pub(crate) fn entries(&self, old: bool) -> Vec<(u64, Found)> {
        let generation = if old { &self.old } else { &self.new };
        let mut entries: Vec<_> = generation.iter().map(|(mark, found)| (*mark, *found)).collect();
        entries.sort_unstable_by_key(|(mark, _)| *mark);
        entries
    }

    /// Takes entries back into the generation in which they stood.
    pub(crate) fn restore(&mut self, old: bool, entries: Vec<(u64, Found)>) {
        let generation = if old { &mut self.old } else { &mut self.new };
        generation.extend(entries);
    }
}
