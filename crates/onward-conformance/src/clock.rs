//! A clock that moves only when it is told to, so that an hour passes in no time and nothing is early by accident.

use onward_core::{Env, Timestamp};
use parking_lot::Mutex;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

const START_MICROS: i64 = 1_710_498_225_000_000;

/// A clock that moves only by [`SteppedEnv::step`], with random bits from a seed. Clones share it.
#[derive(Debug, Clone)]
pub struct SteppedEnv {
    state: Arc<Mutex<State>>,
    threads: bool,
    follower: Option<Follower>,
}

/// Told of every step before it ends: how a clock in another process goes with this one.
#[derive(Clone)]
struct Follower(Arc<dyn Fn(Step) + Send + Sync>);

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Follower")
    }
}

/// One step of a stepped clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Both clocks go on.
    Advance(Duration),
    /// The wall clock alone is set forward.
    WallForward(Duration),
    /// The wall clock alone is set back.
    WallBack(Duration),
}

#[derive(Debug)]
struct State {
    wall: Timestamp,
    monotonic: Duration,
    random: u64,
    sleepers: Vec<Sleeper>,
    serial: u64,
}

/// Somebody who waits for a moment; each waiting has a number, since one task may wait for several.
#[derive(Debug)]
struct Sleeper {
    number: u64,
    until: Duration,
    waker: Waker,
}

impl SteppedEnv {
    /// A clock at some fixed moment; the same seed gives the same random bits.
    pub fn new(seed: u64) -> Self {
        let state = State {
            wall: Timestamp::from_micros(START_MICROS),
            monotonic: Duration::from_secs(1),
            random: seed,
            sleepers: Vec::new(),
            serial: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), threads: false, follower: None }
    }

    /// The same for an engine with threads of its own: each step waits a real millisecond for them.
    pub fn for_threads(seed: u64) -> Self {
        Self { threads: true, ..Self::new(seed) }
    }

    /// Whether an engine on it has threads of its own.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads
    }

    /// The same clock, with somebody who is told of each step before it ends.
    pub fn followed_by(mut self, follower: impl Fn(Step) + Send + Sync + 'static) -> Self {
        self.follower = Some(Follower(Arc::new(follower)));
        self
    }

    /// A clock that goes on where another one is.
    pub fn at(seed: u64, wall: Timestamp, monotonic: Duration) -> Self {
        let env = Self::for_threads(seed);
        {
            let mut state = env.state.lock();
            (state.wall, state.monotonic) = (wall, monotonic);
        }
        env
    }

    /// Makes one step.
    pub fn step(&self, step: Step) {
        match step {
            Step::Advance(span) => self.move_both(span),
            Step::WallForward(span) => self.set_wall(|wall| wall.plus(span)),
            Step::WallBack(span) => self.set_wall(|wall| wall.minus(span)),
        }
        if let Some(Follower(tell)) = &self.follower {
            tell(step);
        }
    }

    fn set_wall(&self, change: impl FnOnce(Timestamp) -> Timestamp) {
        let mut state = self.state.lock();
        state.wall = change(state.wall);
    }

    /// Lets `span` pass, and whoever slept until then do what they slept for.
    pub async fn pass(&self, span: Duration) {
        self.advance(span);
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        if self.threads {
            onward_env::SystemEnv.sleep(Duration::from_millis(1)).await;
        }
    }

    /// Lets `span` pass on both clocks and wakes who slept until then.
    fn move_both(&self, span: Duration) {
        let due = {
            let mut state = self.state.lock();
            state.wall = state.wall.plus(span);
            state.monotonic += span;
            let now = state.monotonic;
            let (due, later): (Vec<_>, Vec<_>) = state.sleepers.drain(..).partition(|s| s.until <= now);
            state.sleepers = later;
            due
        };
        due.into_iter().for_each(|sleeper| sleeper.waker.wake());
    }

    /// Lets `span` pass on both clocks.
    pub fn advance(&self, span: Duration) {
        self.step(Step::Advance(span));
    }

    /// Moves the wall clock alone forward, as somebody setting it does.
    pub fn wall_forward(&self, span: Duration) {
        self.step(Step::WallForward(span));
    }

    /// Moves the wall clock alone back.
    pub fn wall_back(&self, span: Duration) {
        self.step(Step::WallBack(span));
    }
}

impl Env for SteppedEnv {
    fn now(&self) -> Timestamp {
        self.state.lock().wall
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().monotonic
    }

    fn random(&self) -> u64 {
        mix(&mut self.state.lock().random)
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut state = self.state.lock();
        state.serial += 1;
        let (number, until) = (state.serial, state.monotonic.saturating_add(span));
        Box::pin(Sleep { state: self.state.clone(), number, until })
    }
}

struct Sleep {
    state: Arc<Mutex<State>>,
    number: u64,
    until: Duration,
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.state.lock().sleepers.retain(|s| s.number != self.number);
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.monotonic >= self.until {
            return Poll::Ready(());
        }
        state.sleepers.retain(|s| s.number != self.number);
        let sleeper = Sleeper { number: self.number, until: self.until, waker: context.waker().clone() };
        state.sleepers.push(sleeper);
        Poll::Pending
    }
}

/// The next number of a random sequence: a counter with a large odd step, its bits well stirred.
pub(crate) fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 31)).wrapping_mul(0x7FB5_D329_728E_A185);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_sleeper_wakes_when_its_time_has_passed_and_not_before() {
        let env = SteppedEnv::new(1);
        let mut sleep =
            Sleep { state: env.state.clone(), number: 1, until: env.monotonic() + Duration::from_millis(10) };
        assert!((&mut sleep).now_or_never().is_none());
        env.advance(Duration::from_millis(9));
        assert!((&mut sleep).now_or_never().is_none());
        env.advance(Duration::from_millis(1));
        assert!((&mut sleep).now_or_never().is_some());
    }

    #[test]
    fn setting_the_wall_clock_leaves_the_monotonic_one_alone() {
        let env = SteppedEnv::new(1);
        let (wall, monotonic) = (env.now(), env.monotonic());
        env.wall_forward(Duration::from_secs(3600));
        assert_eq!(env.now().since(wall), Duration::from_secs(3600));
        assert_eq!(env.monotonic(), monotonic);
    }
}
