//! What can be handed out now: by priority with ageing, shared out by fairness key, each in arrival order.

use super::{
    lane::Lane,
    slab::{Entry, Queued, Slab},
};
use onward_core::{Key, PRIORITY_MAX, Timestamp};
use std::{collections::BTreeMap, ops::Bound};

const LEVELS: usize = PRIORITY_MAX as usize + 1;

/// Ready messages of one inlet.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    levels: [Level; LEVELS],
    suspects: BTreeMap<u64, (u32, u64)>,
    len: usize,
}

#[derive(Debug, Default)]
struct Level {
    groups: BTreeMap<Option<Key>, Group>,
    /// The group served last; the next one behind it is next.
    served: Option<Option<Key>>,
    len: usize,
}

type Group = BTreeMap<u32, Lane>;

/// What may be taken.
pub(crate) struct Ask<'a> {
    pub(crate) now: Timestamp,
    pub(crate) ageing_ms: u64,
    /// Only what a position before this made ready.
    pub(crate) visible: u64,
    /// Only these types; `None` for all.
    pub(crate) kinds: Option<&'a [u32]>,
    /// Whether this fairness key may be served now.
    pub(crate) allow: &'a mut dyn FnMut(&Option<Key>) -> bool,
}

impl Ready {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a message that was just accepted: it is the newest of all.
    pub(crate) fn push_fresh(&mut self, slab: &mut Slab, slot: u32, fairness: Option<Key>) {
        let (priority, kind) = slab.change(slot, |entry| {
            (entry.queued, entry.in_line) = (Queued::Fresh, true);
            (entry.priority, entry.kind)
        });
        self.line_up(priority, kind, fairness, slot);
    }

    /// Adds a message, the newest of all, whose entry says already that it is in the fresh line.
    pub(crate) fn line_up(&mut self, priority: u8, kind: u32, fairness: Option<Key>, slot: u32) {
        self.lane(priority, kind, fairness).fresh.push_back(slot);
    }

    /// Adds a message that became ready by the fact at `position`.
    pub(crate) fn push_returned(
        &mut self,
        slab: &mut Slab,
        slot: u32,
        fairness: Option<Key>,
        suspect: bool,
        position: u64,
    ) {
        let (seq, priority, kind) = slab.change(slot, |entry| {
            entry.queued = if suspect { Queued::Suspect } else { Queued::Returned };
            (entry.seq, entry.priority, entry.kind)
        });
        if suspect {
            self.len += 1;
            self.suspects.insert(seq, (slot, position));
        } else {
            self.lane(priority, kind, fairness).returned.insert(seq, (slot, position));
        }
    }

    /// Removes a message wherever it stands; nothing happens when it is not here.
    pub(crate) fn remove(&mut self, slab: &mut Slab, slot: u32, fairness: &Option<Key>) {
        let Entry { seq, priority, kind, queued: was, .. } = slab.change(slot, |entry| Entry {
            queued: std::mem::replace(&mut entry.queued, Queued::No),
            ..*entry
        });
        let level = usize::from(priority);
        match was {
            Queued::No => return,
            Queued::Suspect => drop(self.suspects.remove(&seq)),
            Queued::Fresh | Queued::Returned => {
                let lane = self.levels[level].groups.get_mut(fairness).and_then(|g| g.get_mut(&kind));
                if let Some(lane) = lane {
                    if was == Queued::Fresh {
                        lane.skipped += 1;
                        lane.clean(slab);
                    } else {
                        lane.returned.remove(&seq);
                    }
                }
                self.levels[level].len -= 1;
                self.levels[level].prune(fairness, kind);
            }
        }
        self.len -= 1;
    }

    /// Takes the next suspect that is visible and of an accepted type.
    pub(crate) fn take_suspect(&mut self, slab: &mut Slab, ask: &Ask<'_>) -> Option<(u32, u64)> {
        let (&seq, &(slot, position)) = self.suspects.iter().find(|(_, (slot, position))| {
            *position < ask.visible && ask.kinds.is_none_or(|kinds| kinds.contains(&slab.get(*slot).kind))
        })?;
        self.suspects.remove(&seq);
        slab.change(slot, |entry| entry.queued = Queued::No);
        self.len -= 1;
        Some((slot, position))
    }

    /// Whether a suspect waits that such a request could take.
    pub(crate) fn has_suspect(&self, slab: &Slab, visible: u64, kinds: Option<&[u32]>) -> bool {
        self.suspects.values().any(|(slot, position)| {
            *position < visible && kinds.is_none_or(|kinds| kinds.contains(&slab.get(*slot).kind))
        })
    }

    /// Takes the next message; answers its slot and the position that made it ready.
    pub(crate) fn take(&mut self, slab: &mut Slab, ask: &mut Ask<'_>) -> Option<(u32, u64)> {
        let mut order = [0usize; LEVELS];
        let used = self.levels_by_urgency(slab, ask, &mut order);
        let taken = order[..used].iter().find_map(|&level| self.levels[level].take(slab, ask))?;
        self.len -= 1;
        Some(taken)
    }

