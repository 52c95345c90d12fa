//! The one seam to clock, randomness and sleeping, so that everything can be simulated.

use crate::Timestamp;
use std::{fmt, future::Future, pin::Pin, time::Duration};

/// Clock, randomness and sleeping. `onward-env` has the real one, `onward-sim` a simulated one.
pub trait Env: fmt::Debug + Send + Sync + 'static {
    /// The wall clock. It may jump either way: never measure a span with it.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
    /// 64 random bits.
    fn random(&self) -> u64;
    /// Completes when `span` has passed on the monotonic clock. Dropping it cancels it.
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// Whether the thread that asks may stand still for one write to a disk, because others go on with the tasks
    /// meanwhile.
    fn may_block(&self) -> bool {
        false
    }
}
