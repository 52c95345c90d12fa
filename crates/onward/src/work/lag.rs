//! Lag as a trend: pure, from samples of an inlet's numbers to rates, time to drain and how many workers it takes.

use onward_core::{Inlet, Stats};
use std::{collections::VecDeque, time::Duration};

/// Samples that a trend is made of.
pub(crate) const SAMPLES: usize = 12;
/// Below this depth growth is no reason to worry.
const GROWTH_DEPTH_MIN: u64 = 100;

/// How one inlet stands and where it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lag {
    /// Which.
    pub inlet: Inlet,
    /// Messages that wait and are due.
    pub depth: u64,
    /// How long the oldest of them waits.
    pub age: Duration,
    /// Messages that are being worked on, by whomever.
    pub in_flight: u64,
    /// Accepted, per second.
    pub arrives: f64,
    /// Ended in whatever way, per second.
    pub leaves: f64,
    /// Failed attempts of all hand-outs; 0 to 1.
    pub failure_rate: f64,
    /// Growth of the depth, per second; negative while it shrinks.
    pub growth: f64,
    /// How long until nothing waits, at this pace; `None` while it does not shrink.
    pub drains_in: Option<Duration>,
}

/// What an autoscaler is to aim at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Never fewer workers.
    pub workers_min: u32,
    /// Never more workers.
    pub workers_max: u32,
    /// What waits is to be done within this time.
    pub drain_within: Duration,
}

/// One look at an inlet.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    at: Duration,
    accepted: u64,
    ended: u64,
    depth: u64,
    deliveries: u64,
    failures: u64,
}

/// The latest samples of one inlet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trend {
    samples: VecDeque<Sample>,
}

impl Trend {
    pub(crate) fn push(&mut self, at: Duration, stats: &Stats) {
        let books = &stats.books;
        let ended = books.done + books.dead + books.expired + books.cancelled + books.purged + books.shed;
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            at,
            accepted: books.accepted,
            ended,
            depth: books.waiting,
            deliveries: stats.deliveries,
            failures: stats.failures,
        });
    }

    /// What the samples say; `age` is that of the oldest waiting message.
    pub(crate) fn lag(&self, stats: &Stats, age: Duration) -> Lag {
        let per_second = |of: fn(&Sample) -> u64| self.per_second(of);
        let growth = per_second(|s| s.depth);
        let handed = self.rise(|s| s.deliveries);
        let failure_rate = if handed > 0.0 { (self.rise(|s| s.failures) / handed).min(1.0) } else { 0.0 };
        let depth = stats.books.waiting;
        let drains = depth == 0 || growth < 0.0;
        Lag {
            inlet: stats.inlet.clone(),
            depth,
            age,
            in_flight: stats.books.leased,
            arrives: per_second(|s| s.accepted),
            leaves: per_second(|s| s.ended),
            failure_rate,
            growth,
            drains_in: drains.then(|| seconds(if depth == 0 { 0.0 } else { depth as f64 / -growth })),
        }
    }

    /// Whether the depth grew from sample to sample, by a tenth at least over a full window.
    pub(crate) fn grows(&self) -> bool {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else { return false };
        let rises = self.samples.iter().zip(self.samples.iter().skip(1)).all(|(a, b)| b.depth >= a.depth);
        let enough = last.depth >= GROWTH_DEPTH_MIN && last.depth * 10 >= first.depth * 11;
        self.samples.len() == SAMPLES && rises && enough
    }

    /// For how long nothing was handed out although something waited all the while.
    pub(crate) fn idle(&self) -> Duration {
        let Some(last) = self.samples.back() else { return Duration::ZERO };
        let same = |s: &&Sample| s.deliveries == last.deliveries && s.depth > 0;
        let since = self.samples.iter().rev().take_while(same).last();
        since.map_or(Duration::ZERO, |since| last.at.saturating_sub(since.at))
    }

    fn span(&self) -> f64 {
        let span = self
            .samples
            .back()
            .zip(self.samples.front())
            .map(|(last, first)| last.at.saturating_sub(first.at));
        span.unwrap_or_default().as_secs_f64()
    }

    fn rise(&self, of: fn(&Sample) -> u64) -> f64 {
        let ends = self.samples.back().zip(self.samples.front());
        ends.map_or(0.0, |(last, first)| of(last) as f64 - of(first) as f64)
    }

    fn per_second(&self, of: fn(&Sample) -> u64) -> f64 {
        if self.span() > 0.0 { self.rise(of) / self.span() } else { 0.0 }
    }
}

