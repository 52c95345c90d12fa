//! Ready messages of one priority: by fairness key in turn, each key's by type in arrival order.

use super::{
    lane::Lane,
    ready::{Ask, Turn},
    slab::{Queued, Slab},
};
use onward_core::{Key, Timestamp};
use std::{collections::BTreeMap, ops::Bound};

/// With very many keys, so many of those next in turn are looked at where the oldest is wanted.
const LOOK_MAX: usize = 64;

type Group = BTreeMap<u32, Lane>;
type Groups = BTreeMap<Option<Key>, Group>;

#[derive(Debug, Default)]
pub(super) struct Level {
    groups: Groups,
    /// Those of keys that a limit holds: none of them is looked at until it may be served again.
    held: Groups,
    /// The group served last; the next one behind it is next.
    served: Option<Option<Key>>,
    pub(super) len: usize,
}

impl Level {
    /// The lane that one more message is put into.
    pub(super) fn lane(&mut self, kind: u32, fairness: Option<Key>) -> &mut Lane {
        self.len += 1;
        let held = !self.held.is_empty() && self.held.contains_key(&fairness);
        let groups = if held { &mut self.held } else { &mut self.groups };
        groups.entry(fairness).or_default().entry(kind).or_default()
    }

    /// A message goes that stands in this lane.
    pub(super) fn leave(&mut self, kind: u32, fairness: &Option<Key>, leave: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.group(fairness).and_then(|group| group.get_mut(&kind)) {
            leave(lane);
        }
        self.len -= 1;
        self.prune(fairness, kind);
    }

    fn group(&mut self, fairness: &Option<Key>) -> Option<&mut Group> {
        match self.groups.get_mut(fairness) {
            Some(group) => Some(group),
            None => self.held.get_mut(fairness),
        }
    }

    /// Its slots in arrival order.
    pub(super) fn slots(&self, slab: &Slab) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.len);
        for lane in self.groups.values().chain(self.held.values()).flat_map(BTreeMap::values) {
            all.extend(lane.fresh.slots().filter(|slot| slab.get(*slot).queued == Queued::Fresh));
            all.extend(lane.returned.values().map(|(slot, _)| *slot));
        }
        all.sort_by_key(|slot| slab.seq(*slot));
        all
    }

    /// The oldest of the first few groups behind the one served last; what a limit holds is not among them.
    pub(super) fn oldest_in_turn(&self, slab: &Slab) -> Option<(u64, u32)> {
        oldest(self.in_turn().map(|(_, group)| group), slab)
    }

    /// The same, and the oldest of the first few that a limit holds.
    pub(super) fn oldest(&self, slab: &Slab) -> Option<(u64, u32)> {
        self.oldest_in_turn(slab).into_iter().chain(oldest(self.held.values(), slab)).min()
    }

    fn in_turn(&self) -> impl Iterator<Item = (&Option<Key>, &Group)> {
        let (behind, before) = match &self.served {
            None => (Bound::Unbounded, Bound::Excluded(None)),
            Some(key) => (Bound::Excluded(key.clone()), Bound::Included(key.clone())),
        };
        self.groups.range((behind, Bound::Unbounded)).chain(self.groups.range((Bound::Unbounded, before)))
    }

    /// Takes the next one; keys that a limit holds are told to `refused`.
    pub(super) fn take(
        &mut self,
        slab: &mut Slab,
        ask: &Ask<'_>,
        refused: &mut Vec<(Key, Option<Timestamp>)>,
    ) -> Option<(u32, u64)> {
        let (fairness, kind) = self.in_turn().find_map(|(fairness, group)| {
            let lanes = group.iter().filter(|(kind, _)| ask.kinds.is_none_or(|kinds| kinds.contains(kind)));
            let first =
                lanes.filter_map(|(kind, lane)| Some((lane.visible_front(slab, ask.visible)?, *kind)));
            let (_, kind) = first.min()?;
            match fairness.as_ref().map(|key| (key, (ask.turn)(key))) {
                None | Some((_, Turn::Now)) => Some((fairness.clone(), kind)),
                Some((key, Turn::At(at))) => {
                    refused.push((key.clone(), Some(at)));
                    None
                }
                Some((key, Turn::WhenFreed)) => {
                    refused.push((key.clone(), None));
                    None
                }
            }
        })?;
        let lane = self.groups.get_mut(&fairness)?.get_mut(&kind)?;
        let taken = lane.pop(slab, ask.visible)?;
        self.len -= 1;
        self.prune(&fairness, kind);
        self.served = Some(fairness);
        Some(taken)
    }

    /// A limit holds this key, or does no more.
    pub(super) fn hold(&mut self, key: &Option<Key>, held: bool) {
        let (from, to) = match held {
            true => (&mut self.groups, &mut self.held),
            false => (&mut self.held, &mut self.groups),
        };
        if let Some((key, group)) = from.remove_entry(key) {
            to.insert(key, group);
        }
    }

    /// No limit holds any key.
    pub(super) fn recall_all(&mut self) {
        self.groups.append(&mut self.held);
    }

    /// Forgets an empty lane. Those without a fairness key are kept, up to a few: they fill again at once.
    fn prune(&mut self, fairness: &Option<Key>, kind: u32) {
        const KEPT_MAX: usize = 64;
        let Some(group) = self.group(fairness) else { return };
        if fairness.is_none() && group.len() <= KEPT_MAX {
            return;
        }
        if group.get(&kind).is_some_and(|lane| lane.fresh.is_empty() && lane.returned.is_empty()) {
            group.remove(&kind);
        }
        if group.is_empty() {
            self.groups.remove(fairness);
            self.held.remove(fairness);
        }
    }
}

fn oldest<'a>(groups: impl Iterator<Item = &'a Group>, slab: &Slab) -> Option<(u64, u32)> {
    let fronts = groups.take(LOOK_MAX).flat_map(BTreeMap::values).filter_map(|lane| lane.front(slab));
    fronts.map(|(seq, slot, _)| (seq, slot)).min()
}
