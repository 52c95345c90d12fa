//! One delivery, from receipt to settlement.

use super::{
    Context, Handling, Monitor,
    alarm::Alarm,
    breaker::{Pass, enter_all, leave_all},
    context::Attempt,
    decide::{Count, Decision, RELEASE_MIN, Work, decide, refused, release, used},
    heart::{Hold, Stop},
    inbox::{Claim, Standing, fingerprint},
    layers::ran_twice,
    panic::{Caught, caught},
    settle::{Settled, settle, settle_op, write},
    states::States,
    supervise::supervise,
    turn::take_turn,
    watching::Alerts,
};
use crate::{Onward, gather::Ending};
use onward_core::{CauseKind, Delivery, ErrorKind, Failure, Inlet, MessageState, Op, Outcome, RetryPolicy};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// What all attempts of one worker share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) onward: Onward,
    pub(crate) states: Arc<States>,
    pub(crate) alarm: Alarm,
    pub(crate) alerts: Arc<Alerts>,
    pub(crate) monitor: Monitor,
    /// Set once the time to drain is over.
    pub(crate) interrupt: watch::Sender<bool>,
    /// How long a handler may take to stop once it was asked to.
    pub(crate) grace: Duration,
    /// Attempts in all, by inlet, as they were declared when the worker started.
    pub(crate) attempts_max: OnceLock<BTreeMap<Inlet, u32>>,
}

impl Shared {
    fn attempts_max(&self, inlet: &Inlet) -> u32 {
        let declared = self.attempts_max.get().and_then(|all| all.get(inlet)).copied();
        declared.unwrap_or_else(|| RetryPolicy::default().attempts_max)
    }
}

/// Works on one delivery that was asked for at `sent` on the monotonic clock. Never fails, never panics.
pub(crate) async fn work_on(
    shared: Arc<Shared>,
    handling: Arc<Handling>,
    mut delivery: Delivery,
    sent: Duration,
) -> Count {
    let (onward, env) = (&shared.onward, &**shared.onward.env());
    // Counted from before the request: this side's view of the lease ends before the engine's.
    let (lease, token, suspect) = (delivery.lease, delivery.token.clone(), delivery.suspect);
    let (hold, _) = watch::channel(Hold { lease, fence: sent + lease, deadline: None, stop: None });
    let hold = Arc::new(hold);
    let beat = onward.heart.hold(token, hold.clone(), env.monotonic());
    // Of the message as it was sent, so that workers of different versions agree.
    let sent_as = handling.idempotency.as_ref().map(|_| fingerprint(&delivery.message));
    let brought_up = handling.versions.bring_up(&mut delivery.message);
    let attempt = Arc::new(Attempt {
        attempts_max: shared.attempts_max(&delivery.token.inlet),
        called: AtomicBool::new(false),
        repeated: Notify::new(),
        onward: onward.clone(),
        delivery,
        states: shared.states.clone(),
        hold: hold.clone(),
        idempotent: handling.idempotency.is_some(),
        staged: Mutex::default(),
    });
    let (mut claim, mut passes) = (None, Vec::new());
    let work = async {
        match brought_up {
            Ok(()) => run(&attempt, &handling, (&mut claim, &mut passes), sent_as.as_deref(), suspect).await,
            Err(unfit) => Work::Unfit(unfit),
        }
    };
    let work = supervise(work, &hold, shared.interrupt.subscribe(), env, shared.grace).await;
    // From here on the lease is only used to settle, while it lasts.
    drop(beat);
    let stop = hold.borrow().stop.map(|(why, _)| why);
    let decision = decide(work, stop, &handling, attempt.delivery.attempt, env.random());
    let decision = match leave_all(passes, used(&decision), env.monotonic()) {
        // What fails while a dependency is down burns no attempt.
        Some(wait) => Decision::Settle(release(wait.max(RELEASE_MIN)), Count::Released),
        None => decision,
    };
    end(&shared, &attempt, claim, decision, stop).await
}

