//! A clock that stands still, for tests of what is pure.

use onward_core::{Env, Timestamp};
use std::{future::Future, pin::Pin, time::Duration};

#[derive(Debug)]
pub(crate) struct StillEnv;

impl Env for StillEnv {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_000_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn random(&self) -> u64 {
        4
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}
