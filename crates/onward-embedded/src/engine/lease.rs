//! Handing out and extending.

use super::{
    Bodies, Core, Inner, Matches,
    bounds::{check, check_term},
    core::{mark_of, refused, signal_of},
    signal::Signal,
    topics::Drawn,
    waits::Mark,
};
use crate::{
    AppendError, How, Store, Writer,
    plan::{self, Draft, LeasePlan, Picked},
};
use futures::future::select_all;
use onward_core::{
    Delivery, Error, ErrorKind, Extended, LEASE_COUNT_MAX, LeaseRequest, LeaseToken, Result, RetryHint,
};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

enum Tried {
    /// Read the bodies at these positions, then try again.
    NeedsBodies(Vec<u64>),
    /// Much was looked at and nothing found yet: try again at once.
    Again,
    /// With the end that must be reached before the answer, and by which mark.
    Got(Vec<Picked>, u64, Mark),
    Nothing {
        retry_at: Option<onward_core::Timestamp>,
        held_back: bool,
        /// What a subscription has not taken over yet may be of other types, or of keys that no limit holds.
        further: bool,
    },
    Busy,
}

type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl<S: Store> Core<S> {
    pub(super) async fn lease(self: &Arc<Self>, request: LeaseRequest) -> Result<Vec<Delivery>> {
        let _running = self.enter()?;
        check(&request)?;
        self.declare_missing(&request).await?;
        let until = self.env.monotonic() + request.wait;
        let mut choosy = !request.accepts.is_empty();
        let signals = if request.wait.is_zero() { Vec::new() } else { self.signals(&request) };
        let _waiter = self.waiter(&request);
        let mut bodies = Bodies::new();
        loop {
            let mut waiting = self.waiting(&signals, choosy);
            let (retry_at, room) = match self.try_lease(&request, &bodies)? {
                Tried::NeedsBodies(positions) => {
                    self.read_for_drawing(&positions, &mut bodies)?;
                    continue;
                }
                Tried::Again => continue,
                Tried::Got(picked, end, mark) => return self.deliver(picked, end, mark).await,
                Tried::Nothing { retry_at, held_back, .. } => {
                    if held_back && !choosy {
                        // Another process may take what this one may not: pass the wake-up on, then wait with those
                        // who are woken every time.
                        signals.iter().for_each(|signal| signal.any.notify_one());
                        choosy = true;
                        continue;
                    }
                    (retry_at, false)
                }
                Tried::Busy => (None, true),
            };
            let left = until.saturating_sub(self.env.monotonic());
            if self.closed.load(std::sync::atomic::Ordering::Acquire) {
                return Err(Error::closed("the engine was closed"));
            }
            if left.is_zero() && !room {
                return Ok(Vec::new());
            }
            let retry = retry_at.map(|at| at.since(self.clock.now()).max(Duration::from_millis(1)));
            let sleep =
                if room { Duration::from_millis(5) } else { retry.map_or(left, |retry| retry.min(left)) };
            waiting.push(self.env.sleep(sleep));
            select_all(waiting).await;
        }
    }

    /// The request's inlets, those that are missing declared with defaults.
    async fn declare_missing(&self, request: &LeaseRequest) -> Result<()> {
        loop {
            let room = self.waits.room.notified();
            let tried = {
                let mut inner = self.inner.lock();
                let missing = plan::missing(&inner.state, request);
                if missing.is_empty() {
                    return Ok(());
                }
                if self.options.strict || missing.iter().any(|i| !matches!(i, onward_core::Inlet::Queue(_))) {
                    return Err(plan::refuse_missing(&missing));
                }
                let (mut random, bodies, matches) = (|| self.env.random(), Bodies::new(), Matches::new());
                let ctx = self.context(&mut random, None, &bodies, &matches);
                let mut draft = Draft::new();
                for inlet in missing {
                    plan::declare_default(&inner.state, &mut draft, inlet, &ctx)?;
                }
                let now = ctx.now;
                self.append(&mut inner, &draft, now)
            };
            match tried {
                Ok(()) => return Ok(()),
                Err(AppendError::Busy) => room.await,
                Err(error) => return Err(refused(error)),
            }
        }
    }

    fn signals(&self, request: &LeaseRequest) -> Vec<Arc<Signal>> {
        let mut inner = self.inner.lock();
        let Inner { state, signals, .. } = &mut *inner;
        let queues = request.inlets.iter().filter_map(|weighted| state.find(&weighted.inlet));
        queues.map(|queue| signal_of(signals, queue.id.0 as usize, &queue.name, &self.hints)).collect()
    }

    /// What a request that found nothing waits for. It is armed before the next look, so that nothing is missed.
    fn waiting<'a>(&'a self, signals: &'a [Arc<Signal>], choosy: bool) -> Vec<Waiting<'a>> {
        if signals.is_empty() {
            return Vec::new();
        }
        let mut waiting: Vec<Waiting<'a>> = Vec::with_capacity(signals.len() + 2);
        let mut arm = |notify: &'a tokio::sync::Notify| {
            let mut notified = Box::pin(notify.notified());
            notified.as_mut().enable();
            waiting.push(notified);
        };
        arm(&self.closing);
        signals.iter().for_each(|signal| arm(if choosy { &signal.choosy } else { &signal.any }));
        waiting
    }

    fn try_lease(&self, request: &LeaseRequest, read: &Bodies) -> Result<Tried> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let now = self.clock.now();
        let process = &request.holder.process;
        if let Some(picked) = plan::deliveries_of(&inner.state, request.request_id, process, now) {
            let mark = mark_of(&inner.state, &picked);
            return Ok(Tried::Got(picked, inner.end, mark));
        }
        match self.end_overdue(inner, request) {
            Ok(()) => {}
            Err(AppendError::Busy) => return Ok(Tried::Busy),
            Err(error) => return Err(refused(error)),
        }
        match self.draw_for(inner, request, false, read) {
            Ok(Drawn::NeedsBodies(positions)) => return Ok(Tried::NeedsBodies(positions)),
            Ok(_) => {}
            Err(AppendError::Busy) => return Ok(Tried::Busy),
            Err(error) => return Err(refused(error)),
        }
        let nothing = match self.take(inner, request)? {
            nothing @ Tried::Nothing { further: true, .. } => nothing,
            tried => return Ok(tried),
        };
        match self.draw_for(inner, request, true, read) {
            Ok(Drawn::NeedsBodies(positions)) => Ok(Tried::NeedsBodies(positions)),
            Ok(Drawn::Something) => Ok(Tried::Again),
            Ok(Drawn::Nothing) => Ok(nothing),
            Err(AppendError::Busy) => Ok(Tried::Busy),
            Err(error) => Err(refused(error)),
        }
    }

    /// Hands out what is ready.
    fn take(&self, inner: &mut Inner, request: &LeaseRequest) -> Result<Tried> {
        let (mut random, bodies, matches) = (|| self.env.random(), Bodies::new(), Matches::new());
        let mut ctx = self.context(&mut random, None, &bodies, &matches);
        let mut draft = std::mem::take(&mut inner.draft);
        draft.clear();
        let plan = plan::lease(&mut inner.state, &mut draft, request, &mut ctx);
        let now = ctx.now;
        // What is picked is delivered without a pause, which sees to its writing.
        let writer = if plan.picked.is_empty() { Writer::Store } else { Writer::Appender };
        let appended = self.append_by(writer, inner, &draft, now);
        inner.draft = draft;
        match appended {
            Ok(()) if plan.picked.is_empty() => {
                let LeasePlan { retry_at, held_back, holds_keys, .. } = plan;
                let further = !held_back && (retry_at.is_none() || holds_keys);
                Ok(Tried::Nothing { retry_at, held_back, further })
            }
            Ok(()) => {
                let mark = mark_of(&inner.state, &plan.picked);
                Ok(Tried::Got(plan.picked, inner.end, mark))
            }
            Err(error) => {
                plan::put_back(&mut inner.state, &plan);
                match error {
                    AppendError::Busy => Ok(Tried::Busy),
                    error => Err(refused(error)),
                }
            }
        }
    }

    /// Before anything is handed out: leases and messages of the request's inlets whose time has run out are ended,
    /// and what is due is ready.
    fn end_overdue(&self, inner: &mut Inner, request: &LeaseRequest) -> Result<(), AppendError> {
        let now = self.clock.now();
        for weighted in &request.inlets {
            let Some(queue) = inner.state.find(&weighted.inlet) else { continue };
            let (id, overdue) = (queue.id, plan::queue_is_overdue(queue, now));
            if overdue {
                self.step(inner, Some(id))?;
            }
            inner.state.promote(id, now);
        }
        self.fire_woken(inner);
        Ok(())
    }

    /// Waits until the leases are written, or durable, then reads the bodies.
    async fn deliver(&self, picked: Vec<Picked>, end: u64, mark: Mark) -> Result<Vec<Delivery>> {
        // Waking a thread of the store would take longer than the write itself.
        self.store.write(if mark == Mark::Written { How::Hurried } else { How::Woken });
        self.waits.reach(mark, end).await?;
        let (mut deliveries, mut failure) = (Vec::with_capacity(picked.len()), None);
        let given_at = self.clock.now();
        let bodies = self.bodies(&picked.iter().map(|one| one.body).collect::<Vec<_>>());
        for (one, body) in picked.into_iter().zip(bodies) {
            let stored = match body.map_or_else(|| self.body(one.given.at, one.body), Ok) {
                Ok(stored) => stored,
                // It is gone meanwhile, as with its queue.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    failure = Some(error);
                    continue;
                }
                // The leases are there: a repeat of the request reads again and gets them.
                Err(error) => return Err(error.retry(RetryHint::Unknown)),
            };
            let message = Arc::unwrap_or_clone(stored.message);
            deliveries.push(Delivery {
                token: one.token(message.id.clone()),
                attempt: one.given.attempt,
                lease: one.deadline.since(given_at),
                accepted_at: one.accepted_at,
                position: Some(one.position()),
                progress: one.progress,
                causes: one.causes.into_iter().map(Arc::unwrap_or_clone).collect(),
                suspect: one.suspect,
                replay: one.replay,
                message,
            });
        }
        match failure {
            // What can't be read keeps its lease, fails when that ends, and so comes to the dead letters.
            Some(failure) if deliveries.is_empty() => Err(failure),
            _ => Ok(deliveries),
        }
    }

    pub(super) async fn extend(
        self: &Arc<Self>,
        tokens: Vec<LeaseToken>,
        by: Duration,
    ) -> Result<Vec<Result<Extended>>> {
        let _running = self.enter()?;
        if tokens.len() > LEASE_COUNT_MAX {
            return Err(Error::invalid(format!(
                "{} leases in one call, more than {LEASE_COUNT_MAX}",
                tokens.len()
            )));
        }
        check_term(by)?;
        loop {
            let room = self.waits.room.notified();
            let tried = {
                let mut inner = self.inner.lock();
                let (mut random, bodies, matches) = (|| self.env.random(), Bodies::new(), Matches::new());
                let ctx = self.context(&mut random, None, &bodies, &matches);
                let mut draft = Draft::new();
                let results = plan::extend(&inner.state, &mut draft, &tokens, by, &ctx);
                let now = ctx.now;
                self.append(&mut inner, &draft, now).map(|()| (results, inner.end, now))
            };
            match tried {
                Ok((results, end, from)) => {
                    self.waits.reach(Mark::Written, end).await?;
                    // Counted from the answer, as the holder does: what the disk took is gone already.
                    let waited = self.clock.now().since(from);
                    let extended = |(lease, cancel_requested): (Duration, bool)| Extended {
                        lease: lease.saturating_sub(waited),
                        cancel_requested,
                    };
                    return Ok(results.into_iter().map(|result| result.map(extended)).collect());
                }
                Err(AppendError::Busy) => room.await,
                Err(error) => return Err(refused(error)),
            }
        }
    }
}
