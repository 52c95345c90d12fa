//! Waiting for the store: until something is written, synced, or there is room again.

use super::signal::Signal;
use crate::{Progress, StoreObserver};
use onward_core::{Error, Result};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};
use tokio::sync::Notify;

/// Which mark is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Written,
    Synced,
}

/// Everybody who waits for the store.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    written: AtomicU64,
    synced: AtomicU64,
    inner: Mutex<Inner>,
    pub(crate) room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    written: BTreeMap<(u64, u64), Waker>,
    synced: BTreeMap<(u64, u64), Waker>,
    last: u64,
    failure: Option<Error>,
    /// What to signal once the store has synced so far.
    signals: VecDeque<(u64, Arc<Signal>, u32)>,
}

impl Waits {
    pub(crate) fn start(&self, progress: Progress) {
        self.written.fetch_max(progress.written, Ordering::AcqRel);
        self.synced.fetch_max(progress.synced, Ordering::AcqRel);
    }

    pub(crate) fn has(&self, mark: Mark, end: u64) -> bool {
        self.mark(mark).load(Ordering::Acquire) >= end
    }

    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// The failure that poisoned the store.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.inner.lock().failure.clone()
    }

    /// Completes when the mark has reached `end`.
    ///
    /// # Errors
    /// When the store failed before: the outcome is unknown.
    pub(crate) fn reach(&self, mark: Mark, end: u64) -> Reach<'_> {
        Reach { waits: self, mark, end, key: None }
    }

    /// Signals once the store has synced `end`; at once when it has.
    pub(crate) fn signal_after(&self, end: u64, signal: &Arc<Signal>, count: u32) {
        if self.has(Mark::Synced, end) {
            return signal.fire(count);
        }
        let mut inner = self.inner.lock();
        if self.has(Mark::Synced, end) {
            drop(inner);
            return signal.fire(count);
        }
        inner.signals.push_back((end, signal.clone(), count));
    }

    fn mark(&self, mark: Mark) -> &AtomicU64 {
        match mark {
            Mark::Written => &self.written,
            Mark::Synced => &self.synced,
        }
    }
}

impl Inner {
    fn line(&mut self, mark: Mark) -> &mut BTreeMap<(u64, u64), Waker> {
        match mark {
            Mark::Written => &mut self.written,
            Mark::Synced => &mut self.synced,
        }
    }

    fn take_reached(&mut self, mark: Mark, end: u64) -> BTreeMap<(u64, u64), Waker> {
        let line = self.line(mark);
        let later = line.split_off(&(end, u64::MAX));
        std::mem::replace(line, later)
    }
}

impl StoreObserver for Waits {
    fn advanced(&self, progress: Progress) {
        self.start(progress);
        let mut inner = self.inner.lock();
        let mut wakers = inner.take_reached(Mark::Written, progress.written);
        wakers.extend(inner.take_reached(Mark::Synced, progress.synced));
        let due = inner.signals.iter().take_while(|(end, _, _)| *end <= progress.synced).count();
        let signals: Vec<_> = inner.signals.drain(..due).collect();
        drop(inner);
        wakers.into_values().for_each(Waker::wake);
        signals.into_iter().for_each(|(_, signal, count)| signal.fire(count));
    }

    fn failed(&self, error: Error) {
        let mut inner = self.inner.lock();
        inner.failure.get_or_insert(error);
        let mut wakers = std::mem::take(&mut inner.written);
        wakers.extend(std::mem::take(&mut inner.synced));
        drop(inner);
        wakers.into_values().for_each(Waker::wake);
        self.room.notify_waiters();
    }

    fn room(&self) {
        self.room.notify_waiters();
    }
}

/// Waits for a mark to reach an end.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    waits: &'a Waits,
    mark: Mark,
    end: u64,
    key: Option<(u64, u64)>,
}

impl Future for Reach<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.waits.has(self.mark, self.end) {
            return Poll::Ready(Ok(()));
        }
        let mut inner = self.waits.inner.lock();
        if self.waits.has(self.mark, self.end) {
            return Poll::Ready(Ok(()));
        }
        if let Some(failure) = &inner.failure {
            let what = format!("a write failed before this was durable; it may have happened: {failure}");
            return Poll::Ready(Err(
                Error::unknown(what).mend("reopen the store, then repeat with the same id")
            ));
        }
        let key = match self.key {
            Some(key) => key,
            None => {
                inner.last += 1;
                (self.end, inner.last)
            }
        };
        inner.line(self.mark).insert(key, context.waker().clone());
        drop(inner);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Reach<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.waits.inner.lock().line(self.mark).remove(&key);
        }
    }
}
