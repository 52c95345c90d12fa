//! The engine over any store: one lock around state and append, never held across waiting.

mod clock;
mod commit;
mod lease;
mod read;
mod seam;
mod signal;
mod tick;
mod view;
mod waits;

pub use signal::HINTS_MAX;

use crate::{
    AppendError, Fact, State, Store, Stored,
    marks::Marker,
    plan::{Context, Draft},
};
use clock::Clock;
use hashbrown::{HashMap, HashSet};
use onward_core::{
    AtomicScope, Capabilities, Capability, EngineLimits, Env, Error, Hint, OPS_MAX, PAYLOAD_BYTES_CEILING,
    Result, RetryHint, Timestamp,
};
use parking_lot::Mutex;
use signal::Signal;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, broadcast};
use waits::{Mark, Waits};

const NOT_YET: &str = "not in this release";

/// How an embedded engine behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Refuse queues that were not declared, instead of declaring them with defaults on first use.
    pub strict: bool,
    /// Most bytes of all records together; they are kept in memory.
    pub records_bytes_max: u64,
    /// Run no clock task: whoever opened the engine calls [`Embedded::tick`] (simulations).
    pub manual_clock: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { strict: false, records_bytes_max: 256 << 20, manual_clock: false }
    }
}

/// The embedded engine over a store.
///
/// Guarantees: what [`onward_core::Engine`] says; in addition one commit may reach over everything in the store.
/// Dropping it stops its clock; what was appended stays with the store.
#[derive(Debug)]
pub struct Embedded<S: Store> {
    core: Arc<Core<S>>,
}

/// What the engine's tasks share.
#[derive(Debug)]
struct Core<S: Store> {
    env: Arc<dyn Env>,
    clock: Clock,
    store: S,
    options: Options,
    capabilities: Capabilities,
    marker: Marker,
    inner: Mutex<Inner>,
    waits: Arc<Waits>,
    hints: broadcast::Sender<Hint>,
    closed: AtomicBool,
    closing: Notify,
    running: AtomicUsize,
    idle: Notify,
    ticking: AtomicBool,
    rearm: Arc<Notify>,
}

/// What stands under the one lock.
#[derive(Debug)]
struct Inner {
    state: State,
    draft: Draft,
    positions: Vec<u64>,
    /// The end of what was appended: what an answer has seen.
    end: u64,
    signals: Vec<Option<Arc<Signal>>>,
    /// When the clock task will wake by itself.
    armed: Option<Timestamp>,
}

/// Bodies that were read for planning, by position.
type Bodies = HashMap<u64, Stored>;
/// What a bulk operation matched by bodies, by its place in the commit.
type Matches = HashMap<usize, HashSet<u64>>;

impl<S: Store> Embedded<S> {
    /// Opens the engine over a store whose facts `state` already holds.
    ///
    /// Appends the opening (a new epoch; every lease gets its full term) and does not wait for it to be durable: no
    /// answer is given before it is.
    ///
    /// # Errors
    /// When the store refuses the opening.
    pub fn open(
        env: Arc<dyn Env>,
        store: S,
        mut state: State,
        options: Options,
        name: &'static str,
        atomic: AtomicScope,
    ) -> Result<Self> {
        let clock = Clock::new(env.clone(), state.time());
        let waits = Arc::new(Waits::default());
        store.observe(waits.clone());
        let now = clock.now();
        let facts = state.opening(&mut || env.random());
        let mut positions = Vec::new();
        let end = store
            .append(now, crate::Class::Drain, &facts, &mut positions)
            .map_err(|error| refused(error).at("opening the store"))?;
        for (fact, position) in facts.iter().zip(&positions) {
            state.apply(fact, *position, now);
        }
        waits.start(store.progress());
        let secret = state.secret.ok_or_else(|| Error::internal("an opened store has no secret"))?;
        let inner = Inner { state, draft: Draft::new(), positions, end, signals: Vec::new(), armed: None };
        let core = Core {
            capabilities: capabilities(name, store.durability(), atomic),
            clock,
            store,
            options,
            marker: Marker::new(secret),
            inner: Mutex::new(inner),
            waits,
            hints: broadcast::channel(HINTS_MAX).0,
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            running: AtomicUsize::new(0),
            idle: Notify::new(),
            ticking: AtomicBool::new(false),
            rearm: Arc::new(Notify::new()),
            env,
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.core.store
    }

    /// Looks at the state, under the engine's lock: be brief.
    pub fn with_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.core.inner.lock().state)
    }

    /// Appends facts that the store itself has found right against the state (bodies moved forward), and applies them.
    ///
    /// # Errors
    /// As the store refuses the append.
    pub fn maintain(&self, plan: impl FnOnce(&State) -> Vec<Fact>) -> Result<()> {
        let mut inner = self.core.inner.lock();
        let mut draft = Draft::new();
        plan(&inner.state).into_iter().for_each(|fact| draft.drain(fact));
        let now = self.core.clock.now();
        self.core.append(&mut inner, &draft, now).map_err(refused)
    }
}

impl<S: Store> Drop for Embedded<S> {
    fn drop(&mut self) {
        self.core.stop();
    }
}

