//! A clock that stands still and random bits from a counter.

use onward_core::{Env, Timestamp};
use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

#[derive(Debug, Default)]
pub(crate) struct StillEnv(AtomicU64);

impl Env for StillEnv {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_710_498_225_000_000)
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn random(&self) -> u64 {
        // An odd multiplier spreads the counter over all bits.
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}
