//! The clock: a task that sleeps until something is due, and does it.

use super::{Bodies, Core, Embedded, Inner, Matches};
use crate::{AppendError, Fact, InletId, State, Store, plan, plan::Draft};
use onward_core::Timestamp;
use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

/// When the store is busy, the clock tries again so much later.
const BUSY_WAIT: Duration = Duration::from_millis(5);
/// When the store has failed or is full, the clock tries again so much later.
const REFUSED_WAIT: Duration = Duration::from_secs(1);

impl<S: Store> Embedded<S> {
    /// Does everything that is due now; answers when to call again. For [`super::Options::manual_clock`].
    pub fn tick(&self) -> Option<Duration> {
        self.core.tick()
    }
}

impl<S: Store> Core<S> {
    /// Starts the clock task with the first call, since only then a runtime is there.
    pub(super) fn start_clock(self: &Arc<Self>) {
        if self.options.manual_clock || self.ticking.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.ticking.swap(true, Ordering::AcqRel) {
            runtime.spawn(run(Arc::downgrade(self)));
        }
    }

    /// Does what is due; answers how long nothing is.
    fn tick(&self) -> Option<Duration> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        loop {
            match self.step(inner, None) {
                Ok(true) => {}
                Ok(false) => break,
                Err(AppendError::Busy) => return Some(BUSY_WAIT),
                Err(_) => return Some(REFUSED_WAIT),
            }
        }
        inner.armed = plan::next_tick(&inner.state).into_iter().chain(self.schedules_want(inner)).min();
        inner.armed.map(|at| at.since(self.clock.now()))
    }

    /// Before a read: what is due is done, so that it shows what holds now. A store that refuses shows what held before.
    pub(super) fn catch_up(&self, inner: &mut Inner) {
        let now = self.clock.now();
        if plan::next_tick(&inner.state).is_some_and(|at| at <= now) || self.schedules_are_due(inner) {
            // The clock task goes on with it, and a failure shows in health.
            let _ = self.step(inner, None);
        }
    }

    /// One step of the clock, in one inlet or all; answers whether more is left.
    pub(super) fn step(&self, inner: &mut Inner, only: Option<InletId>) -> Result<bool, AppendError> {
        let (mut random, bodies, matches) = (|| self.env.random(), Bodies::new(), Matches::new());
        let mut ctx = self.context(&mut random, None, &bodies, &matches);
        let now = ctx.now;
        if only.is_none() {
            inner.state.advance(now);
            self.fire_woken(inner);
        }
        let mut draft = Draft::new();
        let more = plan::tick(&inner.state, &mut draft, only, &mut ctx);
        self.append(inner, &draft, now)?;
        match only {
            None => Ok(self.fire_schedules(inner, &mut ctx)? || more),
            Some(_) => Ok(more),
        }
    }

    /// Wakes the clock task when something of this draft is due before it would wake by itself.
    pub(super) fn arm(&self, inner: &mut Inner, draft: &Draft) {
        let timed = |fact: &Fact| !matches!(fact, Fact::Enqueued { message, .. } if message.due.is_none() && message.expiry.is_none());
        if !draft.facts.iter().any(timed) {
            return;
        }
        let mut earliest: Option<Timestamp> = None;
        let mut last = None;
        let mut look = |inlet: InletId| {
            if last.replace(inlet) != Some(inlet) {
                let due = inner.state.queue(inlet).and_then(plan::next_of);
                earliest = earliest.into_iter().chain(due).min();
            }
        };
        let mut other: Option<Timestamp> = None;
        for fact in &draft.facts {
            match fact {
                Fact::Enqueued { inlet, .. }
                | Fact::Redriven { inlet, .. }
                | Fact::Removed { inlet, .. }
                | Fact::Declared { inlet, .. } => look(*inlet),
                Fact::Settled { at, .. } | Fact::Rescheduled { at, .. } => look(at.inlet),
                Fact::Leased { given, .. } => given.iter().for_each(|given| look(given.at.inlet)),
                Fact::Extended { leases, .. } => leases.iter().for_each(|at| look(at.inlet)),
                Fact::RecordPut { expires, .. } => other = other.into_iter().chain(*expires).min(),
                Fact::ScheduleSet { .. } => other = other.into_iter().chain(self.schedules_want(inner)).min(),
                Fact::Subscribed { inlet, .. }
                | Fact::Drawn { inlet, .. }
                | Fact::Passed { inlet, .. }
                | Fact::Sought { inlet, .. } => look(*inlet),
                _ => {}
            }
        }
        let trims = draft.facts.iter().filter_map(|fact| next_trim(&inner.state, fact));
        let earliest = earliest.into_iter().chain(other).chain(trims).min();
        if let Some(at) = earliest.filter(|at| inner.armed.is_none_or(|armed| *at < armed)) {
            inner.armed = Some(at);
            self.rearm.notify_one();
        }
    }
}

/// When a topic lets something go, after a fact that may have brought that nearer.
fn next_trim(state: &State, fact: &Fact) -> Option<Timestamp> {
    let of = |queue: &InletId| state.topic_of(state.queue(*queue)?);
    let topic = match fact {
        Fact::Published { topic, .. } | Fact::TopicDeclared { topic, .. } => state.topic(*topic),
        Fact::Drawn { inlet, .. } | Fact::Passed { inlet, .. } | Fact::Sought { inlet, .. } => of(inlet),
        Fact::Dropped { .. } => {
            return state.topics().filter_map(|topic| topic.next_trim(state.time())).min();
        }
        _ => None,
    };
    topic?.next_trim(state.time())
}

/// Lets the next call start the clock again when its runtime ended before the engine did.
struct Started<S: Store>(Weak<Core<S>>);

impl<S: Store> Drop for Started<S> {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.ticking.store(false, Ordering::Release);
        }
    }
}

/// Runs until the engine is dropped or closed. It holds the engine only while it works.
async fn run<S: Store>(core: Weak<Core<S>>) {
    let _started = Started(core.clone());
    loop {
        let Some(strong) = core.upgrade() else { return };
        if strong.closed.load(Ordering::Acquire) {
            return;
        }
        let wait = strong.tick();
        let env = strong.env.clone();
        let rearm = strong.rearm.clone();
        drop(strong);
        match wait {
            Some(wait) => {
                let sleep = env.sleep(wait.max(Duration::from_millis(1)));
                futures::future::select(std::pin::pin!(rearm.notified()), sleep).await;
            }
            None => rearm.notified().await,
        }
    }
}
