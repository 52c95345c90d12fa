//! What is measured, against what, and with which goal.

use crate::{delayed, floor, latency, limits, load, ours, raw, streams, topics};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, time::Duration};

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contestant {
    /// The bare log.
    Raw,
    /// The embedded engine.
    Onward,
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Onward => "onward",
        })
    }
}

/// What one measurement gave; what does not apply is zero.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Measured {
    /// Items per second.
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// Processor time per item, over all cores.
    pub cpu_us: f64,
    /// A single figure, in the unit that the benchmark names.
    pub value: f64,
}

impl From<load::Figures> for Measured {
    fn from(f: load::Figures) -> Self {
        Self {
            per_second: f.per_second,
            p50_us: f.p50_us,
            p99_us: f.p99_us,
            p999_us: f.p999_us,
            cpu_us: f.cpu_us,
            value: 0.0,
        }
    }
}

/// What must hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Ours is at least this share of the bare log's rate.
    ShareOfRaw(f64),
    /// The figure is at most this.
    AtMost(f64, &'static str),
    /// The figure is at least this.
    AtLeast(f64, &'static str),
    /// The p50 is at most so many times that of one sync at the same pace.
    Syncs(f64),
}

/// How long and how large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub seconds: f64,
    pub backlog: u64,
}

/// One benchmark.
#[derive(Debug)]
pub(crate) struct Bench {
    pub name: &'static str,
    pub what: &'static str,
    pub contestants: &'static [Contestant],
    pub goal: Goal,
    /// Long ones run one round.
    pub once: bool,
}

const BOTH: &[Contestant] = &[Contestant::Raw, Contestant::Onward];
const OURS: &[Contestant] = &[Contestant::Onward];

pub(crate) const BENCHES: &[Bench] = &[
    Bench {
        name: "enqueue-64",
        what: "durable enqueue, 64 producers, 1 KiB",
        contestants: BOTH,
        goal: Goal::ShareOfRaw(0.7),
        once: false,
    },
    Bench {
        name: "enqueue-1",
        what: "durable enqueue, 1 producer, 1 KiB",
        contestants: BOTH,
        goal: Goal::ShareOfRaw(0.7),
        once: false,
    },
    Bench {
        name: "enqueue-groups",
        what: "durable enqueue, 64 producers, groups of 100, 1 KiB",
        contestants: BOTH,
        goal: Goal::ShareOfRaw(0.7),
        once: false,
    },
    Bench {
        name: "cycle-64",
        what: "enqueue, lease, ack, 64 workers, 1 KiB",
        contestants: BOTH,
        goal: Goal::ShareOfRaw(0.5),
        once: false,
    },
    Bench {
        name: "cycle-backlog",
        what: "the same with a backlog waiting, as a share of without",
        contestants: OURS,
        goal: Goal::AtMost(1.25, "times slower than without"),
        once: true,
    },
    Bench {
        name: "limits",
        what: "the cycle with every limit and a fairness key, as a share of the same without limits",
        contestants: OURS,
        goal: Goal::AtMost(1.25, "times slower than without"),
        once: false,
    },
    Bench {
        name: "memory",
        what: "memory per waiting message, dedup not counted",
        contestants: OURS,
        goal: Goal::AtMost(64.0, "bytes"),
        once: true,
    },
    Bench {
        name: "restart",
        what: "killed with a backlog waiting, until the first message",
        contestants: OURS,
        goal: Goal::AtMost(2_000.0, "ms"),
        once: true,
    },
    Bench {
        name: "disk",
        what: "disk left after a backlog was drained",
        contestants: OURS,
        goal: Goal::AtMost(1_024.0, "MiB"),
        once: true,
    },
    Bench {
        name: "latency",
        what: "enqueue to handler start at 1,000/s; raw: one sync of 4 KiB at the same pace",
        contestants: BOTH,
        goal: Goal::Syncs(1.5),
        once: false,
    },
    Bench {
        name: "idle",
        what: "processor time of an idle engine and worker",
        contestants: OURS,
        goal: Goal::AtMost(1.0, "% of one core"),
        once: true,
    },
    Bench {
        name: "fan-out",
        what: "published, then acknowledged by 4 subscriptions, as a share of filling 4 queues, 1 KiB",
        contestants: OURS,
        goal: Goal::AtLeast(2.0, "times the rate of filling 4 queues"),
        once: false,
    },
    Bench {
        name: "subscriptions-1000",
        what: "durable publish with 1,000 subscriptions, as a share of without, 1 KiB",
        contestants: OURS,
        goal: Goal::AtMost(1.2, "times slower than without"),
        once: false,
    },
    Bench {
        name: "delayed-1m",
        what: "messages of 1 ms delay, 64 workers, beside 1,000,000 that are not due",
        contestants: OURS,
        goal: Goal::AtMost(1.2, "times slower than without"),
        once: true,
    },
    Bench {
        name: "append",
        what: "append with an expected revision, 100,000 streams, 64 writers, 256 B",
        contestants: BOTH,
        goal: Goal::ShareOfRaw(0.5),
        once: false,
    },
    Bench {
        name: "replay",
        what: "every event read from the start, in the page cache, 256 B",
        contestants: OURS,
        goal: Goal::AtLeast(5.0, "million a second"),
        once: false,
    },
    Bench {
        name: "replay-cold",
        what: "every event read once from the start, from the disk, 256 B",
        contestants: BOTH,
        goal: Goal::ShareOfRaw(0.5),
        once: false,
    },
];

