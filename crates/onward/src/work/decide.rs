//! What an attempt's end means: pure, from what happened to how it is settled.

use super::{Class, Handling, Verdict, breaker::Used, heart::Stop};
use onward_core::{CauseKind, Error, ErrorKind, Failure, Outcome, Payload, RetryDelay};
use std::time::Duration;

/// The shortest wait of a message that its handler put back: no instant redelivery.
pub const RELEASE_MIN: Duration = Duration::from_millis(100);
/// How long a duplicate waits while another of its key runs.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(1);

/// What became of the work of an attempt; nothing (`None`) where it was dropped.
#[derive(Debug)]
pub(crate) enum Work {
    Ended(Verdict),
    Panicked(Failure),
    /// The handler's arguments could not be made.
    Unfit(Failure),
    /// Its key was processed before.
    Processed(Option<Payload>),
    /// Its key is being processed by another.
    Busy,
    /// A dependency is down: to wait so long.
    Held(Duration),
    /// Old and of low priority, where that is shed.
    Shed,
    /// The inbox could not be asked.
    NoInbox(Error),
}

/// How an attempt is counted in the worker's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Done,
    Skipped,
    Failed,
    Released,
    Interrupted,
    Cancelled,
    Lost,
    Shed,
}

impl Count {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 8] = [
        Self::Done,
        Self::Skipped,
        Self::Failed,
        Self::Released,
        Self::Interrupted,
        Self::Cancelled,
        Self::Lost,
        Self::Shed,
    ];

    /// Its name in metrics.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Shed => "shed",
        }
    }
}

/// How an attempt is to be settled.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// By this outcome.
    Settle(Outcome, Count),
    /// The message is to be cancelled.
    Cancel(Count),
    /// Not at all: the lease is gone.
    Nothing,
}

/// Decides; `random` spreads the waits of a handler's own retry policy.
pub(crate) fn decide(
    work: Option<Work>,
    stop: Option<Stop>,
    handling: &Handling,
    attempt: u32,
    random: u64,
) -> Decision {
    use Decision::Settle;
    if stop == Some(Stop::LeaseLost) {
        return Decision::Nothing;
    }
    let error = match work {
        Some(Work::Ended(Verdict::Done(result))) => return Settle(Outcome::Ack { result }, Count::Done),
        Some(Work::Processed(result)) => return Settle(Outcome::Ack { result }, Count::Skipped),
        Some(Work::Unfit(failure)) => return Settle(Outcome::Reject { failure }, Count::Failed),
        Some(Work::Panicked(failure)) => return Settle(retry(RetryDelay::Policy, failure), Count::Failed),
        Some(Work::Busy) => return Settle(release(BUSY_WAIT), Count::Released),
        Some(Work::Held(wait)) => return Settle(release(wait.max(RELEASE_MIN)), Count::Released),
        Some(Work::Shed) => return Decision::Cancel(Count::Shed),
        Some(Work::NoInbox(error)) if error.kind() == ErrorKind::LeaseLost => return Decision::Nothing,
        Some(Work::NoInbox(_)) => return Settle(release(BUSY_WAIT), Count::Released),
        Some(Work::Ended(Verdict::Failed(error))) => Some(error),
        None => None,
    };
    match (stop, error) {
        (Some(Stop::CancelRequested), _) => Settle(release(Duration::ZERO), Count::Cancelled),
        (Some(Stop::Shutdown), _) => Settle(release(Duration::ZERO), Count::Interrupted),
        (Some(Stop::Timeout), error) => {
            Settle(retry(RetryDelay::Policy, timed_out(handling.timeout, error)), Count::Failed)
        }
        (_, Some(error)) => by_class(handling.classify_attempt(&error, attempt), &error, attempt, random),
        (_, None) => Decision::Nothing,
    }
}

fn by_class(class: Class, error: &super::Error, attempt: u32, random: u64) -> Decision {
    use Decision::Settle;
    let transient = || error.failure(CauseKind::Transient);
    match class {
        Class::Transient => Settle(retry(RetryDelay::Policy, transient()), Count::Failed),
        Class::After(span) => Settle(retry(RetryDelay::After(span), transient()), Count::Failed),
        Class::Retry(policy) if attempt >= policy.attempts_max => {
            Settle(Outcome::Reject { failure: transient() }, Count::Failed)
        }
        Class::Retry(policy) => {
            Settle(retry(RetryDelay::After(policy.delay(attempt, random)), transient()), Count::Failed)
        }
        Class::Permanent => {
            Settle(Outcome::Reject { failure: error.failure(CauseKind::Permanent) }, Count::Failed)
        }
        Class::Release(span) => Settle(release(span.max(RELEASE_MIN)), Count::Released),
        Class::Cancel => Decision::Cancel(Count::Cancelled),
    }
}

/// What an attempt says of what its handler depends on.
pub(crate) fn used(decision: &Decision) -> Used {
    match decision {
        Decision::Settle(Outcome::Ack { .. }, Count::Done) => Used::Well,
        Decision::Settle(Outcome::Retry { .. }, _) => Used::Badly,
        _ => Used::Untold,
    }
}

/// What an acknowledgement that the engine refused means: the attempt has failed.
pub(crate) fn refused(error: &Error) -> Outcome {
    let text = format!("what goes with its end was refused: {error}");
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::Unsupported => {
            Outcome::Reject { failure: Failure::new(CauseKind::Permanent, text) }
        }
        _ => retry(RetryDelay::Policy, Failure::new(CauseKind::Transient, text)),
    }
}

fn timed_out(timeout: Duration, error: Option<super::Error>) -> Failure {
    let failure = Failure::new(CauseKind::Timeout, format!("took longer than its timeout of {timeout:?}"));
    match error {
        Some(error) => failure.with_detail(error.to_string()),
        None => failure,
    }
}

fn retry(delay: RetryDelay, failure: Failure) -> Outcome {
    Outcome::Retry { delay, failure }
}

pub(crate) fn release(delay: Duration) -> Outcome {
    Outcome::Release { delay }
}

/// What a delivery that nobody here handles (`what`) is settled with: others first, then the dead letters.
pub(crate) fn unknown_type(what: &str, released_before: u32, releases_max: u32) -> Outcome {
    if released_before < releases_max {
        return release(Duration::from_secs(1 << released_before.min(6)));
    }
    let text = format!("{what}; it was left to other workers {releases_max} times");
    Outcome::Reject { failure: Failure::new(CauseKind::UnknownType, text) }
}
