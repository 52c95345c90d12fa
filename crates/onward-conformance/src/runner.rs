//! Runs one check on a new engine and says how it ended.

use crate::{Bench, Check, Clock, Harness, Need, Status, Stop, Verdict, twin};
use futures::{FutureExt, future::Either};
use onward_core::{AtomicScope, Capabilities, Durability, Env, Support};
use std::time::Duration;

/// How much a run does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Messages of the stress checks.
    pub messages: u64,
    /// Random sequences compared with the reference model.
    pub seeds: u64,
    /// No check may take longer by the real clock; one that does has failed.
    pub check_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { messages: 10_000, seeds: 200, check_max: Duration::from_secs(60) }
    }
}

/// Runs one check on a new engine of the harness. A panic or a hang in it is a failure of that check alone.
pub async fn run(harness: &dyn Harness, check: &Check, options: &Options) -> Verdict {
    let ended = std::panic::AssertUnwindSafe(attempt(harness, check, options));
    let limit = onward_env::SystemEnv.sleep(options.check_max);
    let (status, reason) = match futures::future::select(Box::pin(ended.catch_unwind()), limit).await {
        Either::Left((Ok(ended), _)) => ended,
        Either::Left((Err(panic), _)) => (Status::Fail, Some(format!("it panicked: {}", said(&*panic)))),
        Either::Right(_) => (Status::Fail, Some(format!("it did not end within {:?}", options.check_max))),
    };
    Verdict { engine: harness.name().into(), check: check.name.into(), status, reason }
}

type Ending = (Status, Option<String>);

async fn attempt(harness: &dyn Harness, check: &Check, options: &Options) -> Ending {
    let subject = match harness.fresh().await {
        Ok(subject) => subject,
        Err(stop) => return ending(Err(stop)),
    };
    let mut bench = Bench::new(subject, options.messages, options.seeds);
    let capabilities = bench.engine().capabilities();
    for need in check.needs {
        if let Some(reason) = refusal(harness, &capabilities, *need) {
            return match twin::refuses(&bench, *need).await {
                Ok(()) => (Status::Refused, Some(reason)),
                failed => ending(failed),
            };
        }
    }
    let (status, reason) = ending((check.run)(&mut bench).await);
    (status, reason.or_else(|| bench.noted()))
}

fn ending(done: Result<(), Stop>) -> Ending {
    match done {
        Ok(()) => (Status::Pass, None),
        Err(Stop::Failed(reason)) => (Status::Fail, Some(reason)),
        Err(Stop::NotRun(reason)) => (Status::NotRun, Some(reason)),
    }
}

/// Why the engine does not have it, by its own words.
fn refusal(harness: &dyn Harness, capabilities: &Capabilities, need: Need) -> Option<String> {
    match need {
        Need::Has(capability) => match capabilities.support(capability) {
            Support::Refused(why) => Some(format!("{capability}: {why}")),
            Support::Native | Support::WithStore => None,
        },
        Need::Durable => (capabilities.durability == Durability::Memory)
            .then(|| "a receipt means `memory`: the end of the process loses everything".into()),
        Need::Server => (!harness.has_server())
            .then(|| "there is no server: the engine lives in the process that uses it".into()),
        Need::Atomic(scope) => {
            let fits = capabilities.atomic >= scope && capabilities.atomic != AtomicScope::Operation;
            (!fits).then(|| format!("one commit reaches no wider than {:?}", capabilities.atomic))
        }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word").to_owned()
}

impl Clock {
    /// The stepped clock, or a reason not to run.
    pub(crate) fn stepped(&self) -> Result<&crate::SteppedEnv, Stop> {
        match self {
            Self::Stepped(env) => Ok(env),
            Self::Real(_) => Err(Stop::NotRun("the clock of this engine can't be moved".into())),
        }
    }
}