    /// Messages of lower priority than `priority`, the lowest first, then the oldest.
    pub(crate) fn less_urgent<'a>(&'a self, slab: &'a Slab, priority: u8) -> impl Iterator<Item = u32> + 'a {
        let lower = self.levels.iter().take(usize::from(priority)).filter(|level| level.len > 0);
        lower.flat_map(move |level| {
            let first = level.oldest(slab).map(|(_, slot)| slot);
            let rest = std::iter::once_with(move || level.slots(slab)).flatten();
            first.into_iter().chain(rest.filter(move |slot| Some(*slot) != first))
        })
    }

    /// The oldest of all.
    pub(crate) fn oldest(&self, slab: &Slab) -> Option<u32> {
        let suspect = self.suspects.iter().next().map(|(seq, (slot, _))| (*seq, *slot));
        let fronts = self.levels.iter().filter_map(|level| level.oldest(slab));
        fronts.chain(suspect).min().map(|(_, slot)| slot)
    }

    /// The lane that one more message is put into.
    fn lane(&mut self, priority: u8, kind: u32, fairness: Option<Key>) -> &mut Lane {
        self.len += 1;
        self.levels[priority as usize].len += 1;
        self.levels[priority as usize].groups.entry(fairness).or_default().entry(kind).or_default()
    }

    /// Levels that have something, the most urgent first: priority plus one for each ageing span waited.
    fn levels_by_urgency(&self, slab: &Slab, ask: &Ask<'_>, order: &mut [usize; LEVELS]) -> usize {
        let mut used = 0;
        for level in (0..LEVELS).rev().filter(|&level| self.levels[level].len > 0) {
            order[used] = level;
            used += 1;
        }
        if used > 1 {
            let mut ranks = [(0u64, 0u64); LEVELS];
            for &level in &order[..used] {
                ranks[level] = self.rank(slab, ask, level);
            }
            order[..used].sort_by_key(|&level| ranks[level]);
        }
        used
    }

    /// Lower is more urgent: the aged priority, then the age.
    fn rank(&self, slab: &Slab, ask: &Ask<'_>, level: usize) -> (u64, u64) {
        let Some((seq, slot)) = self.levels[level].oldest(slab) else { return (u64::MAX, u64::MAX) };
        let waited = ask.now.since(slab.get(slot).accepted_at).as_millis() as u64;
        let aged = (level as u64 + waited / ask.ageing_ms.max(1)).min(u64::from(PRIORITY_MAX));
        (u64::from(PRIORITY_MAX) - aged, seq)
    }
}

impl Level {
    /// Its slots in arrival order.
    fn slots(&self, slab: &Slab) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.len);
        for lane in self.groups.values().flat_map(BTreeMap::values) {
            all.extend(lane.fresh.slots().filter(|slot| slab.get(*slot).queued == Queued::Fresh));
            all.extend(lane.returned.values().map(|(slot, _)| *slot));
        }
        all.sort_by_key(|slot| slab.seq(*slot));
        all
    }

    /// The oldest of the first few groups behind the one served last: with very many groups, of those next in turn.
    fn oldest(&self, slab: &Slab) -> Option<(u64, u32)> {
        const LOOK_MAX: usize = 64;
        let fronts = self.in_turn().take(LOOK_MAX).flat_map(|(_, group)| group.values());
        fronts.filter_map(|lane| lane.front(slab)).map(|(seq, slot, _)| (seq, slot)).min()
    }

    fn in_turn(&self) -> impl Iterator<Item = (&Option<Key>, &Group)> {
        let (behind, before) = match &self.served {
            None => (Bound::Unbounded, Bound::Excluded(None)),
            Some(key) => (Bound::Excluded(key.clone()), Bound::Included(key.clone())),
        };
        self.groups.range((behind, Bound::Unbounded)).chain(self.groups.range((Bound::Unbounded, before)))
    }

    fn take(&mut self, slab: &mut Slab, ask: &mut Ask<'_>) -> Option<(u32, u64)> {
        let (fairness, kind) = self.in_turn().find_map(|(fairness, group)| {
            let lanes = group.iter().filter(|(kind, _)| ask.kinds.is_none_or(|kinds| kinds.contains(kind)));
            let first =
                lanes.filter_map(|(kind, lane)| Some((lane.visible_front(slab, ask.visible)?, *kind)));
            let (_, kind) = first.min()?;
            (ask.allow)(fairness).then(|| (fairness.clone(), kind))
        })?;
        let lane = self.groups.get_mut(&fairness)?.get_mut(&kind)?;
        let taken = lane.pop(slab, ask.visible)?;
        self.len -= 1;
        self.prune(&fairness, kind);
        self.served = Some(fairness);
        Some(taken)
    }

    /// Forgets an empty lane. Those without a fairness key are kept, up to a few: they fill again at once.
    fn prune(&mut self, fairness: &Option<Key>, kind: u32) {
        const KEPT_MAX: usize = 64;
        let Some(group) = self.groups.get_mut(fairness) else { return };
        if fairness.is_none() && group.len() <= KEPT_MAX {
            return;
        }
        if group.get(&kind).is_some_and(|lane| lane.fresh.is_empty() && lane.returned.is_empty()) {
            group.remove(&kind);
        }
        if group.is_empty() {
            self.groups.remove(fairness);
        }
    }
}