/// The names, for people.
pub(crate) fn names() -> String {
    BENCHES.iter().map(|b| b.name).collect::<Vec<_>>().join(", ")
}

/// Runs one measurement in this process.
pub(crate) fn measure(bench: &str, contestant: &str, dir: &Path, sizes: &Sizes) -> Result<Measured> {
    std::fs::create_dir_all(dir)?;
    let span = Duration::from_secs_f64(sizes.seconds);
    let runtime = load::runtime()?;
    let measured = match (bench, contestant) {
        ("enqueue-64", "raw") => runtime.block_on(raw::enqueue::load(dir, 64, 1, span))?.into(),
        ("enqueue-1", "raw") => runtime.block_on(raw::enqueue::load(dir, 1, 1, span))?.into(),
        ("enqueue-groups", "raw") => runtime.block_on(raw::enqueue::load(dir, 64, 100, span))?.into(),
        ("cycle-64", "raw") => runtime.block_on(raw::cycle::load(dir, 64, span))?.into(),
        ("append", "raw") => runtime.block_on(raw::append::load(dir, 64, span))?.into(),
        ("replay-cold", "raw") => streams::replay_raw(dir)?,
        ("enqueue-64", _) => runtime.block_on(ours::enqueue(dir, 64, 1, span))?.into(),
        ("enqueue-1", _) => runtime.block_on(ours::enqueue(dir, 1, 1, span))?.into(),
        ("enqueue-groups", _) => runtime.block_on(ours::enqueue(dir, 64, 100, span))?.into(),
        ("cycle-64", _) => runtime.block_on(ours::cycle(dir, 64, span))?.into(),
        ("cycle-backlog", _) => runtime.block_on(ours::cycle_backlog(dir, sizes.backlog, span))?,
        ("limits", _) => runtime.block_on(limits::cost(dir, span))?,
        ("memory", _) => runtime.block_on(ours::memory(dir, sizes.backlog))?,
        ("restart", _) => ours::restart(dir, sizes.backlog)?,
        ("disk", _) => runtime.block_on(ours::disk(dir, sizes.backlog))?,
        ("latency", "raw") => floor::paced(&dir.join("paced"), span)?.into(),
        ("latency", _) => runtime.block_on(latency::measure(dir, span))?.into(),
        ("idle", _) => runtime.block_on(ours::idle(dir, span))?,
        ("fan-out", _) => runtime.block_on(topics::fan_out(dir, span))?,
        ("subscriptions-1000", _) => runtime.block_on(topics::subscriptions(dir, span))?,
        ("delayed-1m", _) => runtime.block_on(delayed::cycle(dir, span))?,
        ("append", _) => runtime.block_on(streams::append(dir, 64, span))?.into(),
        ("replay", _) => runtime.block_on(streams::replay_warm(dir, span))?,
        ("replay-cold", _) => runtime.block_on(streams::replay_cold(dir))?,
        _ => bail!("no benchmark {bench}; there are: {}", names()),
    };
    Ok(measured)
}
