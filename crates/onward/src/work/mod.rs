//! The worker: plain async functions as handlers, with every rule of reliable background work on by default.
//!
//! ```
//! use onward::{Message, work::{self, Worker}};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Welcome { name: String }
//!
//! async fn send_welcome(welcome: Welcome) -> work::Result {
//!     println!("Welcome, {}!", welcome.name);
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> onward::Result<()> {
//! let onward = onward::connect("memory:").await?;
//! let message = Message::builder("email.welcome").json(&Welcome { name: "Ada".into() });
//! onward.enqueue("emails", message).await?;
//!
//! let report = Worker::new(&onward).handle("emails", send_welcome).run_until_empty().await?;
//! assert_eq!(report.done, 1);
//! # Ok(())
//! # }
//! ```
//!
//! [`Worker::run`] goes on until SIGTERM or Ctrl-C instead. What a handler may take is told at [`Handler`], what it may
//! return at [`Answer`] and [`Error`], its rules at [`Handling`]; the whole guide is `docs/guide/worker.md`.

mod adaptive;
mod alarm;
mod alerts;
mod attempt;
mod batch;
mod blocking;
mod breaker;
mod context;
mod decide;
mod extract;
mod guards;
mod handler;
mod handling;
mod heart;
mod inbox;
mod lag;
mod layers;
mod leasing;
mod meters;
mod monitor;
mod panic;
mod report;
mod routes;
mod run;
mod settle;
mod shed;
mod signal;
mod starting;
mod states;
mod stopping;
mod supervise;
mod turn;
mod unknown;
mod until;
mod upcast;
mod verdict;
mod watching;
mod worker;
mod worker_flow;

pub use adaptive::Adaptive;
pub use alarm::{ALARM_EVERY_MIN, DeadAlarm};
pub use alerts::{ALERT_AGAIN, ALERT_AGE_DEFAULT, ALERT_IDLE, Alert};
pub use batch::{BatchAnswer, Item, batch};
pub use blocking::{BLOCKING_THREADS_MAX, BlockingCall, BlockingHandler, blocking};
pub use breaker::{BREAKER_FAILURES_DEFAULT, BREAKER_PAUSE_DEFAULT, BREAKER_PAUSE_MAX, Breaker};
pub use context::Context;
pub use decide::RELEASE_MIN;
pub use extract::{AsData, AsExtract, Extract, First, Json, State};
pub use guards::Warning;
pub use handler::{Handler, Running};
pub use handling::{AsHandling, Handling, IntoHandling, TIMEOUT_DEFAULT, handler};
pub use heart::Stop;
pub use inbox::{INBOX_RESULT_BYTES_MAX, REMEMBER_DEFAULT};
pub use lag::{Lag, Scale, workers_wanted};
pub use layers::{HandlerService, LayeredService};
pub use leasing::LEASE_BYTES_MAX;
pub use monitor::{HandlerTime, Monitor, Vitals};
pub use report::Report;
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
pub(crate) use settle::answered;

/// The guide's examples are run by the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/worker.md")]
#[doc = include_str!("../../../../docs/guide/flow.md")]
mod guide {}
