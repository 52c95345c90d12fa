//! Redriving and purging by selection: resumable, with a dry run.

use super::{Answer, Context, Draft, Planned, no_inlet, record::audit};
use crate::{
    BulkMark, Fact, Removal, State,
    state::{Queue, Status},
};
use hashbrown::HashSet;
use onward_core::{BulkId, BulkReport, Error, Inlet, Key, PurgeWhat, Receipt, Result, Selection};
use std::time::Duration;

/// Most messages that one call of a bulk operation changes; a repeat of its id goes on.
pub const BULK_STEP_MAX: usize = 10_000;

/// A bulk operation as it was asked for.
pub(super) struct Bulk<'a> {
    pub(super) inlet: &'a Inlet,
    pub(super) selection: &'a Selection,
    pub(super) id: BulkId,
    pub(super) dry_run: bool,
    /// Its place in the commit.
    pub(super) at: usize,
}

impl Bulk<'_> {
    fn queue<'a>(&self, state: &'a State, draft: &mut Draft) -> Result<&'a Queue> {
        let queue = state.find(self.inlet).ok_or_else(|| no_inlet(self.inlet))?;
        draft.must_be_untouched(queue.id)?;
        if draft.bulks.contains(&self.id) {
            return Err(Error::invalid("two bulk operations of one commit have the same id"));
        }
        draft.bulks.push(self.id);
        Ok(queue)
    }

    /// What an earlier call of this id has done, unless this is a dry run.
    fn before(&self, state: &State) -> BulkReport {
        if self.dry_run {
            BulkReport::default()
        } else {
            state.bulks.get(&self.id).copied().unwrap_or_default()
        }
    }

    /// Whether a message is among what is asked for.
    fn selects(&self, queue: &Queue, slot: u32, ids: &HashSet<u64>, ctx: &Context<'_>) -> bool {
        let (selection, entry, side) = (self.selection, queue.slab.get(slot), queue.side(slot));
        let last = side.and_then(|side| side.causes.last());
        let since = side.and_then(|side| side.dead).map_or(entry.accepted_at, |(_, at)| at);
        let matches = |seq: &u64| ctx.matches.get(&self.at).is_some_and(|found| found.contains(seq));
        (ids.is_empty() || ids.contains(&entry.marks.id))
            && selection.kind.as_ref().is_none_or(|kind| queue.kinds.name(entry.kind) == kind)
            && selection
                .order_key
                .as_ref()
                .is_none_or(|key| side.and_then(|s| s.order_key.as_ref()) == Some(key))
            && selection.cause.is_none_or(|kind| last.is_some_and(|cause| cause.failure.kind == kind))
            && selection
                .error_contains
                .as_ref()
                .is_none_or(|text| last.is_some_and(|cause| cause.failure.error.contains(&**text)))
            && selection.before.is_none_or(|before| since < before)
            && (selection.correlation_id.is_none() || matches(&entry.seq))
    }

    /// The selected ones of `slots`, at most what the limit still allows.
    fn select(
        &self,
        queue: &Queue,
        slots: impl Iterator<Item = u32>,
        done: u64,
        ctx: &Context<'_>,
    ) -> Vec<u32> {
        let ids: HashSet<u64> = self.selection.ids.iter().map(|id| ctx.marker.id(id)).collect();
        let limit = self.selection.limit.unwrap_or(u64::MAX).saturating_sub(done);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        slots.filter(|slot| self.selects(queue, *slot, &ids, ctx)).take(limit).collect()
    }
}

pub(super) fn redrive(
    state: &State,
    draft: &mut Draft,
    ask: &Bulk<'_>,
    spacing: Duration,
    ctx: &mut Context<'_>,
) -> Planned {
    let queue = ask.queue(state, draft)?;
    let before = ask.before(state);
    if before.finished {
        return Ok(Answer::Ready(Receipt::Bulk(before)));
    }
    let chosen = ask.select(queue, queue.dead.values().copied(), before.done, ctx);
    let chosen = with_followers(queue, chosen);
    let matched = before.done + chosen.len() as u64;
    if ask.dry_run {
        return Ok(Answer::Ready(Receipt::Bulk(BulkReport { matched, done: 0, finished: true })));
    }
    let room = queue.config.depth_max.saturating_sub(queue.depth());
    if room == 0 && !chosen.is_empty() {
        return Err(Error::full("it has no room for redriven messages")
            .at(format!("queue `{}`", ask.inlet))
            .into());
    }
    let most = BULK_STEP_MAX.min(usize::try_from(room).unwrap_or(usize::MAX));
    let finished = chosen.len() <= most;
    let free: Vec<u32> = free_of_claims(queue, chosen.into_iter().take(most));
    let done = before.done + free.len() as u64;
    let report = BulkReport { matched, done, finished: finished || free.is_empty() };
    // A message that followed a dead head may not be due yet: then it still is not.
    let due = |place: usize, slot: u32| {
        let spaced = ctx.now.plus(spacing.saturating_mul((before.done as usize + place) as u32));
        queue.side(slot).and_then(|side| side.due).map_or(spaced, |due| due.max(spaced))
    };
    let messages =
        free.iter().enumerate().map(|(place, slot)| (queue.reference(*slot), due(place, *slot))).collect();
    let bytes: i64 = free.iter().map(|slot| i64::from(queue.slab.get(*slot).size)).sum();
    draft.add_load(queue.id, free.len() as i64, bytes);
    draft.grow(Fact::Redriven { inlet: queue.id, messages, bulk: Some(BulkMark { id: ask.id, report }) });
    audit(state, draft, "redrive", ask.inlet, &format!("{} of {matched}", free.len()), ctx);
    Ok(Answer::Ready(Receipt::Bulk(report)))
}

