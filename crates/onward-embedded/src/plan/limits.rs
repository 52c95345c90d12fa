//! Limits on handing out: live leases and rates, per inlet and per fairness key. Slots are live leases, never a counter.

use super::Context;
use crate::{
    InletId,
    state::{Leases, Queue, Rates, Turn},
};
use hashbrown::HashMap;
use onward_core::{InletConfig, Key, Timestamp};

/// What one request has taken already, of the inlets that have limits.
#[derive(Debug, Default)]
pub(super) struct Taken {
    by_inlet: HashMap<InletId, Mine>,
}

/// What one request has taken of one inlet.
#[derive(Debug, Default)]
pub(super) struct Mine {
    all: u64,
    by_key: HashMap<Key, u64>,
    /// How many of its keys have no bucket yet.
    fresh_keys: usize,
}

impl Taken {
    pub(super) fn of(&self, queue: &Queue) -> Option<&Mine> {
        self.by_inlet.get(&queue.id)
    }

    pub(super) fn add(&mut self, queue: &Queue, fairness: Option<Key>) {
        if !has_limits(&queue.config) {
            return;
        }
        let mine = self.by_inlet.entry(queue.id).or_default();
        mine.all += 1;
        if let Some(key) = fairness {
            mine.fresh_keys += usize::from(!queue.rates.knows(&key) && !mine.by_key.contains_key(&key));
            *mine.by_key.entry(key).or_default() += 1;
        }
    }
}

fn has_limits(config: &InletConfig) -> bool {
    config.concurrency_max.is_some() || config.rate.is_some() || limits_keys(config)
}

pub(super) fn limits_keys(config: &InletConfig) -> bool {
    config.concurrency_per_key_max.is_some() || config.rate_per_key.is_some()
}

/// Whether an inlet's own limits let it hand out one more, beside what this request has taken.
pub(super) fn turn_of(queue: &Queue, taken: &Taken, ctx: &Context<'_>) -> Turn {
    if queue.config.concurrency_max.is_none() && queue.config.rate.is_none() {
        return Turn::Now;
    }
    let mine = taken.of(queue).map_or(0, |mine| mine.all);
    if queue.config.concurrency_max.is_some_and(|most| queue.leases.len() as u64 + mine >= u64::from(most)) {
        return Turn::WhenFreed;
    }
    match queue.config.rate.map(|rate| queue.rates.all.free_at(&rate, ctx.now, mine)) {
        Some(free_at) if free_at > ctx.now => Turn::At(free_at),
        _ => Turn::Now,
    }
}

/// The limits per key of one inlet, as one request finds them.
pub(super) struct KeyLimits<'a> {
    pub(super) now: Timestamp,
    pub(super) config: &'a InletConfig,
    pub(super) leases: &'a Leases,
    pub(super) rates: &'a Rates,
    pub(super) mine: Option<&'a Mine>,
}

impl KeyLimits<'_> {
    /// Whether a key may be served one more.
    pub(super) fn turn(&self, key: &Key) -> Turn {
        let mine = self.mine.and_then(|mine| mine.by_key.get(key)).copied().unwrap_or(0);
        let most = self.config.concurrency_per_key_max;
        if most.is_some_and(|most| self.leases.of_key(key) + mine >= u64::from(most)) {
            return Turn::WhenFreed;
        }
        let Some(rate) = &self.config.rate_per_key else { return Turn::Now };
        let fresh = self.mine.map_or(0, |mine| mine.fresh_keys);
        match self.rates.key_free_at(key, rate, self.now, mine, fresh) {
            free_at if free_at > self.now => Turn::At(free_at),
            _ => Turn::Now,
        }
    }
}
