//! What time alone brings about: leases that end, messages that expire, retention.

use super::{
    Context, Draft,
    draft::Touch,
    settle::{self, Live},
};
use crate::{
    At, End, Fact, InletId, Removal, State,
    state::{Queue, Status},
};
use onward_core::{CauseKind, Failure, RetryDelay, Timestamp};
use std::time::Duration;

/// Most messages of one kind that one step of the clock changes in one inlet; the next step follows at once.
const STEP_MAX: usize = 1_000;

/// Whether an inlet has leases or messages whose time has run out, so that handing out must wait for a step.
pub(crate) fn queue_is_overdue(queue: &Queue, now: Timestamp) -> bool {
    queue.deadlines.first().is_some_and(|(at, _)| *at <= now)
        || queue.expiry.first().is_some_and(|(at, _, _)| *at <= now)
}

/// When something is due next, in any inlet or record.
pub(crate) fn next(state: &State) -> Option<Timestamp> {
    let topics = state.topics().filter_map(|topic| topic.next_trim(state.time()));
    state.queues().filter_map(next_of).chain(topics).chain(state.records.next_expiry()).min()
}

/// When something is due next in an inlet.
pub(crate) fn next_of(queue: &Queue) -> Option<Timestamp> {
    let deadline = queue.deadlines.first().map(|(at, _)| *at);
    let expiry = queue.expiry.first().map(|(at, _, _)| *at);
    let due = queue.due.first().map(|(at, _, _)| *at);
    let retired = queue.config.dead_retention_ms.and_then(|keep| {
        let slot = *queue.dead.values().next()?;
        Some(queue.side(slot)?.dead?.1.plus(Duration::from_millis(keep)))
    });
    let forgotten = queue.kept.first().map(|(at, _, _)| at.plus(retention(queue)));
    [deadline, expiry, due, retired, forgotten].into_iter().flatten().min()
}

fn retention(queue: &Queue) -> Duration {
    Duration::from_millis(queue.config.result_retention_ms)
}

/// Plans one step of the clock, in one inlet or in all. Answers whether more is left.
pub(crate) fn plan(state: &State, draft: &mut Draft, only: Option<InletId>, ctx: &mut Context<'_>) -> bool {
    let mut more = false;
    for queue in state.queues().filter(|queue| only.is_none_or(|id| queue.id == id)) {
        more |= end_leases(queue, draft, ctx);
        more |= remove(queue, draft, Removal::Expired, &expired(queue, ctx.now));
        if only.is_none() {
            more |= remove(queue, draft, Removal::Retired, &retired(queue, ctx.now));
            more |= remove(queue, draft, Removal::Forgotten, &forgotten(queue, ctx.now));
        }
    }
    if only.is_none() {
        for topic in state.topics() {
            let due = topic.next_trim(ctx.now).is_some_and(|at| at <= ctx.now);
            if due {
                draft.drain(Fact::Trimmed { topic: topic.id });
            }
            more |= due;
        }
        let keys = state.records.expired(ctx.now, STEP_MAX);
        more |= keys.len() == STEP_MAX;
        if !keys.is_empty() {
            draft.drain(Fact::RecordsExpired { keys });
        }
    }
    more
}

fn end_leases(queue: &Queue, draft: &mut Draft, ctx: &mut Context<'_>) -> bool {
    let ended: Vec<u64> = queue
        .deadlines
        .iter()
        .take_while(|(deadline, _)| *deadline <= ctx.now)
        .take(STEP_MAX)
        .map(|(_, seq)| *seq)
        .collect();
    for seq in &ended {
        let Some(lease) = queue.leases.get(seq) else { continue };
        let at = At { inlet: queue.id, message: queue.reference(lease.slot) };
        let end = end_of(&Live { queue, lease, at }, ctx);
        if draft.touch(queue.id, *seq, Touch::Other).is_ok() {
            draft.drain(Fact::Settled { at, said: None, end });
        }
    }
    ended.len() == STEP_MAX
}

fn end_of(found: &Live<'_>, ctx: &mut Context<'_>) -> End {
    let lease = found.lease;
    let span = ctx.now.since(lease.since);
    let failure = Failure::new(
        CauseKind::LeaseExpired,
        format!("no word from its holder; the lease ended after {span:?}"),
    );
    if found.queue.slab.get(lease.slot).status == Status::Gone {
        let copy = !found.queue.stopped_dead_full();
        return End::Lost { cause: settle::cause(lease, failure, ctx), copy };
    }
    if lease.cancel_requested {
        return End::Cancelled;
    }
    settle::failed(found, RetryDelay::Policy, failure, ctx)
}

fn expired(queue: &Queue, now: Timestamp) -> Vec<u32> {
    queue.expiry.iter().take_while(|(at, _, _)| *at <= now).take(STEP_MAX).map(|(_, _, slot)| *slot).collect()
}

fn retired(queue: &Queue, now: Timestamp) -> Vec<u32> {
    let Some(keep) = queue.config.dead_retention_ms.map(Duration::from_millis) else { return Vec::new() };
    let old = |slot: &u32| {
        let died = queue.side(*slot).and_then(|side| side.dead).map(|(_, at)| at);
        died.is_some_and(|at| at.plus(keep) <= now)
    };
    queue.dead.values().copied().take_while(old).take(STEP_MAX).collect()
}

fn forgotten(queue: &Queue, now: Timestamp) -> Vec<u32> {
    let keep = retention(queue);
    let old = queue.kept.iter().take_while(|(at, _, _)| at.plus(keep) <= now);
    old.take(STEP_MAX).map(|(_, _, slot)| *slot).collect()
}

fn remove(queue: &Queue, draft: &mut Draft, why: Removal, slots: &[u32]) -> bool {
    if !slots.is_empty() {
        let messages = slots.iter().map(|slot| queue.reference(*slot)).collect();
        draft.drain(Fact::Removed { inlet: queue.id, messages, why, bulk: None });
    }
    slots.len() == STEP_MAX
}
