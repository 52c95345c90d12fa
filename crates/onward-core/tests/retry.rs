//! Waits after failures: bounded, growing, spread, never zero.

use onward_core::{Curve, Jitter, RetryPolicy};
use onward_proves::proves;
use proptest::prelude::*;
use std::time::Duration;

fn policy(curve: Curve, jitter: Jitter) -> RetryPolicy {
    RetryPolicy { attempts_max: 5, curve, delay_max_ms: 60_000, delay_min_ms: 10, jitter }
}

#[test]
#[proves("B4", "H1")]
fn the_wait_doubles_until_the_cap() {
    let policy = policy(Curve::Exponential { base_ms: 1_000, factor: 2.0 }, Jitter::None);
    let waits: Vec<u64> = (1..=8).map(|attempt| policy.delay(attempt, 0).as_millis() as u64).collect();
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
}

#[test]
#[proves("B4")]
fn given_waits_are_taken_in_turn_and_the_last_one_repeats() {
    let policy = policy(Curve::Steps { waits_ms: vec![5_000, 30_000] }, Jitter::None);
    let waits: Vec<u64> = (1..=4).map(|attempt| policy.delay(attempt, 0).as_secs()).collect();
    assert_eq!(waits, [5, 30, 30, 30]);
}

#[test]
#[proves("T41")]
fn ten_thousand_that_fail_together_spread_over_at_least_half_of_the_window() {
    for jitter in [Jitter::Half, Jitter::Full] {
        let policy = policy(Curve::Fixed { every_ms: 60_000 }, jitter);
        let waits: Vec<Duration> =
            (0..10_000u64).map(|n| policy.delay(1, n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        let (first, last) = (waits.iter().min().expect("some"), waits.iter().max().expect("some"));
        assert!(*last - *first >= Duration::from_millis(29_900), "{jitter:?}: {first:?} to {last:?}");
        let early = waits.iter().filter(|w| **w < *first + (*last - *first) / 2).count();
        assert!((4_500..=5_500).contains(&early), "{jitter:?}: {early} of 10,000 in the first half");
    }
}

proptest! {
    #[test]
    #[proves("T52")]
    fn no_policy_attempt_or_chance_gives_a_wait_outside_its_bounds(
        attempt in any::<u32>(), random in any::<u64>(), base_ms in any::<u64>(), factor in 0.0f64..1e300,
        delay_max_ms in 0u64..1_000_000_000, delay_min_ms in 0u64..10_000, full in any::<bool>(),
    ) {
        let jitter = if full { Jitter::Full } else { Jitter::Half };
        let policy = RetryPolicy {
            attempts_max: 5, curve: Curve::Exponential { base_ms, factor }, delay_max_ms, delay_min_ms, jitter,
        };
        let wait = policy.delay(attempt, random);
        prop_assert!(wait >= Duration::from_millis(delay_min_ms.max(1)));
        prop_assert!(wait <= Duration::from_millis(delay_max_ms.max(delay_min_ms).max(1)));
    }
}