/// Takes its turn, claims its key, runs its handler.
async fn run(
    attempt: &Arc<Attempt>,
    handling: &Handling,
    (claim, passes): (&mut Option<Claim>, &mut Vec<Pass>),
    sent_as: Option<&str>,
    suspect: bool,
) -> Work {
    let onward = &attempt.onward;
    let _turn = take_turn(&onward.process().gate, suspect).await;
    if handling.shed.is_some_and(|shed| shed.takes(&attempt.delivery, onward.env().now())) {
        return Work::Shed;
    }
    match enter_all(&handling.breakers, &**onward.env()) {
        Ok(entered) => *passes = entered,
        Err(wait) => return Work::Held(wait),
    }
    if let Some(idempotency) = &handling.idempotency {
        let fence = attempt.hold.borrow().fence;
        match idempotency.claim(onward, &attempt.delivery, sent_as, fence).await {
            Ok(Ok(Standing::Mine(mine))) => *claim = Some(mine),
            Ok(Ok(Standing::Processed(result))) => return Work::Processed(result),
            Ok(Ok(Standing::Busy)) => return Work::Busy,
            Ok(Ok(Standing::OfAnother)) => return Work::Unfit(of_another()),
            Ok(Err(failure)) => return Work::Unfit(failure),
            Err(error) => return Work::NoInbox(error),
        }
    }
    let deadline = onward.env().monotonic() + handling.timeout;
    attempt.hold.send_modify(|hold| hold.deadline = Some(deadline));
    let context = Context { attempt: attempt.clone() };
    match caught(|| handling.call(context)) {
        Ok(Ok(running)) => tokio::select! {
            biased;
            ended = Caught(running) => match ended {
                Ok(verdict) => Work::Ended(verdict),
                Err(panicked) => Work::Panicked(panicked),
            },
            () = attempt.repeated.notified() => Work::Ended(ran_twice()),
        },
        Ok(Err(unfit)) => Work::Unfit(unfit),
        Err(panicked) => Work::Panicked(panicked),
    }
}

fn of_another() -> Failure {
    let text = "its idempotency key is that of another message with other data: give it a key of its own, \
                or say `.key_alone()`";
    Failure::new(CauseKind::Permanent, text)
}

async fn end(
    shared: &Shared,
    attempt: &Attempt,
    claim: Option<Claim>,
    decision: Decision,
    stop: Option<Stop>,
) -> Count {
    let (outcome, count, staged) = match decision {
        Decision::Settle(outcome, count) => {
            let staged = attempt.take_staged();
            (outcome.clone(), count, if acks(&outcome) { staged } else { Vec::new() })
        }
        Decision::Cancel(count) => match cancel(attempt).await {
            Ok(()) => (release(Duration::ZERO), count, Vec::new()),
            Err(error) => (refused(&error), Count::Failed, Vec::new()),
        },
        Decision::Nothing => {
            tracing::warn!(?stop, "the lease ended before the handler did; another attempt follows");
            return Count::Lost;
        }
    };
    log(&outcome);
    match commit_counted(shared, attempt, claim.as_ref(), outcome.clone(), staged).await {
        Settled::Refused(error) if acks(&outcome) => {
            tracing::warn!(%error, "the acknowledgement was refused; the attempt has failed");
            match commit(shared, attempt, claim.as_ref(), refused(&error), Vec::new()).await {
                Settled::As(_) => Count::Failed,
                other => lost(&other),
            }
        }
        Settled::As(_) => count,
        other => lost(&other),
    }
}

