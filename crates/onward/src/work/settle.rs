//! Settling: the same token and outcome again until an answer comes or the lease ends.

use crate::Onward;
use onward_core::{Env, Error, ErrorKind, LeaseToken, Op, Receipt, Result, RetryHint, SettledAs};
use std::{future::Future, time::Duration};

/// How long one write is waited for before it is repeated.
pub(crate) const CALL_WAIT_MAX: Duration = Duration::from_secs(10);
const REPEAT_MIN: Duration = Duration::from_millis(20);
const REPEAT_MAX: Duration = Duration::from_secs(1);

/// How a settlement went.
#[derive(Debug)]
pub(crate) enum Settled {
    /// Durably so.
    As(SettledAs),
    /// The lease was gone: nothing was settled, and another will work on the message.
    Stale,
    /// The engine will not take these operations, ever.
    Refused(Error),
    /// No answer before the lease ended: it may have been settled, or the message comes again.
    Unanswered(Error),
}

/// Commits operations, the last of which settles, until `fence` on the monotonic clock.
pub(crate) async fn settle(onward: &Onward, ops: Vec<Op>, fence: Duration) -> Settled {
    match write(onward, ops, fence).await {
        Ok(mut receipts) => match receipts.pop() {
            Some(Receipt::Settled(settled)) => Settled::As(settled),
            _ => Settled::Refused(Error::internal("a settlement was answered with another receipt")),
        },
        Err(error) if error.kind() == ErrorKind::LeaseLost => Settled::Stale,
        Err(error) if worth_repeating(&error) => Settled::Unanswered(error),
        Err(error) => Settled::Refused(error),
    }
}

/// One commit, repeated while that makes sense and the lease lives.
pub(crate) async fn write(onward: &Onward, ops: Vec<Op>, fence: Duration) -> Result<Vec<Receipt>> {
    let (engine, env) = (onward.engine(), onward.env());
    let prepared = engine.prepare(ops)?;
    let mut wait = REPEAT_MIN;
    loop {
        let answer = tokio::select! {
            answer = engine.commit(prepared.clone()) => answer,
            () = env.sleep(CALL_WAIT_MAX) => Err(Error::unknown("no answer to a write in time")),
        };
        match answer {
            Err(error) if worth_repeating(&error) && env.monotonic() + wait < fence => {
                env.sleep(wait).await;
                wait = (wait * 2).min(REPEAT_MAX);
            }
            answer => return answer,
        }
    }
}

fn worth_repeating(error: &Error) -> bool {
    !matches!(error.retry_hint(), RetryHint::Never) && error.kind() != ErrorKind::LeaseLost
}

/// A read with the deadline that every call to an engine has.
///
/// # Errors
/// What the engine answers; `Unknown` when it did not answer within [`CALL_WAIT_MAX`].
pub(crate) async fn answered<T>(
    onward: &Onward,
    what: &str,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    let late = || Err(Error::unknown(format!("{what}: no answer within {CALL_WAIT_MAX:?}")));
    within(&**onward.env(), CALL_WAIT_MAX, call).await.unwrap_or_else(late)
}

/// A settlement as an operation.
pub(crate) fn settle_op(token: &LeaseToken, outcome: onward_core::Outcome) -> Op {
    Op::Settle { token: token.clone(), outcome }
}

/// Waits for a call no longer than `span`.
pub(crate) async fn within<T>(env: &dyn Env, span: Duration, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        answer = call => Some(answer),
        () = env.sleep(span) => None,
    }
}
