//! Ending an attempt, keeping its progress, fencing by its lease.

use super::{
    Answer, Context, Draft, Planned,
    draft::{Touch, twice},
    no_inlet,
};
use crate::{
    At, End, Fact, Said, State,
    state::{Lease, LeaseMark, Queue, Status},
    token,
};
use onward_core::{
    Cause, CauseKind, Error, Failure, LeaseToken, MessageState, Outcome, Payload, Receipt, Result,
    RetryDelay, SettledAs,
};

/// A live lease of the token's inlet.
pub(super) struct Live<'a> {
    pub(super) queue: &'a Queue,
    pub(super) lease: &'a Lease,
    pub(super) at: At,
}

/// The live lease that a token names; `Err` with its mark when there is none.
pub(super) fn live<'a>(
    state: &'a State,
    token: &LeaseToken,
    ctx: &Context<'_>,
) -> Result<std::result::Result<Live<'a>, LeaseMark>> {
    let mark = token::open(token)?;
    let queue = state.find(&token.inlet).ok_or_else(|| no_inlet(&token.inlet))?;
    let Some(lease) = queue.leases.get(&mark.seq) else { return Ok(Err(mark)) };
    let at = At { inlet: queue.id, message: queue.reference(lease.slot) };
    let same = lease.mark(mark.seq) == mark && at.message.id_hash == ctx.marker.id(&token.id);
    Ok(if same && lease.deadline > ctx.now { Ok(Live { queue, lease, at }) } else { Err(mark) })
}

pub(super) fn lost(token: &LeaseToken) -> Error {
    Error::lease_lost("the lease has ended; nothing was settled")
        .at(format!("message `{}` of `{}`", token.id, token.inlet))
        .mend("drop this attempt's effects: the message is, or will be, with another worker")
}

fn said(outcome: &Outcome) -> Said {
    match outcome {
        Outcome::Ack { .. } => Said::Ack,
        Outcome::Retry { .. } => Said::Retry,
        Outcome::Release { .. } => Said::Release,
        Outcome::Reject { .. } => Said::Reject,
    }
}

pub(super) fn plan(
    state: &State,
    draft: &mut Draft,
    token: &LeaseToken,
    outcome: &Outcome,
    ctx: &mut Context<'_>,
) -> Planned {
    let said = said(outcome);
    let found = match live(state, token, ctx)? {
        Ok(found) => found,
        Err(mark) => return again(state, token, &mark, said),
    };
    let at = found.at;
    match draft.touched.get(&(at.inlet, at.message.seq)) {
        Some(Touch::Settled { said: before, state, due }) => {
            return answer(token, *before == said, SettledAs { state: *state, due: *due, already: true });
        }
        Some(Touch::Other) => return Err(twice().into()),
        None => {}
    }
    let end = end_of(&found, outcome, ctx);
    let (state, due) = after(&end);
    draft.touch(at.inlet, at.message.seq, Touch::Settled { said, state, due })?;
    unload(draft, &found, state);
    draft.drain(Fact::Settled { at, said: Some(said), end });
    Ok(Answer::Ready(Receipt::Settled(SettledAs { state, due, already: false })))
}

/// A settlement of a lease that is not live: a repeat, or a stale token.
fn again(state: &State, token: &LeaseToken, mark: &LeaseMark, said: Said) -> Planned {
    match state.settled.get(mark) {
        Some(before) => {
            let as_before = SettledAs { state: before.state, due: before.due, already: true };
            answer(token, before.said == said, as_before)
        }
        None => Err(lost(token).into()),
    }
}

fn answer(token: &LeaseToken, same: bool, settled: SettledAs) -> Planned {
    if same {
        return Ok(Answer::Ready(Receipt::Settled(settled)));
    }
    Err(Error::conflict("this lease was settled before with another outcome")
        .at(format!("message `{}` of `{}`", token.id, token.inlet))
        .mend("keep to the first outcome")
        .into())
}

/// What the outcome means by the inlet's rules.
fn end_of(found: &Live<'_>, outcome: &Outcome, ctx: &mut Context<'_>) -> End {
    let (queue, lease) = (found.queue, found.lease);
    if queue.slab.get(lease.slot).status == Status::Gone {
        return end_of_gone(found, outcome, ctx);
    }
    match outcome {
        Outcome::Ack { result } => {
            let keeps = queue.config.result_retention_ms > 0;
            End::Acked { result: result.clone().filter(|_| keeps) }
        }
        _ if lease.cancel_requested => End::Cancelled,
        Outcome::Retry { delay, failure } => failed(found, *delay, failure.clone(), ctx),
        Outcome::Release { delay } => End::Released { due: (!delay.is_zero()).then(|| ctx.now.plus(*delay)) },
        Outcome::Reject { failure } => End::Died { cause: cause(lease, failure.clone(), ctx) },
    }
}

