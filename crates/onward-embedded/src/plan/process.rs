//! The end of a process: releases what it held, or makes suspects of it.

use super::{
    Answer, Context, Draft, Planned,
    draft::Touch,
    settle::{self, Live},
};
use crate::{At, End, Fact, State, state::Status};
use onward_core::{CauseKind, Failure, ProcessId, Receipt};

/// Ends every lease of a process.
///
/// Which of several messages killed a process can't be known: all in flight are suspects, their attempts do not
/// count, and each is handed out again alone in a process. Only a death while alone counts, as attempt and as crash.
pub(super) fn plan(
    state: &State,
    draft: &mut Draft,
    process: &ProcessId,
    died: bool,
    ctx: &mut Context<'_>,
) -> Planned {
    let mut held: Vec<Live<'_>> = Vec::new();
    if state.processes.contains_key(process) {
        for queue in state.queues() {
            let leases = queue.leases.values().filter(|lease| lease.holder.process == *process);
            held.extend(leases.map(|lease| {
                let at = At { inlet: queue.id, message: queue.reference(lease.slot) };
                Live { queue, lease, at }
            }));
        }
    }
    held.sort_by_key(|found| (found.at.inlet, found.at.message.seq));
    let alone = held.len() == 1;
    for found in &held {
        let end = end_of(found, died, alone, ctx);
        draft.touch(found.at.inlet, found.at.message.seq, Touch::Other)?;
        draft.drain(Fact::Settled { at: found.at, said: None, end });
    }
    Ok(Answer::Ready(Receipt::ProcessEnded { leases: held.len() as u64 }))
}

/// Ends every lease, as if each process had closed.
pub(crate) fn release_all(
    state: &State,
    draft: &mut Draft,
    ctx: &mut Context<'_>,
) -> Result<(), super::Refusal> {
    let mut processes: Vec<&ProcessId> = state.processes.keys().collect();
    processes.sort_unstable_by_key(|process| process.0.clone());
    processes.into_iter().try_for_each(|process| plan(state, draft, process, false, ctx).map(drop))
}

fn end_of(found: &Live<'_>, died: bool, alone: bool, ctx: &mut Context<'_>) -> End {
    let (queue, lease) = (found.queue, found.lease);
    let process = &lease.holder.process.0;
    if queue.slab.get(lease.slot).status == Status::Gone {
        let failure = Failure::new(CauseKind::Crashed, format!("its process {process} ended"));
        let copy = !queue.stopped_dead_full();
        return End::Lost { cause: settle::cause(lease, failure, ctx), copy };
    }
    if lease.cancel_requested {
        return End::Cancelled;
    }
    match (died, alone) {
        (false, _) => End::Released { due: None },
        (true, false) => End::Suspected,
        (true, true) => crashed(found, ctx),
    }
}

fn crashed(found: &Live<'_>, ctx: &mut Context<'_>) -> End {
    let (queue, lease) = (found.queue, found.lease);
    let process = &lease.holder.process.0;
    let failure = Failure::new(CauseKind::Crashed, format!("its process {process} died alone with it"));
    let crashes = queue.side(lease.slot).map_or(0, |side| side.crashes) + 1;
    let cause = settle::cause(lease, failure, ctx);
    if crashes >= queue.config.crashes_max || lease.attempt >= queue.config.retry.attempts_max {
        return End::Died { cause };
    }
    let wait = queue.config.retry.delay(lease.attempt, (ctx.random)());
    End::Crashed { due: ctx.now.plus(wait), cause }
}
