//! Groups under way to the disk: they may finish in any order, progress is told in log order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use parking_lot::Mutex;

use crate::{LogError, Position};

/// How far the log has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Everything before this is written: it survives the death of the process.
    pub written: Position,
    /// Everything before this is durable: it survives a power cut.
    pub synced: Position,
}

/// Who is told how the log comes along; called by the threads that write, one call at a time.
///
/// A call should be short, must not wait for the log and must not panic; appending from within it is fine.
pub trait Observer: Send + Sync {
    /// The log has come further; calls may be merged, `written` and `synced` never go back.
    fn advanced(&self, progress: Progress);
    /// A write or sync failed: what was appended behind the last `synced` has an unknown outcome. Called once,
    /// and the last call.
    fn failed(&self, error: &LogError);
    /// There is room again after [`LogError::Busy`] or [`LogError::NoSpace`].
    fn room(&self);
}

pub(crate) struct Flow {
    observer: Arc<dyn Observer>,
    order: Mutex<Order>,
    written: AtomicU64,
    synced: AtomicU64,
    /// Bytes appended and not yet durable.
    pending: AtomicU64,
    /// Reports asked for and not yet given; who raises it from zero gives them.
    reports: AtomicUsize,
    failure: Mutex<Failure>,
}

#[derive(Default)]
enum Failure {
    #[default]
    None,
    Untold(LogError),
    Told,
}

#[derive(Debug, Default)]
struct Order {
    /// The number of the first group in `groups`.
    first: u64,
    groups: VecDeque<Step>,
}

#[derive(Debug)]
struct Step {
    end: Position,
    bytes: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Begun,
    Written,
    Synced,
}

impl Flow {
    pub(crate) fn new(observer: Arc<dyn Observer>, at: Position) -> Flow {
        Flow {
            observer,
            order: Mutex::default(),
            written: AtomicU64::new(at.0),
            synced: AtomicU64::new(at.0),
            pending: AtomicU64::new(0),
            reports: AtomicUsize::new(0),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        // `synced` first, so that it is never ahead of `written`.
        let synced = Position(self.synced.load(Acquire));
        Progress { written: Position(self.written.load(Acquire)), synced }
    }

    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Relaxed)
    }

    pub(crate) fn add_pending(&self, bytes: u64) {
        self.pending.fetch_add(bytes, Relaxed);
    }

    /// Puts a group in line; groups are begun in log order.
    pub(crate) fn begin(&self, end: Position, bytes: u64) -> u64 {
        let mut order = self.order.lock();
        order.groups.push_back(Step { end, bytes, state: State::Begun });
        order.first + order.groups.len() as u64 - 1
    }

    /// A group has come to `state`; the observer is told what that means for the log's beginning.
    pub(crate) fn reached(&self, number: u64, state: State) {
        if self.advance(number, state) {
            self.report();
        }
    }

    /// Marks the group and moves both marks over what is now whole; answers whether one moved.
    fn advance(&self, number: u64, state: State) -> bool {
        let mut order = self.order.lock();
        let at = (number - order.first) as usize;
        order.groups[at].state = state;
        let before = self.progress();
        let mut done = 0;
        while order.groups.front().is_some_and(|step| step.state == State::Synced) {
            if let Some(step) = order.groups.pop_front() {
                order.first += 1;
                done += step.bytes;
                self.written.fetch_max(step.end.0, Release);
                self.synced.store(step.end.0, Release);
            }
        }
        if let Some(last) = order.groups.iter().take_while(|step| step.state >= State::Written).last() {
            self.written.fetch_max(last.end.0, Release);
        }
        self.pending.fetch_sub(done, Relaxed);
        before != self.progress()
    }

    /// Tells the failure, once, after which nothing more is told.
    pub(crate) fn fail(&self, error: &LogError) {
        {
            let mut failure = self.failure.lock();
            if matches!(*failure, Failure::None) {
                *failure = Failure::Untold(error.clone());
            }
        }
        self.report();
    }

    pub(crate) fn room(&self) {
        self.observer.room();
    }

    /// Calls the observer, unless another thread is at it: that one then calls again.
    fn report(&self) {
        if self.reports.fetch_add(1, AcqRel) != 0 {
            return;
        }
        let mut answered = 1;
        loop {
            self.tell();
            let before = self.reports.fetch_sub(answered, AcqRel);
            if before == answered {
                return;
            }
            answered = before - answered;
        }
    }

    fn tell(&self) {
        let mut failure = self.failure.lock();
        match std::mem::replace(&mut *failure, Failure::None) {
            Failure::None => {
                drop(failure);
                self.observer.advanced(self.progress());
            }
            Failure::Untold(error) => {
                *failure = Failure::Told;
                drop(failure);
                self.observer.failed(&error);
            }
            Failure::Told => *failure = Failure::Told,
        }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("progress", &self.progress()).finish_non_exhaustive()
    }
}