fn capabilities(
    name: &'static str,
    durability: onward_core::Durability,
    atomic: AtomicScope,
) -> Capabilities {
    let limits = EngineLimits {
        payload_bytes_max: PAYLOAD_BYTES_CEILING as u64,
        delay_max: None,
        lease_total_max: None,
        dedup_window_max: None,
        ops_max: OPS_MAX,
    };
    [
        Capability::Topics,
        Capability::Filters,
        Capability::Seek,
        Capability::Streams,
        Capability::TagConditions,
        Capability::Schedules,
    ]
    .into_iter()
    .fold(Capabilities::all(name, durability, atomic, limits), |all, one| all.refuse(one, NOT_YET))
}

/// What a store's refusal means to a caller; nothing was changed.
fn refused(error: AppendError) -> Error {
    match error {
        AppendError::Busy => Error::unavailable("too much is under way to the disk")
            .retry(RetryHint::After(Duration::from_millis(10))),
        AppendError::NoSpace => Error::full("the disk is full")
            .retry(RetryHint::After(Duration::from_secs(1)))
            .mend("free space on it; what is stored can still be read, worked on and acknowledged"),
        AppendError::Poisoned(error) => {
            Error::poisoned(format!("an earlier write failed: {error}")).mend("reopen the store")
        }
        AppendError::TooLarge { bytes, max } => {
            Error::invalid(format!("{bytes} bytes in one commit, more than the store's {max}"))
                .mend("split it into several commits")
        }
    }
}

impl<S: Store> Core<S> {
    /// Begins a call: refuses it once closed, counts it until the guard is dropped.
    fn enter(self: &Arc<Self>) -> Result<Running<'_, S>> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running { core: self };
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed("the engine was closed").mend("open it again"));
        }
        self.start_clock();
        Ok(running)
    }

    /// What planning knows; the bodies and matches are those read for it.
    fn context<'a>(
        &'a self,
        random: &'a mut dyn FnMut() -> u64,
        actor: Option<&'a str>,
        bodies: &'a Bodies,
        matches: &'a Matches,
    ) -> Context<'a> {
        Context {
            now: self.clock.now(),
            skew_us: self.clock.skew_us(),
            visible: self.waits.synced(),
            strict: self.options.strict,
            durability: self.capabilities.durability,
            records_bytes_max: self.options.records_bytes_max,
            random,
            marker: self.marker,
            actor,
            bodies,
            matches,
        }
    }

    /// Appends a draft's facts and applies them; then lets those know who wait for what came of it.
    fn append(&self, inner: &mut Inner, draft: &Draft, now: Timestamp) -> Result<(), AppendError> {
        if draft.facts.is_empty() {
            return Ok(());
        }
        inner.end = self.store.append(now, draft.class(), &draft.facts, &mut inner.positions)?;
        self.waits.start(self.store.progress());
        for (fact, position) in draft.facts.iter().zip(&inner.positions) {
            inner.state.apply(fact, *position, now);
        }
        let freed = inner.state.take_freed();
        if !freed.is_empty() {
            self.store.released(&freed);
        }
        self.after(inner, draft);
        Ok(())
    }

    fn after(&self, inner: &mut Inner, draft: &Draft) {
        self.fire_woken(inner);
        for inlet in &draft.duplicates {
            if let Some(queue) = inner.state.queue_mut(*inlet) {
                queue.moment.duplicates += 1;
            }
        }
        self.arm(inner, draft);
    }

    /// Signals inlets at which something may be handed out now.
    fn fire_woken(&self, inner: &mut Inner) {
        let (signals, end) = (&mut inner.signals, inner.end);
        inner.state.take_woken(&mut |queue, count| {
            let signal = signal_of(signals, queue.id.0 as usize, &queue.name, &self.hints);
            self.waits.signal_after(end, &signal, count);
        });
    }

    /// Waits until everything that an answer has seen is durable.
    async fn durable(&self, end: u64) -> Result<()> {
        self.waits.reach(Mark::Synced, end).await
    }

    /// The same for a read, which still answers from memory when the store has failed: health shows it.
    async fn seen(&self, end: u64) {
        // A failure is told by health and by every write; a read answers what is known.
        let _ = self.waits.reach(Mark::Synced, end).await;
    }

    fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        self.rearm.notify_one();
    }
}

/// The signal of an inlet, made on first use.
fn signal_of(
    signals: &mut Vec<Option<Arc<Signal>>>,
    at: usize,
    name: &onward_core::Inlet,
    hints: &broadcast::Sender<Hint>,
) -> Arc<Signal> {
    if at >= signals.len() {
        signals.resize(at + 1, None);
    }
    signals[at].get_or_insert_with(|| Arc::new(Signal::new(name.clone(), hints.clone()))).clone()
}

/// A call that is under way.
struct Running<'a, S: Store> {
    core: &'a Core<S>,
}

impl<S: Store> Drop for Running<'_, S> {
    fn drop(&mut self) {
        if self.core.running.fetch_sub(1, Ordering::AcqRel) == 1 && self.core.closed.load(Ordering::Acquire) {
            self.core.idle.notify_waiters();
        }
    }
}
