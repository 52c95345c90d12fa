//! What can be handed out now: by priority with ageing, shared out by fairness key, each in arrival order.

use super::{
    level::Level,
    slab::{Entry, Queued, Slab},
};
use hashbrown::HashMap;
use onward_core::{Key, PRIORITY_MAX, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

const LEVELS: usize = PRIORITY_MAX as usize + 1;

/// Ready messages of one inlet.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    levels: [Level; LEVELS],
    suspects: BTreeMap<u64, Suspect>,
    /// Keys that a limit was found to hold: until when, or until one of their leases ends.
    held: HashMap<Key, Option<Timestamp>>,
    /// The same, by time.
    wakes: BTreeSet<(Timestamp, Key)>,
    len: usize,
}

/// A suspect that waits: its slot, the position that made it ready, its fairness key.
type Suspect = (u32, u64, Option<Key>);

/// Whether the limits per key let a fairness key be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    /// Not before this time.
    At(Timestamp),
    /// Not before one of its leases ends.
    WhenFreed,
}

/// What may be taken.
pub(crate) struct Ask<'a> {
    pub(crate) now: Timestamp,
    pub(crate) ageing_ms: u64,
    /// Only what a position before this made ready.
    pub(crate) visible: u64,
    /// Only these types; `None` for all.
    pub(crate) kinds: Option<&'a [u32]>,
    /// Whether this fairness key may be served now; messages without one always may.
    pub(crate) turn: &'a dyn Fn(&Key) -> Turn,
}

impl Ask<'_> {
    fn allows(&self, slab: &Slab, (slot, position, fairness): &Suspect) -> bool {
        *position < self.visible
            && self.kinds.is_none_or(|kinds| kinds.contains(&slab.get(*slot).kind))
            && fairness.as_ref().is_none_or(|key| (self.turn)(key) == Turn::Now)
    }
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
        self.len += 1;
        self.levels[usize::from(priority)].lane(kind, fairness).fresh.push_back(slot);
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
        self.len += 1;
        if suspect {
            self.suspects.insert(seq, (slot, position, fairness));
        } else {
            let level = &mut self.levels[usize::from(priority)];
            level.lane(kind, fairness).returned.insert(seq, (slot, position));
        }
    }

    /// Removes a message wherever it stands; nothing happens when it is not here.
    pub(crate) fn remove(&mut self, slab: &mut Slab, slot: u32, fairness: &Option<Key>) {
        let Entry { seq, priority, kind, queued: was, .. } = slab.change(slot, |entry| Entry {
            queued: std::mem::replace(&mut entry.queued, Queued::No),
            ..*entry
        });
        match was {
            Queued::No => return,
            Queued::Suspect => drop(self.suspects.remove(&seq)),
            Queued::Fresh => self.levels[usize::from(priority)].leave(kind, fairness, |lane| {
                lane.skipped += 1;
                lane.clean(slab);
            }),
            Queued::Returned => self.levels[usize::from(priority)].leave(kind, fairness, |lane| {
                lane.returned.remove(&seq);
            }),
        }
        self.len -= 1;
    }

    /// Takes the next suspect that is visible, of an accepted type, and held by no limit.
    pub(crate) fn take_suspect(&mut self, slab: &mut Slab, ask: &Ask<'_>) -> Option<(u32, u64)> {
        let (seq, _) = self.suspects.iter().find(|(_, suspect)| ask.allows(slab, suspect))?;
        let (slot, position, _) = self.suspects.remove(&{ *seq })?;
        slab.change(slot, |entry| entry.queued = Queued::No);
        self.len -= 1;
        Some((slot, position))
    }

    /// Whether a suspect waits that such a request could take.
    pub(crate) fn has_suspect(&self, slab: &Slab, ask: &Ask<'_>) -> bool {
        self.suspects.values().any(|suspect| ask.allows(slab, suspect))
    }

    /// Takes the next message; answers its slot and the position that made it ready.
    pub(crate) fn take(&mut self, slab: &mut Slab, ask: &Ask<'_>) -> Option<(u32, u64)> {
        self.recall_due(ask.now);
        let mut order = [0usize; LEVELS];
        let used = self.levels_by_urgency(slab, ask, &mut order);
        let mut refused = Vec::new();
        let taken = order[..used].iter().find_map(|&level| self.levels[level].take(slab, ask, &mut refused));
        refused.into_iter().for_each(|(key, until)| self.hold(key, until));
        self.len -= usize::from(taken.is_some());
        taken
    }

    /// A limit holds a key: it is not looked at again until it may be served, so that many such keys cost nothing.
    fn hold(&mut self, key: Key, until: Option<Timestamp>) {
        let same = Some(key.clone());
        self.levels.iter_mut().for_each(|level| level.hold(&same, true));
        if let Some(Some(before)) = self.held.insert(key.clone(), until) {
            self.wakes.remove(&(before, key.clone()));
        }
        self.wakes.extend(until.map(|until| (until, key)));
    }

    /// A key may be served again, as after one of its leases has ended.
    pub(crate) fn recall(&mut self, key: &Key) {
        let Some(until) = self.held.remove(key) else { return };
        if let Some(until) = until {
            self.wakes.remove(&(until, key.clone()));
        }
        let same = Some(key.clone());
        self.levels.iter_mut().for_each(|level| level.hold(&same, false));
    }

    fn recall_due(&mut self, now: Timestamp) {
        while let Some((_, key)) = self.wakes.first().filter(|(until, _)| *until <= now) {
            self.recall(&key.clone());
        }
    }

    /// Every key may be served again, as after the limits were changed.
    pub(crate) fn recall_all(&mut self) {
        (self.held, self.wakes) = Default::default();
        self.levels.iter_mut().for_each(Level::recall_all);
    }

    /// Whether a limit holds some key.
    pub(crate) fn holds_keys(&self) -> bool {
        !self.held.is_empty()
    }

    /// When the first of the keys that a rate holds may be served again.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(until, _)| *until)
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
        let suspect = self.suspects.iter().next().map(|(seq, (slot, ..))| (*seq, *slot));
        let fronts = self.levels.iter().filter_map(|level| level.oldest(slab));
        fronts.chain(suspect).min().map(|(_, slot)| slot)
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
        let Some((seq, slot)) = self.levels[level].oldest_in_turn(slab) else { return (u64::MAX, u64::MAX) };
        let waited = ask.now.since(slab.get(slot).accepted_at).as_millis() as u64;
        let aged = (level as u64 + waited / ask.ageing_ms.max(1)).min(u64::from(PRIORITY_MAX));
        (u64::from(PRIORITY_MAX) - aged, seq)
    }
}