/// Of an at-most-once inlet: the message never comes back, so anything but an ack is a counted failure.
fn end_of_gone(found: &Live<'_>, outcome: &Outcome, ctx: &Context<'_>) -> End {
    let failure = match outcome {
        Outcome::Ack { result } => {
            let keeps = found.queue.config.result_retention_ms > 0;
            return End::Acked { result: result.clone().filter(|_| keeps) };
        }
        Outcome::Retry { failure, .. } | Outcome::Reject { failure } => failure.clone(),
        Outcome::Release { .. } => Failure::new(
            CauseKind::Transient,
            "it was released, but an at-most-once inlet can't take it back",
        ),
    };
    End::Lost { cause: cause(found.lease, failure, ctx), copy: !found.queue.stopped_dead_full() }
}

/// A failed attempt: again after a delay, or a dead letter when it was the last one.
pub(super) fn failed(found: &Live<'_>, delay: RetryDelay, failure: Failure, ctx: &mut Context<'_>) -> End {
    let (policy, lease) = (&found.queue.config.retry, found.lease);
    let cause = cause(lease, failure, ctx);
    if lease.attempt >= policy.attempts_max {
        return End::Died { cause };
    }
    let wait = match delay {
        RetryDelay::Policy => policy.delay(lease.attempt, (ctx.random)()),
        RetryDelay::After(asked) => policy.at_least_min(asked),
    };
    End::Retried { due: ctx.now.plus(wait), cause }
}

pub(super) fn cause(lease: &Lease, failure: Failure, ctx: &Context<'_>) -> Cause {
    let worker = lease.holder.worker.clone();
    Cause { failure: failure.bounded(), attempt: lease.attempt, at: ctx.now, worker }
}

/// The message's state after such an end, and when it comes again.
pub(super) fn after(end: &End) -> (MessageState, Option<onward_core::Timestamp>) {
    match end {
        End::Acked { .. } | End::Lost { copy: false, .. } => (MessageState::Done, None),
        End::Retried { due, .. } | End::Crashed { due, .. } => (MessageState::Delayed, Some(*due)),
        End::Released { due: Some(due) } => (MessageState::Delayed, Some(*due)),
        End::Released { due: None } | End::Suspected => (MessageState::Waiting, None),
        End::Died { .. } | End::Lost { copy: true, .. } => (MessageState::Dead, None),
        End::Cancelled => (MessageState::Cancelled, None),
    }
}

/// Later enqueues of this commit may take the room and the unique key that a finished message gives up.
fn unload(draft: &mut Draft, found: &Live<'_>, state: MessageState) {
    if matches!(state, MessageState::Waiting | MessageState::Delayed) {
        return;
    }
    let (queue, entry) = (found.queue, found.queue.slab.get(found.lease.slot));
    if entry.status == Status::Leased {
        draft.add_load(queue.id, -1, -i64::from(entry.size));
    }
    if let Some(key) = queue.side(found.lease.slot).and_then(|side| side.unique_key.clone())
        && queue.slot_of_unique(&key) == Some(found.lease.slot)
    {
        draft.unique.entry((queue.id, key)).or_insert(None);
    }
}

pub(super) fn progress(
    state: &State,
    draft: &mut Draft,
    token: &LeaseToken,
    detail: &Payload,
    ctx: &mut Context<'_>,
) -> Planned {
    let found = live(state, token, ctx)?.map_err(|_| lost(token))?;
    if draft.touched.contains_key(&(found.at.inlet, found.at.message.seq)) {
        return Err(twice().into());
    }
    draft.grow(Fact::Progressed { at: found.at, detail: detail.clone() });
    Ok(Answer::Ready(Receipt::Done))
}

pub(super) fn guard(state: &State, draft: &mut Draft, token: &LeaseToken, ctx: &mut Context<'_>) -> Planned {
    let _ = draft;
    live(state, token, ctx)?.map_err(|_| lost(token))?;
    Ok(Answer::Ready(Receipt::Done))
}
