//! What every call goes through: entering, appending, telling those who wait.

use super::{Bodies, Core, Inner, Matches, signal::Signal, waits::Mark};
use crate::{
    AppendError, State, Store, Writer,
    plan::{Context, Draft, Picked},
};
use onward_core::{
    AtomicScope, Capabilities, DeliveryGuarantee, Durability, EngineLimits, Error, Hint, Inlet, OPS_MAX,
    PAYLOAD_BYTES_CEILING, Result, RetryHint, Timestamp,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::broadcast;

pub(super) fn capabilities(name: &'static str, durability: Durability, atomic: AtomicScope) -> Capabilities {
    let limits = EngineLimits {
        payload_bytes_max: PAYLOAD_BYTES_CEILING as u64,
        delay_max: None,
        lease_total_max: None,
        dedup_window_max: None,
        ops_max: OPS_MAX,
    };
    Capabilities::all(name, durability, atomic, limits)
}

/// What a store's refusal means to a caller; nothing was changed.
pub(super) fn refused(error: AppendError) -> Error {
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
    pub(super) fn enter(self: &Arc<Self>) -> Result<Running<'_, S>> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running { core: self };
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed("the engine was closed").mend("open it again"));
        }
        self.start_clock();
        Ok(running)
    }

    /// What planning knows; the bodies and matches are those read for it.
    pub(super) fn context<'a>(
        &'a self,
        random: &'a mut dyn FnMut() -> u64,
        actor: Option<&'a str>,
        bodies: &'a Bodies,
        matches: &'a Matches,
    ) -> Context<'a> {
        Context {
            now: self.clock.now(),
            scheduled: &self.scheduled,
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
    pub(super) fn append(&self, inner: &mut Inner, draft: &Draft, now: Timestamp) -> Result<(), AppendError> {
        self.append_by(Writer::Store, inner, draft, now)
    }

    pub(super) fn append_by(
        &self,
        writer: Writer,
        inner: &mut Inner,
        draft: &Draft,
        now: Timestamp,
    ) -> Result<(), AppendError> {
        if draft.facts.is_empty() {
            return Ok(());
        }
        inner.end = self.store.append(now, draft.class(), &draft.facts, &mut inner.positions, writer)?;
        inner.lone.appended(now);
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

    pub(super) fn after(&self, inner: &mut Inner, draft: &Draft) {
        self.fire_woken(inner);
        self.fire_published(inner);
        for inlet in &draft.duplicates {
            if let Some(queue) = inner.state.queue_mut(*inlet) {
                queue.moment.duplicates += 1;
            }
        }
        self.arm(inner, draft);
    }

    /// Signals inlets at which something may be handed out now.
    pub(super) fn fire_woken(&self, inner: &mut Inner) {
        let (signals, end) = (&mut inner.signals, inner.end);
        inner.state.take_woken(&mut |queue, count| {
            let signal = signal_of(signals, queue.id.0 as usize, &queue.name, &self.hints);
            self.waits.signal_after(end, &signal, count);
        });
    }

    /// Waits until everything that an answer has seen is durable.
    pub(super) async fn durable(&self, end: u64) -> Result<()> {
        self.waits.reach(Mark::Synced, end).await
    }

    /// The same for a read, which still answers from memory when the store has failed: health shows it.
    pub(super) async fn seen(&self, end: u64) {
        // A failure is told by health and by every write; a read answers what is known.
        let _ = self.waits.reach(Mark::Synced, end).await;
    }

    pub(super) fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        self.rearm.notify_one();
    }
}

/// The signal of an inlet, made on first use.
pub(super) fn signal_of(
    signals: &mut Vec<Option<Arc<Signal>>>,
    at: usize,
    name: &Inlet,
    hints: &broadcast::Sender<Hint>,
) -> Arc<Signal> {
    if at >= signals.len() {
        signals.resize(at + 1, None);
    }
    signals[at].get_or_insert_with(|| Arc::new(Signal::new(name.clone(), hints.clone()))).clone()
}

/// A call that is under way.
pub(super) struct Running<'a, S: Store> {
    core: &'a Core<S>,
}

impl<S: Store> Drop for Running<'_, S> {
    fn drop(&mut self) {
        if self.core.running.fetch_sub(1, Ordering::AcqRel) == 1 && self.core.closed.load(Ordering::Acquire) {
            self.core.idle.notify_waiters();
        }
    }
}

/// How far the hand-out must have come before it is answered. A power cut may forget an attempt that was only
/// written: then the message comes again, which an at-most-once inlet must not do.
pub(super) fn mark_of(state: &State, picked: &[Picked]) -> Mark {
    let once = |one: &Picked| {
        let queue = state.queue(one.given.at.inlet);
        queue.is_some_and(|queue| queue.config.guarantee == DeliveryGuarantee::AtMostOnce)
    };
    if picked.iter().any(once) { Mark::Synced } else { Mark::Written }
}
