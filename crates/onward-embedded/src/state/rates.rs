//! Rates of hand-outs: token buckets, each as the one moment at which it will be full again.

use onward_core::{Key, RATE_KEYS_MAX, RateLimit, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

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

    fn take(&mut self, rate: &RateLimit, now: Timestamp) {
        self.full_at = self.full_at.max(now).plus(span(interval(rate)).max(Duration::from_micros(1)));
    }
}

/// The buckets of an inlet. A full one is as good as none, and forgotten.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rates {
    pub(crate) all: Bucket,
    by_key: BTreeMap<Key, Bucket>,
    /// The same, by when they are full.
    filling: BTreeSet<(Timestamp, Key)>,
}

impl Rates {
    /// Those of a snapshot.
    pub(super) fn restored(all: Timestamp, keys: Vec<(Key, Timestamp)>) -> Self {
        let by_key = keys.iter().map(|(key, full_at)| (key.clone(), Bucket { full_at: *full_at })).collect();
        let filling = keys.into_iter().map(|(key, full_at)| (full_at, key)).collect();
        Self { all: Bucket { full_at: all }, by_key, filling }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = (&Key, Timestamp)> {
        self.by_key.iter().map(|(key, bucket)| (key, bucket.full_at))
    }

    /// When a key can take one more token, `already` of its own having been taken in the same moment, and `fresh` of
    /// other keys that have no bucket yet.
    pub(crate) fn key_free_at(
        &self,
        key: &Key,
        rate: &RateLimit,
        now: Timestamp,
        already: u64,
        fresh: usize,
    ) -> Timestamp {
        let bucket = self.by_key.get(key).copied();
        let free_at = bucket.unwrap_or_default().free_at(rate, now, already);
        let over = (self.by_key.len() + fresh + 1).saturating_sub(RATE_KEYS_MAX);
        if bucket.is_some() || already > 0 || over == 0 {
            return free_at;
        }
        // As many must be full again as this one would be too many.
        self.filling.iter().nth(over - 1).map_or(free_at, |(full_at, _)| free_at.max(*full_at))
    }

    /// Whether a key has a bucket.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    /// Takes a token of a fairness key, and forgets buckets that are full.
    pub(crate) fn take_key(&mut self, key: &Key, rate: &RateLimit, now: Timestamp) {
        while let Some((_, full)) = self.filling.first().filter(|(full_at, _)| *full_at <= now) {
            self.by_key.remove(full);
            self.filling.pop_first();
        }
        let bucket = self.by_key.entry(key.clone()).or_default();
        self.filling.remove(&(bucket.full_at, key.clone()));
        bucket.take(rate, now);
        self.filling.insert((bucket.full_at, key.clone()));
    }

    /// Takes a token of the inlet.
    pub(crate) fn take(&mut self, rate: &RateLimit, now: Timestamp) {
        self.all.take(rate, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    fn key(number: usize) -> Key {
        Key::try_from(format!("k{number}")).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000 * (1_000 + seconds))
    }

    const ONE_IN_TEN: RateLimit = RateLimit { count: 1, per_ms: 10_000, burst: 1 };

    #[test]
    #[proves("I4")]
    fn a_key_beyond_the_most_that_are_remembered_waits_for_the_first_full_bucket() {
        let mut rates = Rates::default();
        for number in 0..RATE_KEYS_MAX {
            rates.take_key(&key(number), &ONE_IN_TEN, at(i64::from(number > 0)));
        }
        let new = key(RATE_KEYS_MAX);
        assert_eq!(rates.key_free_at(&new, &ONE_IN_TEN, at(2), 0, 0), at(10));
        assert_eq!(rates.key_free_at(&new, &ONE_IN_TEN, at(2), 0, 1), at(11), "one more is chosen before it");
        rates.take_key(&new, &ONE_IN_TEN, at(10));
        assert_eq!(rates.by_key.len(), RATE_KEYS_MAX);
        assert_eq!(rates.filling.len(), RATE_KEYS_MAX);
    }

    #[test]
    #[proves("I4")]
    fn a_full_bucket_is_forgotten() {
        let mut rates = Rates::default();
        rates.take_key(&key(1), &ONE_IN_TEN, at(0));
        assert_eq!(rates.key_free_at(&key(1), &ONE_IN_TEN, at(1), 0, 0), at(10));
        rates.take_key(&key(2), &ONE_IN_TEN, at(10));
        assert!(!rates.knows(&key(1)) && rates.knows(&key(2)));
        assert_eq!(Rates::restored(at(0), vec![(key(2), at(20))]).filling, rates.filling);
    }
}
