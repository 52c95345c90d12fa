//! Rates of hand-outs: token buckets, each as the one moment at which it will be full again.

use onward_core::{Key, RateLimit, Timestamp};
use std::{collections::BTreeMap, time::Duration};

/// A token bucket, as the time at which all its tokens are back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) full_at: Timestamp,
}

fn interval(rate: &RateLimit) -> u128 {
    u128::from(rate.per_ms) * 1_000_000 / u128::from(rate.count.max(1))
}

fn span(nanos: u128) -> Duration {
    Duration::from_micros(u64::try_from(nanos / 1_000).unwrap_or(u64::MAX))
}

impl Bucket {
    /// When one more can be taken, `already` having been taken in the same moment.
    pub(crate) fn free_at(self, rate: &RateLimit, now: Timestamp, already: u64) -> Timestamp {
        let tolerance = interval(rate).saturating_mul(u128::from(rate.burst.max(1) - 1));
        let ahead = interval(rate).saturating_mul(u128::from(already));
        self.full_at.max(now).plus(span(ahead)).minus(span(tolerance))
    }

    pub(crate) fn take(&mut self, rate: &RateLimit, now: Timestamp) {
        self.full_at = self.full_at.max(now).plus(span(interval(rate)).max(Duration::from_micros(1)));
    }
}

/// The buckets of an inlet.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rates {
    pub(crate) all: Bucket,
    pub(crate) by_key: BTreeMap<Key, Bucket>,
    sweep_at: usize,
}

impl Rates {
    /// Takes a token of a fairness key. Full buckets are forgotten now and then: they are as good as absent.
    pub(crate) fn take_key(&mut self, key: &Key, rate: &RateLimit, now: Timestamp) {
        const SWEEP_MIN: usize = 1024;
        if self.by_key.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.by_key.retain(|_, bucket| bucket.full_at > now);
            self.sweep_at = self.by_key.len() * 2;
        }
        self.by_key.entry(key.clone()).or_default().take(rate, now);
    }
}
