//! The worker: plain async functions as handlers, with every rule of reliable background work on by default.

mod alarm;
mod attempt;
mod context;
mod decide;
mod extract;
mod guards;
mod handler;
mod handling;
mod heart;
mod inbox;
mod panic;
mod report;
mod routes;
mod run;
mod settle;
mod signal;
mod states;
mod supervise;
mod unknown;
mod verdict;
mod worker;

pub use alarm::{ALARM_EVERY_MIN, DeadAlarm};
pub use context::Context;
pub use decide::RELEASE_MIN;
pub use extract::{AsData, AsExtract, Extract, First, Json, State};
pub use guards::Warning;
pub use handler::{Handler, Running};
pub use handling::{AsHandling, Handling, IntoHandling, TIMEOUT_DEFAULT, handler};
pub use heart::Stop;
pub use inbox::{INBOX_RESULT_BYTES_MAX, REMEMBER_DEFAULT};
pub use report::Report;
pub use run::LEASE_BYTES_MAX;
pub use signal::stop_signal;
pub use states::States;
pub use verdict::{
    Answer, BoxError, Cancel, Class, Error, Failed, Permanent, Release, Result, RetryAfter, Transient,
    Verdict,
};
pub use worker::{
    CONCURRENCY_DEFAULT, DRAIN_DEFAULT, GRACE_DEFAULT, POLL_DEFAULT, UNKNOWN_RELEASES_DEFAULT, Worker,
};

pub(crate) use heart::Heart;