/// How many workers there should be, with `workers` of them now: the signal for an autoscaler, within its bounds.
///
/// It counts on each worker going on at the pace that it has now. Without any pace yet one more is tried at a time
/// while something waits.
pub fn workers_wanted(lag: &Lag, workers: u32, scale: &Scale) -> u32 {
    let pace = lag.leaves / f64::from(workers.max(1));
    let within = scale.drain_within.as_secs_f64().max(1.0);
    let wanted = if pace > 0.0 {
        ((lag.arrives + lag.depth as f64 / within) / pace).ceil().min(f64::from(u32::MAX)) as u32
    } else {
        workers + u32::from(lag.depth > 0)
    };
    wanted.clamp(scale.workers_min, scale.workers_max.max(scale.workers_min))
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::Books;
    use onward_proves::proves;

    fn stats(accepted: u64, done: u64, deliveries: u64, failures: u64) -> Stats {
        let books = Books { accepted, done, waiting: accepted - done, ..Books::default() };
        Stats {
            inlet: "work".parse().expect("a right name"),
            books,
            approximate: false,
            blocked: 0,
            bytes: 0,
            oldest_waiting: None,
            next_due: None,
            deliveries,
            failures,
            lost_at_most_once: 0,
            duplicates: 0,
            dedup_entries: 0,
            dedup_window_ms: 0,
            paused: false,
            stopped_dead_full: false,
            leases: Vec::new(),
            lag: None,
        }
    }

    /// Every five seconds so many arrive and so many are done, from `depth` on.
    fn after(samples: u64, depth: u64, arrive: u64, done: u64) -> (Trend, Lag) {
        let mut trend = Trend::default();
        let mut last = stats(depth, 0, 0, 0);
        for n in 0..samples {
            last = stats(depth + n * arrive, n * done, n * done, n * done / 2);
            trend.push(Duration::from_secs(5 * n), &last);
        }
        let lag = trend.lag(&last, Duration::from_secs(9));
        (trend, lag)
    }

    #[proves("I1", "I2")]
    #[test]
    fn rates_growth_and_the_time_to_drain_come_from_the_samples() {
        let (trend, lag) = after(12, 1_000, 50, 100);
        assert_eq!((lag.depth, lag.arrives, lag.leaves, lag.growth), (450, 10.0, 20.0, -10.0));
        assert_eq!((lag.drains_in, lag.failure_rate), (Some(Duration::from_secs(45)), 0.5));
        assert!(!trend.grows());
    }

    #[proves("I2")]
    #[test]
    fn lag_is_a_trend_and_not_a_spike() {
        let (trend, lag) = after(12, 100, 200, 100);
        assert!(trend.grows());
        assert_eq!((lag.growth, lag.drains_in), (20.0, None));
        assert!(!after(11, 100, 200, 100).0.grows(), "not before the window is full");
        assert!(!after(12, 0, 6, 5).0.grows(), "few are no reason to worry");
        let (mut trend, _) = after(12, 100, 200, 100);
        trend.push(Duration::from_secs(60), &stats(2_000, 1_500, 0, 0));
        assert!(!trend.grows(), "it fell meanwhile");
    }

    #[proves("T11")]
    #[test]
    fn nothing_handed_out_while_something_waits_is_told_from_an_empty_queue() {
        assert_eq!(after(12, 5, 0, 0).0.idle(), Duration::from_secs(55));
        assert_eq!(after(12, 0, 0, 0).0.idle(), Duration::ZERO);
        assert_eq!(after(12, 1_000, 0, 1).0.idle(), Duration::ZERO);
    }

    #[proves("I2")]
    #[test]
    fn the_signal_for_an_autoscaler_has_bounds() {
        let scale = Scale { workers_min: 1, workers_max: 10, drain_within: Duration::from_secs(60) };
        let wanted = |arrives, leaves, depth, workers| {
            let lag = Lag { arrives, leaves, depth, ..after(2, 0, 0, 0).1 };
            workers_wanted(&lag, workers, &scale)
        };
        assert_eq!(wanted(20.0, 20.0, 0, 2), 2);
        assert_eq!(wanted(20.0, 20.0, 1_200, 2), 4, "as much again, within a minute");
        assert_eq!(wanted(1_000.0, 10.0, 0, 2), 10);
        assert_eq!(wanted(0.0, 10.0, 0, 4), 1);
        assert_eq!((wanted(0.0, 0.0, 5, 2), wanted(0.0, 0.0, 0, 0)), (3, 1));
    }
}
