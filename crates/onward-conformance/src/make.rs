//! The small things that checks are made of: operations, outcomes, holders, rules.

use onward_core::{
    Accepted, Curve, Engine, Failure, Holder, InletConfig, Jitter, Message, Name, Op, Outcome, ProcessId,
    Receipt, Result, RetryDelay, RetryPolicy,
};
use std::time::Duration;

/// Prepares and commits.
pub(crate) async fn commit(engine: &dyn Engine, ops: Vec<Op>) -> Result<Vec<Receipt>> {
    let prepared = engine.prepare(ops)?;
    engine.commit(prepared).await
}

/// What an enqueue answered.
pub(crate) fn accepted(receipt: Receipt) -> Result<Accepted> {
    match receipt {
        Receipt::Accepted(accepted) => Ok(accepted),
        other => Err(onward_core::Error::internal(format!("enqueue answered {other:?}"))),
    }
}

pub(crate) fn enqueue(queue: &Name, message: Message) -> Op {
    Op::Enqueue { queue: queue.clone(), message: Box::new(message) }
}

pub(crate) fn ack() -> Outcome {
    Outcome::Ack { result: None }
}

pub(crate) fn retry_after(delay: Duration) -> Outcome {
    Outcome::Retry { delay: RetryDelay::After(delay), failure: failure("try again") }
}

pub(crate) fn reject() -> Outcome {
    Outcome::Reject { failure: Failure::new(onward_core::CauseKind::Permanent, "will never work") }
}

pub(crate) fn release() -> Outcome {
    Outcome::Release { delay: Duration::ZERO }
}

pub(crate) fn failure(error: &str) -> Failure {
    Failure::new(onward_core::CauseKind::Transient, error)
}

pub(crate) fn holder(worker: &str, process: &str) -> Holder {
    Holder { worker: worker.into(), process: ProcessId(process.into()) }
}

pub(crate) fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Rules for checks: long leases, so that a slow machine ends none, and retries after one millisecond.
pub(crate) fn rules() -> InletConfig {
    let retry = RetryPolicy {
        attempts_max: 5,
        curve: Curve::Fixed { every_ms: 1 },
        delay_max_ms: 3_600_000,
        delay_min_ms: 1,
        jitter: Jitter::None,
    };
    InletConfig { lease_ms: 60_000, retry, ..InletConfig::default() }
}
