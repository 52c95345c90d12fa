//! When a failed message comes again: pure arithmetic.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a failed message waits, by attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all; the last failure goes to the dead letters. At least 1.
    pub attempts_max: u32,
    /// How the wait grows.
    pub curve: Curve,
    /// No wait is longer, in milliseconds.
    pub delay_max_ms: u64,
    /// No wait is shorter, in milliseconds; at least 1.
    pub delay_min_ms: u64,
    /// How the wait is spread.
    pub jitter: Jitter,
}

/// How the wait grows from attempt to attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// `base_ms * factor^(attempt - 1)`.
    Exponential {
        /// Wait after the first failure.
        base_ms: u64,
        /// Growth; at least 1.
        factor: f64,
    },
    /// The same wait each time.
    Fixed {
        /// The wait.
        every_ms: u64,
    },
    /// One wait per attempt; the last one repeats.
    Steps {
        /// The waits.
        waits_ms: Vec<u64>,
    },
}

/// How a wait is spread, so that what failed together doesn't come again together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Not at all.
    None,
    /// Evenly over the second half of the wait.
    Half,
    /// Evenly over the whole wait.
    Full,
}

impl Default for RetryPolicy {
    /// 5 attempts; 1 s doubling to at most 5 minutes; jitter over the whole wait, and never under 100 ms.
    fn default() -> Self {
        Self {
            attempts_max: 5,
            curve: Curve::Exponential { base_ms: 1_000, factor: 2.0 },
            delay_max_ms: 300_000,
            delay_min_ms: 100,
            jitter: Jitter::Full,
        }
    }
}

impl RetryPolicy {
    /// The wait after the failure of `attempt` (from 1), with 64 random bits for the jitter.
    ///
    /// Guarantees: between `delay_min_ms` (at least 1 ms) and `delay_max_ms`; no overflow for any attempt.
    pub fn delay(&self, attempt: u32, random: u64) -> Duration {
        let window = self.window_ms(attempt).min(self.delay_max_ms as f64);
        let spread = random as f64 / u64::MAX as f64;
        let wait = match self.jitter {
            Jitter::None => window,
            Jitter::Half => window / 2.0 + window / 2.0 * spread,
            Jitter::Full => window * spread,
        };
        let floor = self.delay_min_ms.max(1);
        Duration::from_micros(((wait * 1_000.0) as u64).clamp(floor.saturating_mul(1_000), u64::MAX))
            .min(Duration::from_millis(self.delay_max_ms.max(floor)))
    }

    /// The wait before jitter and cap, in milliseconds.
    fn window_ms(&self, attempt: u32) -> f64 {
        let step = attempt.saturating_sub(1);
        match &self.curve {
            Curve::Exponential { base_ms, factor } => {
                *base_ms as f64 * factor.max(1.0).powi(i32::try_from(step).unwrap_or(i32::MAX))
            }
            Curve::Fixed { every_ms } => *every_ms as f64,
            Curve::Steps { waits_ms } => {
                let index = (step as usize).min(waits_ms.len().saturating_sub(1));
                waits_ms.get(index).copied().unwrap_or(0) as f64
            }
        }
    }

    /// A wait that was asked for (`Retry-After`), kept within this policy's floor.
    pub fn at_least_min(&self, asked: Duration) -> Duration {
        asked.max(Duration::from_millis(self.delay_min_ms.max(1)))
    }
}
