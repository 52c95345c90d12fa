//! What is leased already: repeats of a request, extensions.

use super::{
    Context, Draft,
    lease::Picked,
    no_inlet,
    settle::{self, lost},
};
use crate::{Fact, Given, State};
use onward_core::{Error, Inlet, LeaseRequest, LeaseToken, ProcessId, RequestId, Result, Timestamp};
use std::time::Duration;

/// The live leases that an earlier request of the same id was given, `None` when there are none.
pub(crate) fn deliveries_of(
    state: &State,
    request: RequestId,
    process: &ProcessId,
    now: Timestamp,
) -> Option<Vec<Picked>> {
    let given = state.requests.get(&request)?;
    let picked = given.iter().filter_map(|at| {
        let queue = state.queue(at.inlet)?;
        let lease = queue.leases.get(&at.message.seq)?;
        let entry = queue.slab.get(lease.slot);
        let side = queue.side(lease.slot);
        (lease.holder.process == *process && lease.deadline > now).then(|| Picked {
            inlet: queue.name.clone(),
            given: Given { at: *at, attempt: lease.attempt, nonce: lease.nonce },
            slot: lease.slot,
            ready_at: 0,
            body: queue.body(lease.slot),
            term: lease.term,
            deadline: lease.deadline,
            accepted_at: entry.accepted_at,
            progress: side.and_then(|side| side.progress.clone()),
            causes: side.map_or(Vec::new(), |side| side.causes.clone()),
            suspect: lease.suspect,
            replay: side.map_or(0, |side| side.replay),
            mark: lease.mark(at.message.seq),
        })
    });
    Some(picked.collect::<Vec<_>>()).filter(|picked| !picked.is_empty())
}

/// One extended lease: how long, and whether somebody wants it cancelled.
pub(crate) type Extension = Result<(Duration, bool)>;

/// Plans the extension of leases, all in one fact.
pub(crate) fn extend(
    state: &State,
    draft: &mut Draft,
    tokens: &[LeaseToken],
    by: Duration,
    ctx: &Context<'_>,
) -> Vec<Extension> {
    let mut leases = Vec::with_capacity(tokens.len());
    let each = tokens.iter().map(|token| {
        let found = settle::live(state, token, ctx)?.map_err(|_| lost(token))?;
        let total = ctx.now.plus(by).since(found.lease.since);
        let most = found.queue.config.lease_total_max_ms.map(Duration::from_millis);
        if let Some(most) = most.filter(|most| total > *most) {
            return Err(Error::invalid(format!("would hold the lease for {total:?}, longer than {most:?}"))
                .at(format!("message `{}` of `{}`", token.id, token.inlet))
                .mend("finish sooner, split the work, or raise `lease_total_max_ms`"));
        }
        leases.push(found.at);
        Ok((by, found.lease.cancel_requested))
    });
    let results: Vec<Extension> = each.collect();
    if !leases.is_empty() {
        draft.drain(Fact::Extended { leases, term: by });
    }
    results
}

/// The inlets of a request that do not exist.
pub(crate) fn missing<'a>(state: &State, request: &'a LeaseRequest) -> Vec<&'a Inlet> {
    let inlets = request.inlets.iter().map(|weighted| &weighted.inlet);
    inlets.filter(|inlet| state.find(inlet).is_none()).collect()
}

/// The first of them, as an error.
pub(crate) fn refuse_missing(missing: &[&Inlet]) -> Error {
    missing.first().map_or_else(|| Error::internal("no inlet is missing"), |inlet| no_inlet(inlet))
}
