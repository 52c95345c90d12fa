//! What exists: queues, topics, subscriptions, and every rule and bound that one may set for them.

use crate::{
    Error, Filter, Inlet, Name, PAYLOAD_BYTES_CEILING, PAYLOAD_BYTES_DEFAULT, Result, RetryPolicy,
    ScheduleView, StartFrom, TopicConfig, TopicKeeps,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The rules and bounds of one inlet (a queue or a subscription). The default is safe for work that matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InletConfig {
    /// At least once, or at most once.
    pub guarantee: DeliveryGuarantee,
    /// How long a lease lasts unless the request says otherwise, in milliseconds.
    pub lease_ms: u64,
    /// Longest time one attempt may be extended to, in milliseconds; `None` is unbounded.
    pub lease_total_max_ms: Option<u64>,
    /// Attempts and waits after failures.
    pub retry: RetryPolicy,
    /// Deaths of a process, alone with the message, until it is a dead letter with the cause `crashed`.
    pub crashes_max: u32,
    /// Order by key, and what a stuck head does.
    pub order: OrderPolicy,
    /// After waiting so long a message counts as one priority higher, in milliseconds; so the lowest runs too.
    pub ageing_ms: u64,
    /// How long a finished id is remembered, in milliseconds; 0 deduplicates only against unfinished messages.
    pub dedup_window_ms: u64,
    /// Most finished ids remembered; beyond it the oldest are forgotten early, which `Stats` shows.
    pub dedup_entries_max: u64,
    /// Largest payload with headers, in bytes.
    pub payload_bytes_max: u64,
    /// Most unfinished messages, dead letters not counted.
    pub depth_max: u64,
    /// Most bytes of unfinished messages.
    pub bytes_max: u64,
    /// What happens to producers when a bound is reached.
    pub overflow: Overflow,
    /// Most dead letters; at this bound the inlet stops handing out, loudly, and drops nothing.
    pub dead_max: u64,
    /// How long dead letters are kept, in milliseconds; `None` for ever.
    pub dead_retention_ms: Option<u64>,
    /// Failed attempts kept with a message, the first and the latest ones.
    pub causes_max: u32,
    /// Most live leases over all workers of all processes. A slot is a live lease and nothing else: it is free when the
    /// lease ends, however it ends.
    pub concurrency_max: Option<u32>,
    /// Most live leases of one fairness key, in the same way; messages without one are not held by it.
    pub concurrency_per_key_max: Option<u32>,
    /// Most hand-outs per time, over all workers of all processes. An attempt counts when it is handed out; what it
    /// used is not given back by a release.
    pub rate: Option<RateLimit>,
    /// Most hand-outs per time of one fairness key, in the same way; messages without one are not held by it.
    ///
    /// While [`crate::RATE_KEYS_MAX`] keys are on their way back to a full burst, a further key waits for the first of them.
    pub rate_per_key: Option<RateLimit>,
    /// How long results of finished messages are kept, in milliseconds; 0 keeps none.
    pub result_retention_ms: u64,
}

impl Default for InletConfig {
    fn default() -> Self {
        Self {
            guarantee: DeliveryGuarantee::AtLeastOnce,
            lease_ms: 30_000,
            lease_total_max_ms: None,
            retry: RetryPolicy::default(),
            crashes_max: 3,
            order: OrderPolicy::Unordered,
            ageing_ms: 60_000,
            dedup_window_ms: 10 * 60_000,
            dedup_entries_max: 1_000_000,
            payload_bytes_max: PAYLOAD_BYTES_DEFAULT as u64,
            depth_max: 100_000_000,
            bytes_max: 64 << 30,
            overflow: Overflow::Refuse,
            dead_max: 100_000,
            dead_retention_ms: None,
            causes_max: 20,
            concurrency_max: None,
            concurrency_per_key_max: None,
            rate: None,
            rate_per_key: None,
            result_retention_ms: 0,
        }
    }
}

impl InletConfig {
    /// Checks that the numbers make sense together.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self) -> Result<()> {
        let must = |holds: bool, field: &str, mend: &str| match holds {
            true => Ok(()),
            false => Err(Error::invalid("is out of range").at(format!("`{field}`")).mend(mend)),
        };
        must((10..=43_200_000).contains(&self.lease_ms), "lease_ms", "use 10 to 43200000 (12 hours)")?;
        must(self.retry.attempts_max >= 1, "retry.attempts_max", "use at least 1")?;
        must(self.crashes_max >= 1, "crashes_max", "use at least 1")?;
        must(self.ageing_ms >= 1, "ageing_ms", "use at least 1")?;
        must(self.causes_max >= 1 && self.causes_max <= 1_000, "causes_max", "use 1 to 1000")?;
        must(self.depth_max >= 1, "depth_max", "use at least 1")?;
        must(self.dead_max >= 1, "dead_max", "use at least 1: dead letters can't be switched off")?;
        must(self.concurrency_max != Some(0), "concurrency_max", "use at least 1, or pause the queue")?;
        let per_key = self.concurrency_per_key_max != Some(0);
        must(per_key, "concurrency_per_key_max", "use at least 1, or pause the queue")?;
        let payload = (1..=PAYLOAD_BYTES_CEILING as u64).contains(&self.payload_bytes_max);
        must(payload, "payload_bytes_max", "use 1 to 16777216; larger payloads go by claim check")?;
        for (field, rate) in [("rate", &self.rate), ("rate_per_key", &self.rate_per_key)] {
            must(
                rate.as_ref().is_none_or(|r| r.count >= 1 && r.per_ms >= 1 && r.burst >= 1),
                field,
                "use at least 1",
            )?;
        }
        Ok(())
    }
}

