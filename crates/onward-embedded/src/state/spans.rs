//! Sets of numbers as spans: what lies together costs one entry.

use std::collections::BTreeMap;

/// Most spans of one set; beyond it the lowest are forgotten.
pub const SPANS_MAX: usize = 100_000;

/// Numbers, as spans from (included) to (excluded) that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    by_start: BTreeMap<u64, u64>,
    total: u64,
}

impl Spans {
    pub(crate) fn of(spans: &[(u64, u64)]) -> Self {
        let mut all = Self::default();
        spans.iter().for_each(|(from, to)| all.add(*from, *to));
        all
    }

    pub(crate) fn spans(&self) -> Vec<(u64, u64)> {
        self.by_start.iter().map(|(from, to)| (*from, *to)).collect()
    }

    /// The lowest span.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.by_start.first_key_value().map(|(from, to)| (*from, *to))
    }

    /// How many numbers are in it.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let (mut start, mut end) = (from, to);
        while let Some((&low, &high)) = self.by_start.range(..=end).next_back() {
            if high < start {
                break;
            }
            (start, end) = (start.min(low), end.max(high));
            self.by_start.remove(&low);
            self.total -= high - low;
        }
        self.by_start.insert(start, end);
        self.total += end - start;
        if self.by_start.len() > SPANS_MAX
            && let Some((low, high)) = self.by_start.pop_first()
        {
            self.total -= high - low;
        }
    }

    /// Takes out what lies in a span, and answers it.
    pub(crate) fn take(&mut self, from: u64, to: u64) -> Self {
        let mut taken = Self::default();
        if from >= to {
            return taken;
        }
        while let Some((&low, &high)) = self.by_start.range(..to).next_back() {
            if high <= from {
                break;
            }
            self.by_start.remove(&low);
            self.total -= high - low;
            taken.add(low.max(from), high.min(to));
            if high > to {
                self.add(to, high);
            }
            if low < from {
                self.add(low, from);
                break;
            }
        }
        taken
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        other.by_start.iter().for_each(|(from, to)| self.add(*from, *to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn spans_hold_what_a_set_holds(steps in proptest::collection::vec((any::<bool>(), 0u64..60, 0u64..60), 0..40)) {
            let (mut spans, mut set) = (Spans::default(), BTreeSet::new());
            for (adds, from, to) in steps {
                if adds {
                    spans.add(from, to);
                    set.extend(from..to);
                } else {
                    let taken = spans.take(from, to);
                    let expected: BTreeSet<u64> = (from..to).filter(|n| set.contains(n)).collect();
                    let got: BTreeSet<u64> = taken.spans().iter().flat_map(|(a, b)| *a..*b).collect();
                    prop_assert_eq!(got, expected);
                    set.retain(|n| !(from..to).contains(n));
                }
                let held: BTreeSet<u64> = spans.spans().iter().flat_map(|(a, b)| *a..*b).collect();
                prop_assert_eq!(spans.total(), held.len() as u64);
                prop_assert_eq!(&held, &set);
                prop_assert!(spans.spans().windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
