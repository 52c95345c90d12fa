//! Hints on their way to a slow reader: merged, so that they never pile up.

use onward_core::Hint;
use std::collections::VecDeque;

/// Most different hints that wait for one watcher; more become one [`Hint::Somewhere`].
pub(crate) const HINTS_MAX: usize = 64;

/// Hints that wait for one watcher.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    waiting: VecDeque<Hint>,
}

impl Hints {
    /// Adds a hint unless it waits already.
    pub(crate) fn push(&mut self, hint: Hint) {
        if self.waiting.contains(&hint) || self.waiting.front() == Some(&Hint::Somewhere) {
            return;
        }
        if hint == Hint::Somewhere || self.waiting.len() == HINTS_MAX {
            self.waiting.clear();
            self.waiting.push_back(Hint::Somewhere);
        } else {
            self.waiting.push_back(hint);
        }
    }

    /// Takes the oldest hint.
    pub(crate) fn pop(&mut self) -> Option<Hint> {
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::Inlet;
    use onward_proves::proves;

    fn at(number: usize) -> Hint {
        Hint::Inlet(Inlet::queue(&format!("queue-{number}")).unwrap())
    }

    #[test]
    #[proves("I4")]
    fn equal_hints_are_merged_and_too_many_become_one() {
        let mut hints = Hints::default();
        hints.push(at(1));
        hints.push(at(1));
        assert_eq!((hints.pop(), hints.pop()), (Some(at(1)), None));
        (0..=HINTS_MAX).for_each(|number| hints.push(at(number)));
        hints.push(at(7));
        assert_eq!((hints.pop(), hints.pop()), (Some(Hint::Somewhere), None));
    }
}
