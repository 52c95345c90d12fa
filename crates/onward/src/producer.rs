//! Producers that go easy on a full queue: refused, held back, or slowed down before it is full.

use crate::{IntoMessage, Onward, handle::accepted};
use onward_core::{Accepted, Error, ErrorKind, Inlet, Op, Result, RetryHint};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long a look at the depth counts, for [`WhenFull::Delay`].
const LOOK_HOLDS: Duration = Duration::from_secs(1);

/// What a producer does when its queue is full, or nearly so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WhenFull {
    /// Answers `Full` at once, as [`Onward::enqueue`] does.
    Refuse,
    /// Waits until there is room, no longer than this; then `Full`.
    Block(Duration),
    /// Is slowed down from this share of the queue's bound on (0 to 1), the more the fuller it is, at most by this much
    /// for each message; `Full` when it is full all the same.
    Delay(f64, Duration),
}

/// Puts messages into one queue; made by [`Onward::producer`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Producer {
    onward: Onward,
    queue: Arc<str>,
    when_full: WhenFull,
    fullness: Arc<Mutex<Option<(Duration, f64)>>>,
}

impl Onward {
    /// A producer for a queue, and what it does when the queue is full. No I/O.
    pub fn producer(&self, queue: &str, when_full: WhenFull) -> Producer {
        Producer { onward: self.clone(), queue: queue.into(), when_full, fullness: Arc::default() }
    }
}

impl Producer {
    /// Puts one message into the queue, at the pace that the queue bears.
    ///
    /// Cancel safety: dropped while it waits, nothing was enqueued.
    ///
    /// # Errors
    /// As [`Onward::enqueue`].
    pub async fn enqueue(&self, message: impl IntoMessage) -> Result<Accepted> {
        // Made once, so that each repeat has the same id.
        let message = message.into_message(&**self.onward.env())?;
        let op = self.onward.enqueue_op(&self.queue, message)?;
        match self.when_full {
            WhenFull::Refuse => self.try_once(&op).await,
            WhenFull::Block(longest) => self.wait_for_room(&op, longest).await,
            WhenFull::Delay(from, longest) => {
                let wait = delay(self.fullness().await?, from, longest);
                if !wait.is_zero() {
                    self.onward.env().sleep(wait).await;
                }
                self.try_once(&op).await
            }
        }
    }

    async fn try_once(&self, op: &Op) -> Result<Accepted> {
        accepted(self.onward.commit(vec![op.clone()]).await?.pop())
    }

    async fn wait_for_room(&self, op: &Op, longest: Duration) -> Result<Accepted> {
        let env = self.onward.env();
        let (until, mut wait) = (env.monotonic() + longest, WAIT_MIN);
        loop {
            let error = match self.try_once(op).await {
                Err(error) if error.kind() == ErrorKind::Full => error,
                answer => return answer,
            };
            let left = until.saturating_sub(env.monotonic());
            if left.is_zero() {
                return Err(error);
            }
            // Spread, so that those who wait don't come together.
            let spread = 0.5 + env.random() as f64 / u64::MAX as f64 / 2.0;
            env.sleep(asked(&error).unwrap_or(wait).mul_f64(spread).min(left)).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    /// How full the queue is, from 0 to 1; looked at once a second.
    async fn fullness(&self) -> Result<f64> {
        let now = self.onward.env().monotonic();
        let known = *self.fullness.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, fullness)) = known.filter(|(at, _)| now < *at + LOOK_HOLDS) {
            let _ = at;
            return Ok(fullness);
        }
        let inlet: Inlet = self.queue.parse()?;
        let engine = self.onward.engine();
        let topology = engine.topology().await?;
        let Some((_, config)) = topology.inlets.into_iter().find(|(name, _)| *name == inlet) else {
            return Ok(0.0);
        };
        let Some(stats) = engine.stats(vec![inlet]).await?.pop() else { return Ok(0.0) };
        let books = stats.books;
        let depth = (books.waiting + books.delayed + books.leased) as f64 / config.depth_max as f64;
        let fullness = depth.max(stats.bytes as f64 / config.bytes_max as f64);
        *self.fullness.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, fullness));
        Ok(fullness)
    }
}

fn asked(error: &Error) -> Option<Duration> {
    match error.retry_hint() {
        RetryHint::After(span) => Some(span.clamp(WAIT_MIN, WAIT_MAX)),
        _ => None,
    }
}

/// Nothing below `from`, then in proportion up to `longest` where it is full.
fn delay(fullness: f64, from: f64, longest: Duration) -> Duration {
    let from = from.clamp(0.0, 0.99);
    longest.mul_f64(((fullness - from) / (1.0 - from)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_is_slowed_the_more_the_fuller_the_queue_is() {
        let at = |fullness| delay(fullness, 0.5, Duration::from_secs(2));
        assert_eq!((at(0.0), at(0.5)), (Duration::ZERO, Duration::ZERO));
        assert_eq!(
            (at(0.75), at(1.0), at(7.0)),
            (Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(2))
        );
    }
}