/// How often a message may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryGuarantee {
    /// Until it is settled; the default.
    AtLeastOnce,
    /// Acknowledged before the handler sees it: a failure is counted, never retried.
    AtMostOnce,
}

/// The order that an inlet keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderPolicy {
    /// None is promised.
    Unordered,
    /// Messages of one `order_key` in arrival order, one at a time; those without a key are unordered.
    ByKey {
        /// What happens to the key when its first message fails for good.
        stuck_head: StuckHead,
    },
}

/// What happens to an order key whose first message is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckHead {
    /// The key is blocked until the dead letter is redriven or purged; other keys go on.
    Wait,
    /// Later messages of the key follow it to the dead letters until they are redriven, in order.
    SetAside,
}

/// What happens to producers when an inlet's bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// `Full`; nothing is accepted.
    Refuse,
    /// The oldest message of the lowest priority makes room when the new one has a higher priority; counted as shed.
    ShedLowest,
}

/// A token bucket: `count` per `per_ms`, with bursts up to `burst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many.
    pub count: u64,
    /// Per how many milliseconds.
    pub per_ms: u64,
    /// How many at once after a pause.
    pub burst: u64,
}

/// One change of what exists.
///
/// Declaring again with the same content changes nothing. With other content it is `Conflict`, unless `update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopologyChange {
    /// A queue.
    Queue {
        /// Its name.
        name: Name,
        /// Its rules and bounds.
        config: Box<InletConfig>,
        /// Take the new content where it differs.
        update: bool,
    },
    /// A topic.
    Topic {
        /// Its name.
        name: Name,
        /// Its bounds.
        config: TopicConfig,
        /// Take the new content where it differs.
        update: bool,
    },
    /// A subscription of a topic.
    Subscription {
        /// The topic; it must exist.
        topic: Name,
        /// The subscription's name in it.
        name: Arc<str>,
        /// Its rules and bounds.
        config: Box<InletConfig>,
        /// Which messages it takes.
        filter: Filter,
        /// Where it begins when it is new.
        start: StartFrom,
        /// Take the new content where it differs.
        update: bool,
    },
    /// Removes a queue or subscription with what is in it.
    DropInlet {
        /// Which.
        inlet: Inlet,
        /// Refuse with `Conflict` unless it is empty, dead letters included.
        only_if_empty: bool,
    },
    /// Removes a topic; refused with `Conflict` while it has subscriptions.
    DropTopic {
        /// Which.
        name: Name,
    },
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TopologyDiff {
    /// It is new.
    pub created: bool,
    /// It was removed.
    pub dropped: bool,
    /// The fields that changed.
    pub changed: Vec<String>,
    /// A new subscription was to begin with what is not retained any more: it begins with the oldest that is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub clipped: bool,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What exists.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Topology {
    /// Queues and subscriptions, with their rules.
    pub inlets: Vec<(Inlet, InletConfig)>,
    /// Filters of the subscriptions that have one.
    pub filters: Vec<(Inlet, Filter)>,
    /// Topics.
    pub topics: Vec<(Name, TopicConfig)>,
    /// Inlets that hand out nothing until resumed.
    pub paused: Vec<Inlet>,
    /// Schedules, by name.
    #[serde(default)]
    pub schedules: Vec<ScheduleView>,
    /// What the topics keep, in the same order as `topics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<TopicKeeps>,
}
