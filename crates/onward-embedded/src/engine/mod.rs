//! The engine over any store: one lock around state and append, never held across waiting.

mod bounds;
mod clock;
mod commit;
mod core;
mod events;
mod health;
mod lease;
mod lone;
mod page;
mod read;
mod schedules;
mod seam;
mod signal;
mod tick;
mod topic_read;
mod topics;
mod view;
mod waits;

pub(crate) use schedules::ScheduleClock;
pub use signal::HINTS_MAX;

use self::core::{capabilities, refused};
use crate::{
    Fact, State, Store, Stored,
    marks::Marker,
    plan::{self, Draft},
};
use clock::Clock;
use hashbrown::{HashMap, HashSet};
use onward_core::{AtomicScope, Capabilities, Env, Error, Hint, Name, Result, Timestamp};
use parking_lot::Mutex;
use signal::Signal;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    },
};
use tokio::sync::{Notify, broadcast};
use waits::Waits;

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
    scheduled: ScheduleClock,
    /// Whether next ticks were compared with the rules of time zones that this version knows.
    revised: AtomicBool,
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
    awaited: topics::Awaited,
    lone: lone::Lone,
    /// When the clock task will wake by itself.
    armed: Option<Timestamp>,
    /// Schedules whose due tick was refused, and why.
    held: BTreeMap<Name, String>,
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
            .append(now, crate::Class::Drain, &facts, &mut positions, crate::Writer::Store)
            .map_err(|error| refused(error).at("opening the store"))?;
        for (fact, position) in facts.iter().zip(&positions) {
            state.apply(fact, *position, now);
        }
        waits.start(store.progress());
        let secret = state.secret.ok_or_else(|| Error::internal("an opened store has no secret"))?;
        let floor = state.schedules.decided().unwrap_or_default();
        let scheduled = ScheduleClock::new(env.clone(), floor);
        let (signals, armed, held) = (Vec::new(), None, BTreeMap::new());
        let (awaited, lone) = (topics::Awaited::default(), lone::Lone::default());
        let inner = Inner { state, draft: Draft::new(), positions, end, signals, awaited, lone, armed, held };
        let core = Core {
            capabilities: capabilities(name, store.durability(), atomic),
            clock,
            scheduled,
            revised: AtomicBool::new(false),
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

    /// A copy of the state as it is now, and what `beside` answers at the same moment.
    pub(crate) fn frozen<T>(&self, beside: impl FnOnce() -> T) -> (State, T) {
        let mut inner = self.core.inner.lock();
        (inner.state.frozen(), beside())
    }

    /// Ends every lease, as if each process had closed; answers how many. Their tokens settle nothing any more.
    ///
    /// # Errors
    /// As the store refuses the append.
    pub(crate) fn void_leases(&self) -> Result<u64> {
        let mut inner = self.core.inner.lock();
        let (bodies, matches) = (Bodies::default(), Matches::default());
        let mut random = || self.core.env.random();
        let mut ctx = self.core.context(&mut random, None, &bodies, &matches);
        let (mut draft, now) = (Draft::new(), ctx.now);
        plan::release_all(&inner.state, &mut draft, &mut ctx).map_err(|refusal| match refusal {
            plan::Refusal::Error(error) => error,
            plan::Refusal::NeedsBody(_) | plan::Refusal::NeedsBodies(_) => {
                Error::internal("the end of a lease needs no body")
            }
        })?;
        let voided = draft.facts.len() as u64;
        self.core.append(&mut inner, &draft, now).map_err(refused)?;
        Ok(voided)
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
