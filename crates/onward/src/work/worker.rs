//! The worker: what it handles, its bounds, and how it is run.

use super::{
    ALERT_AGE_DEFAULT, Adaptive, DeadAlarm, IntoHandling, Monitor, Report, Warning,
    adaptive::Limit,
    alarm::{Alarm, OnDead},
    attempt::Shared,
    guards,
    routes::Routes,
    run::Runner,
    settle::answered,
    states::States,
    stop_signal,
    watching::{Alerts, OnAlert},
};
use crate::Onward;
use onward_core::{Capability, Error, LEASE_COUNT_MAX, Result};
use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::watch;

/// Handlers that run at once where nothing else is said.
pub const CONCURRENCY_DEFAULT: u32 = 8;
/// How long running handlers may go on after a stop where nothing else is said.
pub const DRAIN_DEFAULT: Duration = Duration::from_secs(25);
/// How long a handler may take to stop once it was asked to, where nothing else is said.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// How often a worker asks for work when no hint tells of any.
pub const POLL_DEFAULT: Duration = Duration::from_secs(1);
/// How often a worker leaves a message of an unknown type to others before it is set aside.
pub const UNKNOWN_RELEASES_DEFAULT: u32 = 5;

/// Runs handlers for the messages of queues and subscriptions.
///
/// Guarantees:
/// - A message is acknowledged only after its handler returned; it is retried, with a delay, or set aside as a dead
///   letter with every cause otherwise. A panic, a timeout or data that can't be read never stops the worker.
/// - Leases are extended as long as handlers run. A handler is stopped before its lease can be given to another, also
///   when the engine can't be reached.
/// - Nothing is leased that can't start at once.
/// - Stopping loses nothing and counts no attempt: what was not started is given back, what runs may end, what does
///   not end in time is put back as interrupted.
#[derive(Debug)]
pub struct Worker {
    pub(crate) onward: Onward,
    pub(crate) options: Options,
    states: States,
    problem: Option<Error>,
    pub(crate) hears: Hears,
    pub(crate) monitor: Monitor,
}

/// Callbacks; they have no shape to show.
#[derive(Default)]
pub(crate) struct Hears {
    on_dead: Option<OnDead>,
    pub(crate) on_alert: Option<OnAlert>,
}

impl std::fmt::Debug for Hears {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "on_dead: {}, on_alert: {}", self.on_dead.is_some(), self.on_alert.is_some())
    }
}

/// What was set on a worker.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) name: Arc<str>,
    pub(crate) routes: Routes,
    pub(crate) concurrency: u32,
    pub(crate) drain: Duration,
    pub(crate) grace: Duration,
    pub(crate) poll: Duration,
    pub(crate) lease: Option<Duration>,
    pub(crate) unknown_releases_max: u32,
    pub(crate) leave_other_types: bool,
    pub(crate) adaptive: Option<Adaptive>,
    pub(crate) alert_age: Duration,
}

impl Worker {
    /// A worker without handlers yet. No I/O.
    pub fn new(onward: &Onward) -> Self {
        let options = Options {
            name: "worker".into(),
            routes: Routes::default(),
            concurrency: CONCURRENCY_DEFAULT,
            drain: DRAIN_DEFAULT,
            grace: GRACE_DEFAULT,
            poll: POLL_DEFAULT,
            lease: None,
            unknown_releases_max: UNKNOWN_RELEASES_DEFAULT,
            leave_other_types: false,
            adaptive: None,
            alert_age: ALERT_AGE_DEFAULT,
        };
        let (states, hears, monitor) =
            (States::default(), Hears::default(), Monitor::new(onward.env().clone()));
        Self { onward: onward.clone(), options, states, problem: None, hears, monitor }
    }

    /// Handles messages of a queue, or of a subscription (`topic:subscription`).
    ///
    /// The handler is a plain async function ([`Handler`](super::Handler)), or one with rules
    /// ([`handler`](super::handler())). A name that is not right is reported when the worker is run.
    pub fn handle<Args>(mut self, inlet: &str, handler: impl IntoHandling<Args>) -> Self {
        let added = self.options.routes.add(inlet, handler.into_handling());
        self.note(added);
        self
    }

    /// How many handlers run at once, over all inlets.
    pub fn concurrency(mut self, most: u32) -> Self {
        let right = (1..=LEASE_COUNT_MAX as u32).contains(&most);
        self.note(right.then_some(()).ok_or_else(|| {
            Error::invalid(format!("{most} handlers at once")).mend(format!("use 1 to {LEASE_COUNT_MAX}"))
        }));
        self.options.concurrency = most;
        self
    }

