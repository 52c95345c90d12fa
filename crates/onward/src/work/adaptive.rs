//! Adaptive concurrency: how many handlers run at once follows what the downstream bears.

use std::time::Duration;

/// After it was lowered the limit stays for so long: what ran then still tells of the higher one.
const COOL_DOWN: Duration = Duration::from_secs(1);
const DECREASE: f64 = 0.7;

/// Bounds of a concurrency that adapts: one more for each round of good ends, a third less after a bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// Never fewer; at least 1.
    pub min: u32,
    /// A run that takes longer counts as a bad end, as an error that may pass and a timeout do.
    pub latency_max: Option<Duration>,
}

/// The limit and what it learns from. Pure.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    rules: Adaptive,
    max: f64,
    now: f64,
    lowered: Option<Duration>,
}

impl Limit {
    pub(crate) fn new(rules: Adaptive, max: u32) -> Self {
        let max = f64::from(max.max(1));
        let rules = Adaptive { min: rules.min.clamp(1, max as u32), ..rules };
        Self { rules, max, now: max.min(f64::from(rules.min.max(4))), lowered: None }
    }

    /// How many may run at once.
    pub(crate) fn get(&self) -> u32 {
        self.now as u32
    }

    /// Learns from one end: whether it went well, how long it took, and how many ran.
    pub(crate) fn ended(&mut self, at: Duration, took: Duration, well: bool, running: u32) {
        let slow = self.rules.latency_max.is_some_and(|max| took > max);
        if !well || slow {
            if self.lowered.is_none_or(|before| at >= before + COOL_DOWN) {
                self.now = (self.now * DECREASE).max(f64::from(self.rules.min));
                self.lowered = Some(at);
            }
            return;
        }
        // A limit that is not reached tells nothing of a higher one.
        if f64::from(running) + 1.0 >= self.now.floor() {
            self.now = (self.now + 1.0 / self.now).min(self.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    const SECOND: Duration = Duration::from_secs(1);

    fn limit() -> Limit {
        Limit::new(Adaptive { min: 2, latency_max: Some(SECOND) }, 32)
    }

    /// So many ends at the limit.
    fn ends(limit: &mut Limit, at: Duration, count: u32, took: Duration, well: bool) {
        (0..count).for_each(|_| limit.ended(at, took, well, limit.get()));
    }

    #[proves("I3")]
    #[test]
    fn it_rises_slowly_while_all_is_well_up_to_the_workers_own_bound() {
        let mut limit = limit();
        assert_eq!(limit.get(), 4);
        ends(&mut limit, SECOND, 5, SECOND / 10, true);
        assert_eq!(limit.get(), 5, "about one more for a round");
        ends(&mut limit, SECOND, 10_000, SECOND / 10, true);
        assert_eq!(limit.get(), 32);
    }

    #[proves("I3")]
    #[test]
    fn it_falls_at_once_on_errors_and_on_latency_but_once_for_what_ran_together() {
        let mut limit = limit();
        ends(&mut limit, SECOND, 10_000, SECOND / 10, true);
        ends(&mut limit, SECOND * 2, 10, SECOND / 10, false);
        assert_eq!(limit.get(), 22);
        ends(&mut limit, SECOND * 4, 10, SECOND * 2, true);
        assert_eq!(limit.get(), 15);
        for n in 0..20 {
            ends(&mut limit, SECOND * (10 + 2 * n), 1, SECOND / 10, false);
        }
        assert_eq!(limit.get(), 2, "never below its minimum");
    }

    #[test]
    fn a_limit_that_is_not_reached_does_not_rise() {
        let mut limit = limit();
        (0..1_000).for_each(|_| limit.ended(SECOND, SECOND / 10, true, 1));
        assert_eq!(limit.get(), 4);
    }
}
