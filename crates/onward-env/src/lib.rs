//! The real clock, randomness and sleeping: the only place where they are touched.
#![allow(clippy::disallowed_methods, reason = "this is the seam that everything else is sent to")]

use onward_core::{Env, Timestamp};
use tokio::runtime::{Handle, RuntimeFlavor};

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The machine's own clock and randomness, and tokio's timer: a paused tokio clock pauses its sleeping.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEnv;

impl SystemEnv {
    /// One to share.
    pub fn shared() -> Arc<dyn Env> {
        Arc::new(Self)
    }
}

impl Env for SystemEnv {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn random(&self) -> u64 {
        rand::random()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }

    fn may_block(&self) -> bool {
        Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
    }
}

/// Tokio's clock for everything: when a test pauses it, wall clock, monotonic clock and sleeping stand still together,
/// and go on together when all tasks wait.
///
/// For tests, inside of a tokio runtime only. The wall clock begins at 2026-01-01; randomness is the machine's.
#[derive(Debug, Clone)]
pub struct TokioEnv {
    start: tokio::time::Instant,
    /// Threads of an engine ask too: without it they would see a clock that is not paused.
    runtime: tokio::runtime::Handle,
}

impl TokioEnv {
    /// One that begins now, on the runtime that this is called in.
    pub fn start() -> Arc<dyn Env> {
        Arc::new(Self { start: tokio::time::Instant::now(), runtime: tokio::runtime::Handle::current() })
    }
}

impl Env for TokioEnv {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_000_000).plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        let _inside = self.runtime.enter();
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        SystemEnv.random()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let _inside = self.runtime.enter();
        Box::pin(tokio::time::sleep(span))
    }
}

/// Lets `span` pass on a clock that a test pauses or plays; it takes no real time there.
pub async fn pass(env: &dyn Env, span: Duration) {
    env.sleep(span).await;
}
