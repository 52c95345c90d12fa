//! One line of ready messages.

use super::{
    line::Line,
    slab::{Queued, Slab},
};
use std::collections::BTreeMap;

/// A fresh message that is skipped stays in its line until it comes to the front; at so many the line is cleaned.
const SKIPPED_MAX: usize = 4096;

/// Messages of one priority, fairness key and type.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Slots in arrival order, as they were accepted; those no longer `Queued::Fresh` are skipped.
    pub(super) fresh: Line,
    pub(super) skipped: usize,
    /// Those that became ready later, by sequence: slot and the position that made them ready.
    pub(super) returned: BTreeMap<u64, (u32, u64)>,
}

impl Lane {
    /// Sequence, slot and the position that made it ready, of the oldest.
    pub(super) fn front(&self, slab: &Slab) -> Option<(u64, u32, u64)> {
        let fresh = self.fresh.front().map(|slot| (slab.seq(slot), slot, slab.seq(slot)));
        let returned = self.returned.iter().next().map(|(seq, (slot, position))| (*seq, *slot, *position));
        fresh.into_iter().chain(returned).min()
    }

    pub(super) fn visible_front(&self, slab: &Slab, visible: u64) -> Option<u64> {
        let fresh = self.fresh.front().map(|slot| slab.seq(slot)).filter(|seq| *seq < visible);
        let returned =
            self.returned.iter().find(|(_, (_, position))| *position < visible).map(|(seq, _)| *seq);
        fresh.into_iter().chain(returned).min()
    }

    pub(super) fn pop(&mut self, slab: &mut Slab, visible: u64) -> Option<(u32, u64)> {
        let seq = self.visible_front(slab, visible)?;
        let (slot, position) = match self.returned.remove(&seq) {
            Some(found) => found,
            None => {
                let slot = self.fresh.pop_front()?;
                slab.out_of_line(slot);
                (slot, seq)
            }
        };
        slab.change(slot, |entry| entry.queued = Queued::No);
        self.clean(slab);
        Some((slot, position))
    }

    /// Keeps the front of the fresh line a message that is really there, and the line free of too many skipped ones.
    pub(super) fn clean(&mut self, slab: &mut Slab) {
        if self.skipped > SKIPPED_MAX && self.skipped > self.fresh.len() / 2 {
            self.fresh.retain(&mut |slot| {
                let there = slab.get(slot).queued == Queued::Fresh;
                if !there {
                    slab.out_of_line(slot);
                }
                there
            });
            self.skipped = 0;
        }
        while let Some(slot) = self.fresh.front() {
            if slab.get(slot).queued == Queued::Fresh {
                break;
            }
            self.fresh.pop_front();
            self.skipped = self.skipped.saturating_sub(1);
            slab.out_of_line(slot);
        }
    }
}
