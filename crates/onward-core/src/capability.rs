//! What an engine truly does, as data: the same data generates its tests and its page in the documentation.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// One thing that an engine does or refuses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Capability { $($(#[$doc])* $name,)* }

        impl Capability {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in documents and messages.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

capabilities! {
    /// Queues: enqueue, lease, settle, extend.
    Queues = "queues";
    /// A due time on a message and a delay on a retry.
    Delay = "delay";
    /// Priorities with ageing.
    Priority = "priority";
    /// Order by key, with both policies for a stuck head.
    OrderByKey = "order by key";
    /// Arrival order with one worker.
    Fifo = "arrival order";
    /// Deduplication by id or key, with fingerprint.
    Dedup = "deduplication";
    /// At most one unfinished message per unique key.
    Unique = "unique work";
    /// Expiry of messages.
    Expiry = "expiry";
    /// At-most-once queues.
    AtMostOnce = "at most once";
    /// Putting back without counting an attempt.
    Release = "release";
    /// Attempts counted over all processes and restarts.
    SharedAttempts = "shared attempts";
    /// Suspects of a process's death handed out alone.
    CrashSuspects = "crash suspects";
    /// Leases by type, leaving others to other workers.
    AcceptsTypes = "leasing by type";
    /// Dead letters with causes, edit, redrive.
    DeadLetters = "dead letters";
    /// Cancelling by id.
    Cancel = "cancel";
    /// Moving a due time.
    Reschedule = "reschedule";
    /// Progress kept for the next attempt.
    Progress = "progress";
    /// Pausing and resuming.
    Pause = "pause";
    /// Purging by selection.
    Purge = "purge";
    /// Finding messages without leasing them.
    Browse = "browse";
    /// Bounds on depth and bytes that refuse.
    Bounds = "bounds";
    /// Results of finished messages.
    Results = "results";
    /// Bounds on live leases over all workers, per inlet and per key.
    ConcurrencyLimit = "concurrency limit";
    /// Rates, per inlet and per key.
    RateLimit = "rate limit";
    /// Sharing out by fairness key.
    Fairness = "fairness";
    /// Topics and subscriptions.
    Topics = "topics";
    /// Filters of subscriptions.
    Filters = "filters";
    /// Moving a subscription back and forth.
    Seek = "seek";
    /// Streams of events.
    Streams = "streams";
    /// Conditions by tags.
    TagConditions = "conditions by tag";
    /// Records.
    Records = "records";
    /// Time to live of records.
    RecordTtl = "record time to live";
    /// Schedules.
    Schedules = "schedules";
    /// Hints by `watch`; without it they never come, and polling does.
    Watch = "hints";
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How an engine stands to one capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// By itself.
    Native,
    /// With the help of a store (Composite).
    WithStore,
    /// Not at all, and why; calls that need it are `Unsupported`.
    Refused(Cow<'static, str>),
}

/// What holds when a receipt is given, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// In this process's memory: its death loses it.
    Memory,
    /// In the operating system's memory: survives the process, not a power cut.
    OsBuffer,
    /// In the memory of several machines.
    QuorumMemory,
    /// On the disk of one machine, synced.
    Fsync,
    /// On the disks of several machines, synced.
    QuorumFsync,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::OsBuffer => "os-buffer",
            Self::QuorumMemory => "quorum-memory",
            Self::Fsync => "fsync",
            Self::QuorumFsync => "quorum-fsync",
        })
    }
}

/// How wide one commit may reach, all or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtomicScope {
    /// One operation.
    Operation,
    /// Several operations on one inlet.
    Inlet,
    /// Enqueues, publishes and settlements of several inlets, but no records or events.
    Messages,
    /// Everything in the store.
    Store,
}

/// The engine's own bounds, each with its unit. `None` is unbounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineLimits {
    /// Largest payload with headers, in bytes.
    pub payload_bytes_max: u64,
    /// Longest delay.
    pub delay_max: Option<Duration>,
    /// Longest time one attempt may hold its lease, extensions included.
    pub lease_total_max: Option<Duration>,
    /// Longest dedup window.
    pub dedup_window_max: Option<Duration>,
    /// Most operations of one commit.
    pub ops_max: usize,
}

/// What an engine truly does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The engine's name, as in `embedded`.
    pub engine: Cow<'static, str>,
    /// What a receipt means.
    pub durability: Durability,
    /// How wide a commit reaches.
    pub atomic: AtomicScope,
    /// The engine's bounds.
    pub limits: EngineLimits,
    support: BTreeMap<Capability, Support>,
}

impl Capabilities {
    /// An engine that does everything itself; take away with [`Capabilities::refuse`].
    pub fn all(
        engine: &'static str,
        durability: Durability,
        atomic: AtomicScope,
        limits: EngineLimits,
    ) -> Self {
        let support = Capability::ALL.iter().map(|c| (*c, Support::Native)).collect();
        Self { engine: engine.into(), durability, atomic, limits, support }
    }

    /// Says that a capability is refused, and why.
    pub fn refuse(mut self, capability: Capability, why: &'static str) -> Self {
        self.support.insert(capability, Support::Refused(why.into()));
        self
    }

    /// How the engine stands to a capability. What was never said counts as refused.
    pub fn support(&self, capability: Capability) -> Support {
        self.support.get(&capability).cloned().unwrap_or(Support::Refused("it was never declared".into()))
    }

    /// Whether the engine has it.
    pub fn has(&self, capability: Capability) -> bool {
        !matches!(self.support(capability), Support::Refused(_))
    }

    /// Refuses when the engine does not have it.
    ///
    /// # Errors
    /// `Unsupported`, with the engine's reason.
    pub fn require(&self, capability: Capability, what: &str) -> Result<()> {
        match self.support(capability) {
            Support::Refused(why) => Err(Error::unsupported(format!(
                "{what} needs {capability}, which the engine {} does not have: {why}",
                self.engine
            ))
            .mend("choose another engine, or give this one a store")),
            Support::Native | Support::WithStore => Ok(()),
        }
    }
}
