//! Tasks run one at a time, in an order that follows from a seed.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use crate::{Random, SimEnv, Trace};

/// Polls without any time passing after which tasks wake each other without end.
const POLLS_MAX: u64 = 1_000_000;

/// A task of a [`SimExecutor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u64);

/// Runs tasks on the calling thread. Which ready one is next, the seed says; each poll is noted in the trace.
pub struct SimExecutor {
    env: SimEnv,
    random: Random,
    trace: Trace,
    ready: Arc<Mutex<Vec<TaskId>>>,
    tasks: BTreeMap<TaskId, Task>,
    made: u64,
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

struct Woken {
    id: TaskId,
    ready: Arc<Mutex<Vec<TaskId>>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock();
        if !ready.contains(&self.id) {
            ready.push(self.id);
        }
    }
}

impl SimExecutor {
    /// Nothing to run yet. Time is that of `env`.
    pub fn new(env: SimEnv, seed: u64, trace: Trace) -> SimExecutor {
        let (random, ready, tasks) = (Random::new(seed), Arc::default(), BTreeMap::new());
        SimExecutor { env, random, trace, ready, tasks, made: 0 }
    }

    /// Adds a task; it is ready at once.
    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) -> TaskId {
        self.made += 1;
        let id = TaskId(self.made);
        let waker = Waker::from(Arc::new(Woken { id, ready: self.ready.clone() }));
        self.tasks.insert(id, Task { future: Box::pin(future), waker });
        self.ready.lock().push(id);
        id
    }

    /// Drops a task where it stands, as when its caller goes away; answers whether it was still there.
    pub fn drop_task(&mut self, id: TaskId) -> bool {
        self.trace.count(id.0);
        self.ready.lock().retain(|ready| *ready != id);
        self.tasks.remove(&id).is_some()
    }

    /// Drops every task, as the death of a process does.
    pub fn drop_all(&mut self) {
        self.ready.lock().clear();
        self.tasks.clear();
    }

    /// The tasks that have not ended.
    pub fn tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// Whether a task has ended or was dropped.
    pub fn is_over(&self, id: TaskId) -> bool {
        !self.tasks.contains_key(&id)
    }

    /// Runs until no task is ready.
    ///
    /// # Panics
    /// When tasks wake each other without end while no time passes.
    pub fn run_until_stalled(&mut self) {
        self.run_with(&mut || false);
    }

    /// Runs until no task is ready and `other` has nothing to do.
    ///
    /// `other` does one piece of work that is no task, as the next step of a disk, and answers whether there was
    /// one. The seed decides when it has its turn.
    ///
    /// # Panics
    /// As [`SimExecutor::run_until_stalled`].
    pub fn run_with(&mut self, other: &mut dyn FnMut() -> bool) {
        let stalled = self.run_some(POLLS_MAX, other);
        assert!(
            stalled,
            "tasks woke each other {POLLS_MAX} times while no time passed\n{}",
            self.trace.latest()
        );
    }

    /// The same for at most so many turns, so that a test can stop in the middle; answers whether all stalled.
    pub fn run_some(&mut self, turns: u64, other: &mut dyn FnMut() -> bool) -> bool {
        for _ in 0..turns {
            let ready = self.ready.lock().len() as u64;
            let turn = self.random.below(ready + 1);
            let did = if turn == ready { other() } else { self.poll_ready(turn) };
            if !did && self.ready.lock().is_empty() {
                return true;
            }
        }
        false
    }

    /// Moves the clock to the next sleeper and runs until stalled; answers whether there was one within `most`.
    pub fn advance(&mut self, most: Duration) -> bool {
        let next = self.env.next_timer().filter(|span| *span <= most);
        self.env.advance(next.unwrap_or(most));
        self.run_until_stalled();
        next.is_some()
    }

    fn poll_ready(&mut self, turn: u64) -> bool {
        let id = self.ready.lock().remove(turn as usize);
        self.trace.count(id.0);
        let Some(task) = self.tasks.get_mut(&id) else { return true };
        let waker = task.waker.clone();
        if let Poll::Ready(()) = task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.trace.count(u64::MAX);
            self.tasks.remove(&id);
        }
        true
    }
}

impl fmt::Debug for SimExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimExecutor").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}
