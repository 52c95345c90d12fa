//! A clock that stands still, for tests of pure parts.

use onward_core::{Env, Timestamp};
use std::{future::Future, pin::Pin, time::Duration};

#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedEnv;

impl Env for FixedEnv {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn random(&self) -> u64 {
        4
    }

    fn sleep(&self, _span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}
