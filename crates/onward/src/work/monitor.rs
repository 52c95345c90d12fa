//! What a worker is doing, for whoever asks: capacity, utilisation, where its time goes, and how its inlets stand.

use super::{
    adaptive::Limit,
    decide::Count,
    lag::{Lag, Scale, workers_wanted},
    meters::Meters,
};
use onward_core::{Env, Inlet};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A view into a worker, from [`Worker::monitor`](super::Worker::monitor); cheap to clone, and it outlives the worker.
#[derive(Debug, Clone)]
pub struct Monitor {
    inner: Arc<Mutex<Inner>>,
    env: Arc<dyn Env>,
}

/// A worker at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Vitals {
    /// Handlers that may run at once now; adaptive concurrency moves it.
    pub capacity: u32,
    /// Deliveries that it works on now.
    pub running: u32,
    /// The share of its capacity that was used since it started, from 0 to 1.
    pub utilisation: f64,
    /// How long ago the engine last answered a lease call: its liveness on the way that the work takes.
    pub lease_answered_ago: Option<Duration>,
    /// How long ago it was last given work.
    pub work_given_ago: Option<Duration>,
    /// Where its time goes, by inlet and type.
    pub handlers: Vec<HandlerTime>,
    /// Its inlets, as they were last looked at.
    pub lags: Vec<Lag>,
}

/// What was done for one inlet and handler.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerTime {
    /// The inlet.
    pub inlet: Inlet,
    /// The type that the handler takes; `*` for one that takes all.
    pub kind: Arc<str>,
    /// Deliveries that ended.
    pub runs: u64,
    /// Of these, failed ones.
    pub failures: u64,
    /// Time of all of them together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
    /// Its part of all handlers' time, from 0 to 1.
    pub share: f64,
}

#[derive(Debug, Default)]
struct Inner {
    concurrency: u32,
    limit: Option<Limit>,
    running: u32,
    started: Duration,
    /// Slot-seconds of everything that ended, and those that there were up to `counted`.
    busy: Duration,
    capacity_until: Duration,
    capacity_time: f64,
    lease_answered: Option<Duration>,
    work_given: Option<Duration>,
    handlers: BTreeMap<(Inlet, Arc<str>), Times>,
    lags: Vec<Lag>,
}

#[derive(Debug)]
struct Times {
    meters: Meters,
    runs: u64,
    failures: u64,
    total: Duration,
    longest: Duration,
}

impl Times {
    fn new(meters: Meters) -> Self {
        Self { meters, runs: 0, failures: 0, total: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl Monitor {
    pub(crate) fn new(env: Arc<dyn Env>) -> Self {
        Self { inner: Arc::default(), env }
    }

    /// The worker at this moment.
    pub fn vitals(&self) -> Vitals {
        let now = self.env.monotonic();
        let mut inner = self.lock();
        inner.count_capacity(now);
        let all: Duration = inner.handlers.values().map(|times| times.total).sum();
        let of = |part: Duration, whole: f64| if whole > 0.0 { part.as_secs_f64() / whole } else { 0.0 };
        let handlers = inner.handlers.iter().map(|((inlet, kind), times)| HandlerTime {
            inlet: inlet.clone(),
            kind: kind.clone(),
            runs: times.runs,
            failures: times.failures,
            total: times.total,
            longest: times.longest,
            share: of(times.total, all.as_secs_f64()),
        });
        Vitals {
            capacity: inner.capacity(),
            running: inner.running,
            utilisation: of(inner.busy, inner.capacity_time).min(1.0),
            lease_answered_ago: inner.lease_answered.map(|at| now.saturating_sub(at)),
            work_given_ago: inner.work_given.map(|at| now.saturating_sub(at)),
            handlers: handlers.collect(),
            lags: inner.lags.clone(),
        }
    }

    /// How many workers there should be, with so many now: for autoscalers. The inlet that needs most decides.
    pub fn workers_wanted(&self, workers: u32, scale: &Scale) -> u32 {
        let wanted = self.lock().lags.iter().map(|lag| workers_wanted(lag, workers, scale)).max();
        wanted.unwrap_or(workers).clamp(scale.workers_min, scale.workers_max.max(scale.workers_min))
    }

    pub(crate) fn begin(&self, concurrency: u32, limit: Option<Limit>) {
        let now = self.env.monotonic();
        let mut inner = self.lock();
        (inner.concurrency, inner.limit) = (concurrency, limit);
        (inner.started, inner.capacity_until) = (now, now);
    }

    /// How many handlers may run at once now.
    pub(crate) fn capacity(&self) -> u32 {
        self.lock().capacity()
    }

    /// Whether it could take more.
    pub(crate) fn has_room(&self) -> bool {
        let inner = self.lock();
        inner.running < inner.capacity()
    }

    pub(crate) fn leased(&self, count: usize) {
        let now = self.env.monotonic();
        let mut inner = self.lock();
        inner.lease_answered = Some(now);
        if count > 0 {
            inner.work_given = Some(now);
        }
    }

    pub(crate) fn started(&self) {
        self.lock().running += 1;
    }

    /// A delivery ended; what was only put back says nothing about the downstream.
    pub(crate) fn ended(&self, inlet: &Inlet, kind: &Arc<str>, took: Duration, count: Count) {
        let now = self.env.monotonic();
        let mut inner = self.lock();
        inner.count_capacity(now);
        inner.running = inner.running.saturating_sub(1);
        inner.busy += took;
        let new = || Times::new(Meters::new(inlet, kind));
        let times = inner.handlers.entry((inlet.clone(), kind.clone())).or_insert_with(new);
        times.meters.ended(took, count);
        times.runs += 1;
        times.failures += u64::from(count == Count::Failed);
        times.total += took;
        times.longest = times.longest.max(took);
        let running = inner.running;
        if let (Some(limit), Count::Done | Count::Failed) = (&mut inner.limit, count) {
            limit.ended(now, took, count == Count::Done, running);
        }
    }

    /// Keeps what a look gave; answers how many run, and how many may.
    pub(crate) fn looked(&self, lags: Vec<Lag>) -> (u32, u32) {
        let mut inner = self.lock();
        inner.lags = lags;
        (inner.running, inner.capacity())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn capacity(&self) -> u32 {
        self.limit.as_ref().map_or(self.concurrency, |limit| limit.get().min(self.concurrency))
    }

    /// Slot-seconds that there were up to now.
    fn count_capacity(&mut self, now: Duration) {
        let span = now.saturating_sub(self.capacity_until);
        self.capacity_time += span.as_secs_f64() * f64::from(self.capacity());
        self.capacity_until = now;
    }
}
