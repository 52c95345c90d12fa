//! Clock, randomness and sleeping that a test turns by hand.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use onward_core::{Env, Timestamp};
use parking_lot::Mutex;

use crate::Random;

/// What a right wall clock shows when a simulation begins: 2026-01-01T00:00:00Z.
const BEGINNING: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// A simulated clock, randomness from a seed, and sleeping that ends when the clock is moved.
///
/// True time moves only by [`SimEnv::advance`]. The wall clock follows it, unless a test steps it or lets it
/// stall. Clones share everything.
#[derive(Clone, Debug)]
pub struct SimEnv {
    shared: Arc<Mutex<Shared>>,
    /// The true time at which this process began: its monotonic clock counts from here.
    began: Duration,
}

#[derive(Debug)]
struct Shared {
    random: Random,
    /// The true time since the simulation began.
    elapsed: Duration,
    /// How far the wall clock is ahead of the truth, in microseconds.
    ahead: i64,
    /// What the wall clock shows for as long as it stalls.
    stalled: Option<Timestamp>,
    /// Who sleeps until when; the number keeps sleepers of one instant apart, in the order they began.
    timers: BTreeMap<(Duration, u64), Option<Waker>>,
    timers_made: u64,
}

impl Shared {
    fn truth(&self) -> Timestamp {
        BEGINNING.plus(self.elapsed)
    }

    fn wall(&self) -> Timestamp {
        let follows = Timestamp::from_micros(self.truth().as_micros().saturating_add(self.ahead));
        self.stalled.unwrap_or(follows)
    }
}

impl SimEnv {
    /// A clock at the beginning of time, and randomness from `seed`.
    pub fn new(seed: u64) -> SimEnv {
        let shared = Shared {
            random: Random::new(seed),
            elapsed: Duration::ZERO,
            ahead: 0,
            stalled: None,
            timers: BTreeMap::new(),
            timers_made: 0,
        };
        SimEnv { shared: Arc::new(Mutex::new(shared)), began: Duration::ZERO }
    }

    /// The same world as a process sees it that starts now: its monotonic clock begins anew.
    pub fn restarted(&self) -> SimEnv {
        SimEnv { shared: self.shared.clone(), began: self.elapsed() }
    }

    /// The true time since the simulation began, whatever the wall clock shows and whichever process asks.
    pub fn elapsed(&self) -> Duration {
        self.shared.lock().elapsed
    }

    /// What a right wall clock would show.
    pub fn truth(&self) -> Timestamp {
        self.shared.lock().truth()
    }

    /// How far the wall clock is ahead of the truth, in microseconds; negative when it is behind.
    pub fn wall_ahead(&self) -> i64 {
        let shared = self.shared.lock();
        shared.wall().as_micros() - shared.truth().as_micros()
    }

    /// Steps the wall clock by so many microseconds, forward or back. A stalled one goes on from there.
    pub fn step_wall(&self, micros: i64) {
        let mut shared = self.shared.lock();
        let shown = shared.wall().as_micros().saturating_add(micros);
        shared.stalled = None;
        shared.ahead = shown - shared.truth().as_micros();
    }

    /// Lets the wall clock stand still until it is stepped or put right.
    pub fn stall_wall(&self) {
        let mut shared = self.shared.lock();
        shared.stalled = Some(shared.wall());
    }

    /// Puts the wall clock right.
    pub fn right_wall(&self) {
        let mut shared = self.shared.lock();
        (shared.ahead, shared.stalled) = (0, None);
    }

    /// Moves true time on, and wakes who slept until then or before, in the order of their times.
    pub fn advance(&self, span: Duration) {
        let mut shared = self.shared.lock();
        shared.elapsed += span;
        let now = shared.elapsed;
        let due = shared.timers.range_mut(..=(now, u64::MAX)).filter_map(|(_, waker)| waker.take());
        let due: Vec<Waker> = due.collect();
        drop(shared);
        due.into_iter().for_each(Waker::wake);
    }

    /// How long until the next sleeper is due; nothing if nobody sleeps.
    pub fn next_timer(&self) -> Option<Duration> {
        let shared = self.shared.lock();
        let next = shared.timers.iter().find(|(_, waker)| waker.is_some());
        next.map(|((due, _), _)| due.saturating_sub(shared.elapsed))
    }
}

impl Env for SimEnv {
    fn now(&self) -> Timestamp {
        self.shared.lock().wall()
    }

    fn monotonic(&self) -> Duration {
        self.elapsed().saturating_sub(self.began)
    }

    fn random(&self) -> u64 {
        self.shared.lock().random.number()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut shared = self.shared.lock();
        shared.timers_made += 1;
        let key = (shared.elapsed.saturating_add(span), shared.timers_made);
        drop(shared);
        Box::pin(Sleep { shared: self.shared.clone(), key })
    }

    /// Now so, now so: both ways lead to the disk.
    fn may_block(&self) -> bool {
        self.random().is_multiple_of(2)
    }
}

struct Sleep {
    shared: Arc<Mutex<Shared>>,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.shared.lock();
        if shared.elapsed >= self.key.0 {
            return Poll::Ready(());
        }
        shared.timers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // The waker may hold the last reference to a task with further sleepers: it is dropped without the lock.
        let waker = self.shared.lock().timers.remove(&self.key);
        drop(waker);
    }
}
