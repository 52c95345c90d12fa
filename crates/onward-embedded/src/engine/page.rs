//! Pages: which messages one holds, and where the next goes on.

use super::view;
use crate::state::{Queue, Status};
use onward_core::{Cursor, Error, MessageState, PAGE_MAX, Result};

/// A place in a page: two numbers in order, and the slot.
pub(super) type Found = Vec<(u64, u64, u32)>;

pub(super) fn of_state(queue: &Queue, state: MessageState, after: Option<(u64, u64)>, limit: usize) -> Found {
    match state {
        MessageState::Dead => {
            let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            let range = queue.dead.range((from, std::ops::Bound::Unbounded));
            range.take(limit + 1).map(|((position, seq), slot)| (*position, *seq, *slot)).collect()
        }
        MessageState::Leased => {
            let leased = |slot: &u32| queue.slab.get(*slot).status == Status::Leased;
            smallest(queue, queue.leases.values().map(|lease| lease.slot).filter(leased), after, limit)
        }
        MessageState::Delayed => smallest(queue, queue.due.iter().map(|(_, _, slot)| *slot), after, limit),
        MessageState::Waiting => {
            let waiting = |slot: &u32| queue.slab.get(*slot).status == Status::Waiting;
            smallest(queue, queue.slab.slots().filter(waiting), after, limit)
        }
        MessageState::Done | MessageState::Expired | MessageState::Cancelled => {
            let ended = queue.kept.iter().map(|(_, _, slot)| *slot);
            smallest(queue, ended.filter(|slot| view::state_of(queue, *slot) == state), after, limit)
        }
    }
}

pub(super) fn of_order_key(queue: &Queue, key: &onward_core::Key, after: Option<(u64, u64)>) -> Found {
    let has_key = |slot: &u32| queue.side(*slot).is_some_and(|side| side.order_key.as_ref() == Some(key));
    let unended = |slot: &u32| queue.slab.get(*slot).status != Status::Kept;
    match queue.chains.get(key) {
        Some(chain) => {
            smallest(queue, chain.members.values().chain(chain.dead.values()).copied(), after, PAGE_MAX)
        }
        None => smallest(queue, queue.slab.slots().filter(has_key).filter(unended), after, PAGE_MAX),
    }
}

/// The oldest `limit` and one more of them, behind `after`, in order.
pub(super) fn smallest(
    queue: &Queue,
    slots: impl Iterator<Item = u32>,
    after: Option<(u64, u64)>,
    limit: usize,
) -> Found {
    let mut heap = std::collections::BinaryHeap::with_capacity(limit.min(PAGE_MAX) + 2);
    for slot in slots {
        let seq = queue.slab.get(slot).seq;
        if after.is_none_or(|(last, _)| seq > last) {
            heap.push((seq, 0, slot));
            if heap.len() > limit + 1 {
                heap.pop();
            }
        }
    }
    heap.into_sorted_vec()
}

pub(super) fn limit(asked: usize) -> Result<usize> {
    if (1..=PAGE_MAX).contains(&asked) {
        return Ok(asked);
    }
    Err(Error::invalid(format!("is {asked}"))
        .at("`limit`")
        .mend(format!("use 1 to {PAGE_MAX}, and the cursor for more")))
}

pub(super) fn cursor(first: u64, second: u64) -> Cursor {
    Cursor(format!("{first}.{second}"))
}

pub(super) fn parse(cursor: &Cursor) -> Result<(u64, u64)> {
    let parsed = cursor.0.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::invalid("is not one of this engine")
            .at("the cursor")
            .mend("use `next` of the page before, unchanged")
    })
}