/// On an inlet that keeps order by key a key is redriven as a whole, in order: choosing one of its dead letters
/// chooses all of them.
fn with_followers(queue: &Queue, chosen: Vec<u32>) -> Vec<u32> {
    let mut keys: HashSet<Key> = HashSet::new();
    let mut all = Vec::with_capacity(chosen.len());
    for slot in chosen {
        match queue.order_key(slot) {
            None => all.push(slot),
            Some(key) => {
                if keys.insert(key.clone()) {
                    all.extend(dead_of_key(queue, &key));
                }
            }
        }
    }
    all
}

fn dead_of_key(queue: &Queue, key: &Key) -> Vec<u32> {
    let Some(chain) = queue.chains.get(key) else { return Vec::new() };
    chain.dead.values().copied().collect()
}

/// Leaves out those whose unique key other unfinished work has taken meanwhile.
fn free_of_claims(queue: &Queue, slots: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut claimed: HashSet<&Key> = HashSet::new();
    let free = |slot: &u32| match queue.side(*slot).and_then(|side| side.unique_key.as_ref()) {
        None => true,
        Some(key) => queue.slot_of_unique(key).is_none() && claimed.insert(key),
    };
    slots.filter(free).collect()
}

pub(super) fn purge(
    state: &State,
    draft: &mut Draft,
    ask: &Bulk<'_>,
    what: PurgeWhat,
    ctx: &mut Context<'_>,
) -> Planned {
    let queue = ask.queue(state, draft)?;
    let before = ask.before(state);
    if before.finished {
        return Ok(Answer::Ready(Receipt::Bulk(before)));
    }
    let chosen = match what {
        PurgeWhat::Dead => ask.select(queue, queue.dead.values().copied(), before.done, ctx),
        PurgeWhat::Waiting => ask.select(queue, unleased(queue).into_iter(), before.done, ctx),
    };
    let everything = what == PurgeWhat::Waiting && *ask.selection == Selection::default();
    let unreached = if everything { unreached(state, queue) } else { None };
    let behind = unreached.map_or(0, |(count, _)| count);
    let matched = before.done + chosen.len() as u64 + behind;
    if ask.dry_run {
        return Ok(Answer::Ready(Receipt::Bulk(BulkReport { matched, done: 0, finished: true })));
    }
    let step = &chosen[..chosen.len().min(BULK_STEP_MAX)];
    let finished = step.len() == chosen.len();
    let done = before.done + step.len() as u64 + if finished { behind } else { 0 };
    let report = BulkReport { matched, done, finished };
    let messages = step.iter().map(|slot| queue.reference(*slot)).collect();
    if what == PurgeWhat::Waiting {
        let bytes: i64 = step.iter().map(|slot| i64::from(queue.slab.get(*slot).size)).sum();
        draft.add_load(queue.id, -(step.len() as i64), -bytes);
    }
    let bulk = Some(BulkMark { id: ask.id, report });
    draft.drain(Fact::Removed { inlet: queue.id, messages, why: Removal::Purged, bulk });
    if let Some((_, until)) = unreached.filter(|_| finished) {
        draft.moved.insert(queue.id);
        draft.drain(Fact::Passed { inlet: queue.id, until, why: Removal::Purged, bulk });
    }
    audit(state, draft, "purge", ask.inlet, &format!("{} of {matched} {what:?}", step.len()), ctx);
    Ok(Answer::Ready(Receipt::Bulk(report)))
}

/// How many messages a subscription has not reached that its filter takes, and the number behind the last one.
fn unreached(state: &State, queue: &Queue) -> Option<(u64, u64)> {
    let (reader, topic) = (queue.reader.as_ref()?, state.topic_of(queue)?);
    let head = topic.shelf.head();
    let count = match reader.filter.is_all() {
        true => reader.unreached(topic),
        false => {
            let entries = (reader.low()..head).filter_map(|number| topic.shelf.get(number));
            entries.filter(|entry| topic.takes(&reader.filter, entry)).count() as u64
        }
    };
    Some((count, head))
}

/// Waiting and delayed messages, oldest first.
fn unleased(queue: &Queue) -> Vec<u32> {
    let idle = |slot: &u32| matches!(queue.slab.get(*slot).status, Status::Waiting | Status::Delayed);
    let mut slots: Vec<u32> = queue.slab.slots().filter(idle).collect();
    slots.sort_by_key(|slot| queue.slab.get(*slot).seq);
    slots
}
