//! The heartbeat: what this process holds, and one batched extension of it all.

use onward_core::{Engine, Env, ErrorKind, Extended, LeaseToken, Result};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// Why a running handler is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// It took longer than its timeout.
    Timeout,
    /// Somebody asked to cancel the message.
    CancelRequested,
    /// The worker is shutting down, and its time to drain is over.
    Shutdown,
    /// The lease could not be extended and is about to end.
    LeaseEnding,
    /// The lease is gone: whatever the handler does now settles nothing.
    LeaseLost,
}

/// One lease as its holder sees it, on the holder's own monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    /// The length of the lease, as it was given.
    pub(crate) lease: Duration,
    /// From here on the lease may belong to another.
    pub(crate) fence: Duration,
    /// When the handler's timeout is over; `None` before it starts.
    pub(crate) deadline: Option<Duration>,
    /// Why it was asked to stop, and when it was asked.
    pub(crate) stop: Option<(Stop, Duration)>,
}

impl Hold {
    /// From here on a handler whose lease is not extended is asked to stop: a fifth of the lease before the fence.
    pub(crate) fn warning(&self) -> Duration {
        self.fence.saturating_sub(self.lease / 5)
    }

    /// From here on it is not waited for any more: a twentieth of the lease before the fence.
    pub(crate) fn last_moment(&self) -> Duration {
        self.fence.saturating_sub(self.lease / 20)
    }

    /// Asks to stop; the first reason stays, except that a lost lease beats all.
    pub(crate) fn ask_to_stop(&mut self, why: Stop, now: Duration) {
        if self.stop.is_none() || why == Stop::LeaseLost {
            self.stop = Some((why, now));
        }
    }
}

/// A hold that heartbeat, handler and runner share.
pub(crate) type SharedHold = Arc<watch::Sender<Hold>>;

/// Extends every lease of this process in one call, a third of a lease after the last time.
///
/// Workers of one handle share it: one of them beats for all, and another takes over when it ends.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    held: Mutex<Held>,
    sooner: Notify,
    beating: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Held {
    next_key: u64,
    /// When the beating task means to wake; a new entry that is due before wakes it.
    wake: Option<Duration>,
    entries: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    token: LeaseToken,
    hold: SharedHold,
    lease: Duration,
    due: Duration,
}

/// Keeps one lease extended until it is dropped.
#[derive(Debug)]
pub(crate) struct Beat {
    heart: Arc<Heart>,
    key: u64,
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.heart.lock().entries.remove(&self.key);
    }
}

/// Leases that are extended in one call: their keys and tokens.
type Batch = Vec<(u64, LeaseToken)>;

impl Heart {
    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to extend a lease that was received at `now`.
    pub(crate) fn hold(self: &Arc<Self>, token: LeaseToken, hold: SharedHold, now: Duration) -> Beat {
        let lease = hold.borrow().lease;
        let due = now + lease / 3;
        let mut held = self.lock();
        let key = held.next_key;
        held.next_key += 1;
        held.entries.insert(key, Entry { token, hold, lease, due });
        if held.wake.is_none_or(|wake| due < wake) {
            self.sooner.notify_one();
        }
        Beat { heart: self.clone(), key }
    }

    /// Beats for ever, as soon as no other does.
    pub(crate) async fn beat(&self, engine: &dyn Engine, env: &dyn Env) {
        let _only_one = self.beating.lock().await;
        loop {
            let wake = self.plan();
            let span = wake.map(|at| at.saturating_sub(env.monotonic()));
            tokio::select! {
                () = self.sooner.notified() => continue,
                () = sleep_or_never(env, span) => {}
            }
            for (lease, batch) in self.due(env.monotonic()) {
                self.extend(engine, env, lease, batch).await;
            }
        }
    }

    fn plan(&self) -> Option<Duration> {
        let mut held = self.lock();
        held.wake = held.entries.values().map(|entry| entry.due).min();
        held.wake
    }

    /// What is due, by length of lease; what is half-way to it goes along, so that there is one call and not many.
    fn due(&self, now: Duration) -> BTreeMap<Duration, Batch> {
        let held = self.lock();
        let mut batches = BTreeMap::<Duration, Batch>::new();
        for (key, entry) in held.entries.iter().filter(|(_, e)| e.due <= now + e.lease / 6) {
            batches.entry(entry.lease).or_default().push((*key, entry.token.clone()));
        }
        batches
    }

    async fn extend(&self, engine: &dyn Engine, env: &dyn Env, lease: Duration, batch: Batch) {
        let sent = env.monotonic();
        let tokens = batch.iter().map(|(_, token)| token.clone()).collect();
        let answer = tokio::select! {
            answer = engine.extend(tokens, lease) => answer,
            () = env.sleep(lease / 4) => Err(onward_core::Error::unknown("no answer to a heartbeat in time")),
        };
        let mut held = self.lock();
        match answer {
            Ok(answers) => {
                for ((key, _), answer) in batch.iter().zip(answers) {
                    held.entries.get_mut(key).into_iter().for_each(|entry| entry.answered(&answer, sent));
                }
            }
            Err(error) => {
                tracing::warn!(leases = batch.len(), %error, "a heartbeat failed; it is repeated");
                for (key, _) in &batch {
                    held.entries.get_mut(key).into_iter().for_each(|entry| entry.again_soon(env.monotonic()));
                }
            }
        }
    }
}

impl Entry {
    /// Takes an answer in. The new fence counts from before the call: the holder's view ends first.
    fn answered(&mut self, answer: &Result<Extended>, sent: Duration) {
        match answer {
            Ok(extended) => {
                self.due = sent + (extended.lease / 3).max(Duration::from_millis(1));
                self.hold.send_modify(|hold| {
                    hold.fence = sent + extended.lease;
                    if extended.cancel_requested {
                        hold.ask_to_stop(Stop::CancelRequested, sent);
                    }
                });
            }
            Err(error) if error.kind() == ErrorKind::LeaseLost => {
                self.due = Duration::MAX;
                self.hold.send_modify(|hold| hold.ask_to_stop(Stop::LeaseLost, sent));
            }
            // The total is used up: the fence stays where it is, and the handler is asked to stop before it.
            Err(error) if error.kind() == ErrorKind::Invalid => self.due = Duration::MAX,
            Err(_) => self.again_soon(sent),
        }
    }

    fn again_soon(&mut self, now: Duration) {
        self.due = now + (self.lease / 20).max(Duration::from_millis(1));
    }
}

async fn sleep_or_never(env: &dyn Env, span: Option<Duration>) {
    match span {
        Some(span) => env.sleep(span).await,
        None => std::future::pending().await,
    }
}
