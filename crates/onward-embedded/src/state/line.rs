//! Slots in the order in which they were put in. Those that follow each other by number cost nothing each.

use std::collections::VecDeque;

/// Marks the first slot of a run of more than one; how many follows it. Slots have one bit less: there is no memory for
/// two thousand million messages.
const RUN: u32 = 1 << 31;

/// A line of slots, as runs of consecutive ones.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The front; empty only if the line is.
    head: Run,
    /// Between front and end: slots, those of longer runs with [`RUN`] and their count behind them.
    between: VecDeque<u32>,
    /// The end, to which a slot may still be added.
    tail: Run,
    len: usize,
}

/// So many slots from one on.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u32,
    count: u32,
}

impl Run {
    fn slots(self) -> impl Iterator<Item = u32> {
        self.first..self.first + self.count
    }

    fn takes(self, slot: u32) -> bool {
        self.count > 0 && self.first + self.count == slot
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn front(&self) -> Option<u32> {
        (self.len > 0).then_some(self.head.first)
    }

    pub(super) fn push_back(&mut self, slot: u32) {
        self.len += 1;
        let alone = self.tail.count == 0;
        if self.head.count == 0 {
            self.head = Run { first: slot, count: 1 };
        } else if alone && self.head.takes(slot) {
            self.head.count += 1;
        } else if self.tail.takes(slot) {
            self.tail.count += 1;
        } else {
            self.put_tail();
            self.tail = Run { first: slot, count: 1 };
        }
    }

    fn put_tail(&mut self) {
        let Run { first, count } = self.tail;
        match count {
            0 => {}
            1 => self.between.push_back(first),
            _ => self.between.extend([first | RUN, count]),
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<u32> {
        let slot = self.front()?;
        self.len -= 1;
        self.head = Run { first: slot + 1, count: self.head.count - 1 };
        if self.head.count == 0 {
            self.head = self.next_run();
        }
        Some(slot)
    }

    fn next_run(&mut self) -> Run {
        match self.between.pop_front() {
            None => std::mem::take(&mut self.tail),
            Some(first) if first & RUN == 0 => Run { first, count: 1 },
            Some(first) => Run { first: first & !RUN, count: self.between.pop_front().unwrap_or(0) },
        }
    }

    /// All slots in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let mut rest = self.between.iter().copied();
        let between = std::iter::from_fn(move || {
            let first = rest.next()?;
            let count = if first & RUN == 0 { 1 } else { rest.next()? };
            Some(Run { first: first & !RUN, count })
        });
        std::iter::once(self.head).chain(between).chain([self.tail]).flat_map(Run::slots)
    }

    /// Keeps the slots for which `keep` answers yes.
    pub(super) fn retain(&mut self, keep: &mut dyn FnMut(u32) -> bool) {
        let mut kept = Self::default();
        self.slots().filter(|slot| keep(*slot)).for_each(|slot| kept.push_back(slot));
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_behaves_as_a_plain_line_does(steps in proptest::collection::vec(0u32..12, 0..400)) {
            let (mut line, mut plain, mut next) = (Line::default(), VecDeque::new(), 0u32);
            for step in steps {
                match step {
                    0..3 => assert_eq!(line.pop_front(), plain.pop_front()),
                    3 => {
                        let keep = |slot: &u32| !slot.is_multiple_of(5);
                        line.retain(&mut |slot| keep(&slot));
                        plain.retain(keep);
                    }
                    4..6 => next += step,
                    _ => {
                        line.push_back(next);
                        plain.push_back(next);
                        next += 1;
                    }
                }
                prop_assert_eq!(line.slots().collect::<VecDeque<_>>(), plain.clone());
                prop_assert_eq!((line.front(), line.len()), (plain.front().copied(), plain.len()));
                prop_assert_eq!(line.is_empty(), plain.is_empty());
            }
        }
    }

    #[test]
    fn slots_one_behind_the_other_take_no_memory() {
        let mut line = Line::default();
        (0..1_000_000).for_each(|slot| line.push_back(slot));
        assert_eq!((line.len(), line.between.capacity()), (1_000_000, 0));
        // Of which every other one is of another line, four bytes each, as a plain list has them.
        let mut line = Line::default();
        (0..1_000_000).step_by(2).for_each(|slot| line.push_back(slot));
        assert!(line.between.len() <= 500_000, "{}", line.between.len());
    }
}
