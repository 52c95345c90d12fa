//! Which segments of the log still hold bodies that somebody needs.

use crate::codec::wire::wire_struct;
use onward_log::SEGMENT_SPAN;
use std::collections::BTreeMap;

/// Counts of bodies by segment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Live {
    segments: BTreeMap<u32, SegmentUse>,
}

/// How a segment is used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentUse {
    /// Bodies that were written to it.
    pub(crate) bodies: u64,
    /// Those still needed.
    pub(crate) live: u64,
    /// Behind the facts that made the last of them unneeded: the segment may go once this is durable.
    pub(crate) dead_since: u64,
}

wire_struct!(SegmentUse { bodies, live, dead_since });

/// The segment of a position.
pub(crate) fn segment_of(position: u64) -> u32 {
    (position / SEGMENT_SPAN) as u32
}

impl Live {
    /// A body was written at `position`, and is needed.
    pub(crate) fn written(&mut self, position: u64) {
        let segment = self.segments.entry(segment_of(position)).or_default();
        segment.bodies += 1;
        segment.live += 1;
    }

    /// Nobody needs the bodies at these positions; the facts that say so end at `end`.
    pub(crate) fn released(&mut self, positions: &[u64], end: u64) {
        for position in positions {
            if let Some(segment) = self.segments.get_mut(&segment_of(*position)) {
                segment.live = segment.live.saturating_sub(1);
                segment.dead_since = segment.dead_since.max(end);
            }
        }
    }

    /// Bodies counted anew from a state: only what is needed is known.
    pub(crate) fn needed(&mut self, position: u64) {
        self.segments.entry(segment_of(position)).or_default().live += 1;
    }

    /// How many bodies each segment was written with, for a snapshot.
    pub(crate) fn written_counts(&self) -> Vec<(u32, u64)> {
        self.segments.iter().map(|(index, segment)| (*index, segment.bodies)).collect()
    }

    /// Takes those counts back.
    pub(crate) fn restore_counts(&mut self, counts: &[(u32, u64)]) {
        for (index, bodies) in counts {
            self.segments.entry(*index).or_default().bodies = *bodies;
        }
    }

    pub(crate) fn of(&self, segment: u32) -> SegmentUse {
        self.segments.get(&segment).copied().unwrap_or_default()
    }

    pub(crate) fn forget(&mut self, segment: u32) {
        self.segments.remove(&segment);
    }
}