    /// How many handlers of one inlet run at once in this worker.
    pub fn concurrency_of(mut self, inlet: &str, most: u32) -> Self {
        let set = self.options.routes.inlet(inlet).map(|route| route.concurrency = Some(most.max(1)));
        self.note(set);
        self
    }

    /// An inlet's share when several have work; 1 where nothing is said.
    pub fn weight(mut self, inlet: &str, weight: u32) -> Self {
        let set = self.options.routes.inlet(inlet).map(|route| route.weight = weight.max(1));
        self.note(set);
        self
    }

    /// Shares a value with all handlers; they take it as [`State`](super::State). One value of a type.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.put(value);
        self
    }

    /// The worker's name, for people: in dead letters, pages and logs. It need not be unique.
    pub fn name(mut self, name: &str) -> Self {
        self.options.name = name.into();
        self
    }

    /// How long running handlers may go on after a stop, before they are interrupted.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.options.drain = drain;
        self
    }

    /// How long a handler may take to stop once it was asked to, before it is dropped.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// How often to ask for work when no hint tells of any.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.options.poll = poll.max(Duration::from_millis(1));
        self
    }

    /// Leases of this length instead of the inlet's. They are extended as long as the handler runs.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// How often a message whose type no handler takes is left to other workers, before it is set aside.
    pub fn unknown_releases_max(mut self, most: u32) -> Self {
        self.options.unknown_releases_max = most;
        self
    }

    /// Leaves messages of other types in the queue for other workers instead of taking and setting them aside.
    ///
    /// Requires `leasing by type` of the engine; the worker refuses to start otherwise, or with a handler for all
    /// types.
    pub fn leave_other_types(mut self) -> Self {
        self.options.leave_other_types = true;
        self
    }

    /// Is told when there are new dead letters, besides the log.
    pub fn on_dead(mut self, tell: impl Fn(&DeadAlarm) + Send + Sync + 'static) -> Self {
        self.hears.on_dead = Some(Arc::new(tell));
        self
    }

    /// Checks everything that is checked at start, and says what works but one will be sorry for.
    ///
    /// # Errors
    /// What the worker refuses to start with, and the mend.
    pub async fn check(&self) -> Result<Vec<Warning>> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let engine = self.onward.engine();
        let capabilities = engine.capabilities();
        if self.options.leave_other_types {
            capabilities.require(Capability::AcceptsTypes, "`leave_other_types`")?;
            if self.options.routes.inlets.values().any(|route| route.kinds().is_none()) {
                return Err(Error::invalid("`leave_other_types` with a handler that takes every type")
                    .mend("name its types with `handler(f).kind(..)`"));
            }
        }
        let topology = answered(&self.onward, "asking what exists", engine.topology()).await?;
        guards::check(&self.options.routes, &self.states, &topology, &capabilities)
    }

    /// Runs until SIGTERM or SIGINT (Ctrl-C), then stops gracefully.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run(self) -> Result<Report> {
        let signal = stop_signal()?;
        self.run_until(signal).await
    }

    /// Runs until `stop` completes, then stops gracefully.
    ///
    /// Cancel safety: dropping the future drops the running handlers; their messages come again when their leases end.
    ///
    /// # Errors
    /// What [`Worker::check`] refuses; afterwards only what no repeat can mend: the engine is closed or poisoned, or
    /// refuses this worker. What runs then still gets its time to end.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) -> Result<Report> {
        for warning in self.check().await? {
            tracing::warn!(inlet = %warning.inlet, "{}", warning.what);
        }
        let (most, adaptive) = (self.options.concurrency, self.options.adaptive);
        self.monitor.begin(most, adaptive.map(|rules| Limit::new(rules, most)));
        let heard = self.hears.on_dead.is_some() || self.hears.on_alert.is_some();
        let alerts = Arc::new(Alerts::new(self.hears.on_alert, heard));
        let shared = Arc::new(Shared {
            onward: self.onward,
            states: Arc::new(self.states),
            alarm: Alarm::new(self.hears.on_dead, alerts.clone()),
            alerts,
            monitor: self.monitor,
            attempts_max: OnceLock::new(),
            interrupt: watch::Sender::new(false),
            grace: self.options.grace,
        });
        Runner::new(shared, self.options).run(stop).await
    }

    fn note(&mut self, result: Result<()>) {
        if let (Err(problem), None) = (result, &self.problem) {
            self.problem = Some(problem);
        }
    }
}
