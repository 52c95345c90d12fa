//! A commit that comes alone: its own task writes and syncs it, which spares two wake-ups of threads.

use super::{Core, Inner};
use crate::{How, Store, Writer};
use onward_core::Timestamp;
use std::time::Duration;

/// Nothing was appended for so long: nobody is likely to come while the disk works.
const ALONE_AFTER: Duration = Duration::from_micros(200);
/// A disk that takes longer than this is left to the store's threads: the task's thread has more to do.
const SLOW: Duration = Duration::from_millis(1);
/// How long a slow disk is left to them, as a multiple of what it took: a task's thread stands still for it at most
/// so large a share of the time.
const LEFT_FOR: u32 = 5;

/// Whether a commit is alone.
#[derive(Debug, Default)]
pub(super) struct Lone {
    appended_at: Timestamp,
    not_before: Timestamp,
}

impl Lone {
    pub(super) fn appended(&mut self, now: Timestamp) {
        self.appended_at = now;
    }

    /// Whether the commit that is appended now is alone.
    fn is_alone(&self, now: Timestamp) -> bool {
        now >= self.not_before && now.since(self.appended_at) >= ALONE_AFTER
    }
}

impl<S: Store> Core<S> {
    /// Who sees to the writing of a commit that is appended now, with others right behind it or not.
    pub(super) fn writer(&self, inner: &Inner, last: bool, now: Timestamp) -> Writer {
        let by_itself = last && inner.lone.is_alone(now) && self.env.may_block();
        if by_itself { Writer::Appender } else { Writer::Store }
    }

    /// Writes and syncs what this task appended alone.
    pub(super) fn write_alone(&self) {
        let began = self.env.monotonic();
        self.store.write(How::Here);
        let took = self.env.monotonic().saturating_sub(began);
        if took > SLOW {
            self.inner.lock().lone.not_before = self.clock.now().plus(took * LEFT_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_commit_is_alone_when_nothing_was_appended_for_a_while() {
        let mut lone = Lone::default();
        lone.appended(at(1_000));
        assert!(!lone.is_alone(at(1_199)));
        assert!(lone.is_alone(at(1_200)));
        lone.not_before = at(5_000);
        assert!(!lone.is_alone(at(4_999)) && lone.is_alone(at(5_000)));
    }
}
