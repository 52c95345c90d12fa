//! Topics: what they keep, which messages a subscription takes, and where it begins.

use crate::{Error, InletConfig, Name, PAYLOAD_BYTES_CEILING, Position, Result, Timestamp};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// Rules and bounds of a topic. With neither retention given, a message is kept until every subscription has reached it;
/// without any subscription that is at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopicConfig {
    /// Keep messages so long, in milliseconds, whether subscriptions have reached them or not.
    pub retention_ms: Option<u64>,
    /// Keep at most so many bytes, whether subscriptions have reached them or not.
    pub retention_bytes: Option<u64>,
    /// How long a published id is remembered, in milliseconds; 0 deduplicates nothing.
    pub dedup_window_ms: u64,
    /// Most published ids remembered; beyond it the oldest are forgotten early.
    pub dedup_entries_max: u64,
    /// Largest payload with headers, in bytes.
    pub payload_bytes_max: u64,
    /// Most messages kept; at this bound publishing is `Full`, since a subscription without end behind it fills the disk.
    pub depth_max: u64,
    /// Most bytes kept; at this bound publishing is `Full`.
    pub bytes_max: u64,
}

impl Default for TopicConfig {
    fn default() -> Self {
        let inlet = InletConfig::default();
        Self {
            retention_ms: None,
            retention_bytes: None,
            dedup_window_ms: inlet.dedup_window_ms,
            dedup_entries_max: inlet.dedup_entries_max,
            payload_bytes_max: inlet.payload_bytes_max,
            depth_max: inlet.depth_max,
            bytes_max: inlet.bytes_max,
        }
    }
}

impl TopicConfig {
    /// Checks that the numbers make sense together.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self) -> Result<()> {
        let must = |holds: bool, field: &str, mend: &str| match holds {
            true => Ok(()),
            false => Err(Error::invalid("is out of range").at(format!("`{field}`")).mend(mend)),
        };
        must(self.retention_ms != Some(0), "retention_ms", "use at least 1, or leave it out")?;
        must(self.retention_bytes != Some(0), "retention_bytes", "use at least 1, or leave it out")?;
        must(self.depth_max >= 1, "depth_max", "use at least 1")?;
        must(self.bytes_max >= 1, "bytes_max", "use at least 1")?;
        let payload = (1..=PAYLOAD_BYTES_CEILING as u64).contains(&self.payload_bytes_max);
        must(payload, "payload_bytes_max", "use 1 to 16777216; larger payloads go by claim check")
    }
}

/// Which messages of a topic a subscription takes; every given part must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Any of these types; `order.*` matches by prefix. Empty: all.
    pub types: Vec<Arc<str>>,
    /// Any of these sources. Empty: all.
    pub sources: Vec<Arc<str>>,
    /// Each of these headers with exactly this value.
    pub headers: BTreeMap<String, String>,
}

impl Filter {
    /// Most types, sources and headers each.
    pub const PARTS_MAX: usize = 64;

    /// Checks sizes, so that looking at a message stays quick.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self) -> Result<()> {
        let parts =
            [("types", self.types.len()), ("sources", self.sources.len()), ("headers", self.headers.len())];
        if let Some((field, count)) = parts.into_iter().find(|(_, count)| *count > Self::PARTS_MAX) {
            return Err(Error::invalid(format!("names {count}, more than {}", Self::PARTS_MAX))
                .at(format!("`filter.{field}`"))
                .mend("use a prefix as in `order.*`, or take more and leave the rest to the handler"));
        }
        let empty = |text: &Arc<str>| text.is_empty() || &**text == "*";
        if self.types.iter().chain(&self.sources).any(empty) {
            return Err(Error::invalid("names an empty text or `*` alone")
                .at("`filter`")
                .mend("leave the part out to take all"));
        }
        Ok(())
    }

    /// Whether it takes a message of this type and source, as far as these tell.
    pub fn takes(&self, kind: &str, source: &str) -> bool {
        let of_type = |wanted: &Arc<str>| match wanted.strip_suffix('*') {
            Some(prefix) => kind.starts_with(prefix),
            None => **wanted == *kind,
        };
        (self.types.is_empty() || self.types.iter().any(of_type))
            && (self.sources.is_empty() || self.sources.iter().any(|wanted| **wanted == *source))
    }

    /// Whether it takes a message with these headers, as far as these tell.
    pub fn takes_headers(&self, headers: &BTreeMap<String, String>) -> bool {
        self.headers.iter().all(|(name, value)| headers.get(name) == Some(value))
    }

    /// Whether it takes everything.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a new subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFrom {
    /// With the next message.
    Now,
    /// With the oldest retained one.
    Beginning,
    /// With the first one at or after this time.
    Time(Timestamp),
    /// With the first one at or after this position.
    Position(Position),
}

/// What a topic keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicKeeps {
    /// Which topic.
    pub topic: Name,
    /// Published so far, repeats not counted.
    pub published: u64,
    /// Messages kept.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The position of the oldest one kept.
    pub oldest: Option<Position>,
    /// When it was published.
    pub oldest_at: Option<Timestamp>,
    /// The position of the newest one kept.
    pub newest: Option<Position>,
    /// How many subscriptions it has.
    pub subscriptions: u64,
}
