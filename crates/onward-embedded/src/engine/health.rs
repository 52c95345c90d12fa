//! Whether the engine is well: the truth about the disk, the clock and stopped inlets.

use super::Core;
use crate::Store;
use onward_core::{Durability, Health, Problem};
use std::{sync::atomic::Ordering, time::Duration};

/// A wall clock that is off by more is told by health.
const SKEW_MAX: Duration = Duration::from_secs(1);

impl<S: Store> Core<S> {
    pub(super) fn health(&self) -> Health {
        let now = self.env.now();
        let mut problems = self.store.problems();
        let failure = self.waits.failure();
        if let Some(error) = failure.as_ref().filter(|_| problems.is_empty()) {
            problems.push(Problem {
                what: format!("a write failed, nothing more is accepted: {error}"),
                since: now,
                mend: "free the cause, then reopen the store".to_owned(),
            });
        }
        let skew = Duration::from_micros(self.clock.skew_us().unsigned_abs());
        if skew > SKEW_MAX {
            problems.push(Problem {
                what: format!(
                    "the wall clock has jumped: it is {skew:?} off the engine's, which it does not touch"
                ),
                since: now,
                mend: "set the clock right, then reopen the store".to_owned(),
            });
        }
        for queue in self.inner.lock().state.queues().filter(|queue| queue.stopped_dead_full()) {
            problems.push(Problem {
                what: format!("`{}` hands out nothing: it has {} dead letters", queue.name, queue.books.dead),
                since: now,
                mend: "redrive or purge dead letters, or raise `dead_max`".to_owned(),
            });
        }
        let closed = self.closed.load(Ordering::Acquire);
        let durability: Durability = self.capabilities.durability;
        Health { readable: !closed, writable: !closed && failure.is_none(), durability, problems }
    }
}