/// Settles, and counts the end in the gather that the message is a part of: again while other parts end beside it.
async fn commit_counted(
    shared: &Shared,
    attempt: &Attempt,
    claim: Option<&Claim>,
    outcome: Outcome,
    staged: Vec<Op>,
) -> Settled {
    let Some(ending) = Ending::of(&attempt.delivery.message, &outcome) else {
        return commit(shared, attempt, claim, outcome, staged).await;
    };
    let env = shared.onward.env();
    let mut before = None;
    loop {
        let (revision, joined) = match ending.join(&shared.onward).await {
            Ok(joined) => joined,
            Err(error) => return Settled::Unanswered(error),
        };
        let ops = staged.iter().cloned().chain(joined).collect();
        let settled = commit(shared, attempt, claim, outcome.clone(), ops).await;
        // The conflict is another's end only if the record is new since the last try.
        let raced = matches!(&settled, Settled::Refused(e) if e.kind() == ErrorKind::Conflict);
        if !raced || before == Some(revision) || env.monotonic() >= attempt.hold.borrow().fence {
            return settled;
        }
        before = Some(revision);
        env.sleep(Duration::from_micros(500 + env.random() % 4_500)).await;
    }
}

/// Settles, with the claim's record and with what the handler staged.
async fn commit(
    shared: &Shared,
    attempt: &Attempt,
    claim: Option<&Claim>,
    outcome: Outcome,
    staged: Vec<Op>,
) -> Settled {
    let (onward, token) = (&shared.onward, &attempt.delivery.token);
    let kind = cause_of(&outcome);
    let commits = match claim {
        Some(claim) => match claim.end(onward, token, outcome, staged) {
            Ok(commits) => commits,
            Err(error) => return Settled::Refused(error),
        },
        None => vec![staged.into_iter().chain([settle_op(token, outcome)]).collect()],
    };
    let fence = attempt.hold.borrow().fence;
    let settled = in_order(onward, commits, fence).await;
    if let (Settled::As(settled), Some(kind)) = (&settled, kind)
        && settled.state == MessageState::Dead
    {
        shared.alarm.dead(&token.inlet, &token.id, kind);
    }
    settled
}

/// Asks to cancel the message under one's own lease: it is gone when the lease ends.
async fn cancel(attempt: &Attempt) -> onward_core::Result<()> {
    let (inlet, id) = (attempt.delivery.token.inlet.clone(), attempt.delivery.message.id.clone());
    let fence = attempt.hold.borrow().fence;
    write(&attempt.onward, vec![Op::Cancel { inlet, id }], fence).await.map(drop)
}

async fn in_order(onward: &Onward, commits: Vec<Vec<Op>>, fence: Duration) -> Settled {
    let last = commits.len().saturating_sub(1);
    for (index, ops) in commits.into_iter().enumerate() {
        if index == last {
            return settle(onward, ops, fence).await;
        }
        match write(onward, ops, fence).await {
            Ok(_) => {}
            Err(error) if error.kind() == onward_core::ErrorKind::LeaseLost => return Settled::Stale,
            Err(error) => return Settled::Refused(error),
        }
    }
    Settled::Refused(onward_core::Error::internal("nothing to settle with"))
}

fn acks(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Ack { .. })
}

fn cause_of(outcome: &Outcome) -> Option<CauseKind> {
    match outcome {
        Outcome::Retry { failure, .. } | Outcome::Reject { failure } => Some(failure.kind),
        Outcome::Ack { .. } | Outcome::Release { .. } => None,
    }
}

fn lost(settled: &Settled) -> Count {
    match settled {
        Settled::Stale => tracing::warn!("the lease was stale: nothing was settled"),
        Settled::Unanswered(error) => tracing::warn!(%error, "no answer; the message may come again"),
        Settled::Refused(error) => tracing::warn!(%error, "the settlement was refused"),
        Settled::As(_) => {}
    }
    Count::Lost
}

/// Errors are told, data is not: what a decoder says quotes the data, so only its kind is logged.
fn log(outcome: &Outcome) {
    match outcome {
        Outcome::Ack { .. } => tracing::debug!("done"),
        Outcome::Release { delay } => tracing::debug!(?delay, "put back"),
        Outcome::Retry { failure, .. } => {
            tracing::info!(cause = ?failure.kind, error = %failure.error, "failed")
        }
        Outcome::Reject { failure } if failure.kind == CauseKind::Undecodable => {
            tracing::warn!(cause = ?failure.kind, "set aside");
        }
        Outcome::Reject { failure } => {
            tracing::warn!(cause = ?failure.kind, error = %failure.error, "set aside");
        }
    }
}
