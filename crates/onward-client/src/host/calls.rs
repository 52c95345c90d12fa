//! One call of a client, done by the engine.

use crate::{
    frame::FRAME_BYTES_MAX,
    wire::{Answer, Call},
};
use onward_core::{COMMIT_BYTES_MAX, Delivery, Engine, LeaseRequest, Op, Outcome, Prepared, Receipt, Result};
use std::time::Duration;

/// Most bytes of deliveries in one answer.
const LEASED_BYTES_MAX: usize = FRAME_BYTES_MAX / 4 * 3;

pub(super) async fn perform(engine: &dyn Engine, call: Call) -> Result<Answer> {
    Ok(match call {
        Call::Declare(change) => Answer::Declared(engine.declare(change).await?),
        Call::Topology => Answer::Topology(engine.topology().await?),
        Call::Commit(ops) => Answer::Committed(engine.commit(anew(engine, ops)?).await?),
        Call::Submit(commits) => Answer::Submitted(submit(engine, commits).await?),
        Call::Lease(request) => Answer::Leased(lease(engine, request).await?),
        Call::Extend { leases, by } => Answer::Extended(engine.extend(leases, by).await?),
        Call::Find(query) => Answer::Found(engine.find(query).await?),
        Call::ReadEvents(read) => Answer::Events(engine.read_events(read).await?),
        Call::GetRecords(query) => Answer::Records(engine.get_records(query).await?),
        Call::Stats(inlets) => Answer::Stats(engine.stats(inlets).await?),
    })
}

/// What comes over the wire only says that it was prepared: the engine checks it as if nobody had.
fn anew(engine: &dyn Engine, ops: Prepared) -> Result<Prepared> {
    let actor = ops.actor().map(str::to_owned);
    let prepared = engine.prepare(ops.into_ops())?;
    Ok(match actor {
        Some(actor) => prepared.by(&actor),
        None => prepared,
    })
}

/// A commit that the engine refuses to prepare fails alone.
async fn submit(engine: &dyn Engine, commits: Vec<Prepared>) -> Result<Vec<Result<Vec<Receipt>>>> {
    let checked: Vec<Result<Prepared>> = commits.into_iter().map(|ops| anew(engine, ops)).collect();
    let good: Vec<Prepared> = checked.iter().filter_map(|c| c.as_ref().ok().cloned()).collect();
    let mut done = match good.is_empty() {
        true => Vec::new(),
        false => engine.submit(good).await?,
    }
    .into_iter();
    let missing = || onward_core::Error::internal("the engine answered too few results");
    Ok(checked
        .into_iter()
        .map(|checked| checked.and_then(|_| done.next().unwrap_or_else(|| Err(missing()))))
        .collect())
}

/// Hands out no more than one answer can carry.
async fn lease(engine: &dyn Engine, mut request: LeaseRequest) -> Result<Vec<Delivery>> {
    request.bytes_max = request.bytes_max.min(COMMIT_BYTES_MAX as u64);
    let mut deliveries = engine.lease(request).await?;
    let mut bytes = 0;
    let fitting = deliveries.iter().take_while(|delivery| {
        bytes += size(delivery);
        bytes <= LEASED_BYTES_MAX
    });
    // Causes and progress may be larger than the payloads by far. One delivery always fits.
    let rest = deliveries.split_off(fitting.count().max(1).min(deliveries.len()));
    release(engine, rest).await?;
    Ok(deliveries)
}

fn size(delivery: &Delivery) -> usize {
    let cause = |c: &onward_core::Cause| {
        256 + c.failure.error.len()
            + c.failure.detail.as_ref().map_or(0, |detail| detail.len())
            + c.worker.len()
    };
    let progress = delivery.progress.as_ref().map_or(0, |progress| progress.as_bytes().len());
    2_048 + delivery.message.size() + progress + delivery.causes.iter().map(cause).sum::<usize>()
}

async fn release(engine: &dyn Engine, deliveries: Vec<Delivery>) -> Result<()> {
    if deliveries.is_empty() {
        return Ok(());
    }
    let settle =
        |d: Delivery| Op::Settle { token: d.token, outcome: Outcome::Release { delay: Duration::ZERO } };
    let commits: Result<Vec<Prepared>> =
        deliveries.into_iter().map(|delivery| engine.prepare(vec![settle(delivery)])).collect();
    engine.submit(commits?).await.map(drop)
}
