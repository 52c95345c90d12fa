//! Limits on handing out: how they are given, and how they are shown.

use crate::args::values::per;
use onward_core::{InletConfig, RateLimit};
use serde::Serialize;

/// Limits on how much is worked on at once, and how much is handed out per time.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Most messages worked on at once, over all workers of all processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency_max: Option<u32>,
    /// Most messages of one fairness key worked on at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency_per_key_max: Option<u32>,
    /// Most hand-outs per second, minute or hour, over all workers of all processes
    #[arg(long, value_name = "N/UNIT", value_parser = limit)]
    rate: Option<RateLimit>,
    /// How many at once after a pause; as many as a second gives unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "rate")]
    burst: Option<u64>,
    /// Most hand-outs of one fairness key per second, minute or hour
    #[arg(long, value_name = "N/UNIT", value_parser = limit)]
    rate_per_key: Option<RateLimit>,
    /// How many of one fairness key at once after a pause
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "rate_per_key")]
    burst_per_key: Option<u64>,
}

impl Limits {
    /// Puts what was given into the rules.
    pub(super) fn set(&self, config: &mut InletConfig) {
        let burst =
            |rate: RateLimit, burst: Option<u64>| RateLimit { burst: burst.unwrap_or(rate.burst), ..rate };
        config.concurrency_max = self.concurrency_max.or(config.concurrency_max);
        config.concurrency_per_key_max = self.concurrency_per_key_max.or(config.concurrency_per_key_max);
        config.rate = self.rate.map(|rate| burst(rate, self.burst)).or(config.rate);
        let per_key = self.rate_per_key.map(|rate| burst(rate, self.burst_per_key));
        config.rate_per_key = per_key.or(config.rate_per_key);
    }
}

/// Reads `10/s`, with the burst that one second gives.
fn limit(text: &str) -> Result<RateLimit, String> {
    let (count, span) = per(text)?;
    let (count, per_ms) = (u64::from(count), span.as_millis() as u64);
    Ok(RateLimit { count, per_ms, burst: (count * 1_000 / per_ms).max(1) })
}

/// The limits of a queue, as scripts read them.
#[derive(Serialize)]
pub(super) struct Line {
    concurrency_max: Option<u32>,
    concurrency_per_key_max: Option<u32>,
    rate: Option<RateLimit>,
    rate_per_key: Option<RateLimit>,
}

impl From<&InletConfig> for Line {
    fn from(config: &InletConfig) -> Self {
        Self {
            concurrency_max: config.concurrency_max,
            concurrency_per_key_max: config.concurrency_per_key_max,
            rate: config.rate,
            rate_per_key: config.rate_per_key,
        }
    }
}

/// The limits of a queue, for people; `None` when it has none.
pub(crate) fn shown(config: &InletConfig) -> Option<String> {
    let parts = [
        config.concurrency_max.map(|most| format!("{most} at once")),
        config.concurrency_per_key_max.map(|most| format!("{most} at once per key")),
        config.rate.map(|rate| told(&rate)),
        config.rate_per_key.map(|rate| format!("{} per key", told(&rate))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn told(rate: &RateLimit) -> String {
    let unit = match rate.per_ms {
        1_000 => "s".to_owned(),
        60_000 => "m".to_owned(),
        3_600_000 => "h".to_owned(),
        millis => format!("{millis}ms"),
    };
    format!("{}/{unit} (burst {})", rate.count, rate.burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_bursts_to_what_a_second_gives() {
        assert_eq!(limit("10/s"), Ok(RateLimit { count: 10, per_ms: 1_000, burst: 10 }));
        assert_eq!(limit("6000/m"), Ok(RateLimit { count: 6_000, per_ms: 60_000, burst: 100 }));
        assert_eq!(limit("5/h"), Ok(RateLimit { count: 5, per_ms: 3_600_000, burst: 1 }));
        assert!(limit("0/s").is_err());
    }
}
