//! Event sourcing: events, streams, conditions and reads.

use crate::{Error, KEY_BYTES_MAX, Message, Name, Position, Result, StreamName, Timestamp, id::check_text};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// A mark of an event, by which it is found and conditions are put: `course:42`.
///
/// Limits: 1 to [`KEY_BYTES_MAX`] bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(Arc<str>);

impl Tag {
    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Tag {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::try_from(text.as_str())
    }
}

impl TryFrom<&str> for Tag {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        check_text("tag", text, KEY_BYTES_MAX)?;
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> String {
        tag.0.as_ref().to_owned()
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An immutable fact, before it has a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its envelope and data.
    pub message: Message,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
}

/// An event at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// The event.
    pub event: Event,
    /// Its stream.
    pub stream: StreamName,
    /// Its number in the stream, from 0.
    pub revision: u64,
    /// Its place in the whole store.
    pub position: Position,
    /// When it was appended.
    pub recorded_at: Timestamp,
}

/// What a stream's revision must be for an append to happen; otherwise it is `Conflict`, with the revision that stands
/// there as [`crate::Error::revision`].
///
/// A stream exists from its first event on, also when all of its events were truncated: its revisions never begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// Anything.
    Any,
    /// No such stream yet: it never had an event.
    NoStream,
    /// It had an event.
    Exists,
    /// Exactly this revision.
    Revision(u64),
}

/// No event that matches `query` may stand after `after`; otherwise the append is `Conflict`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendCondition {
    /// What must not have happened.
    pub query: EventQuery,
    /// What the decision was based on; `None` for the beginning.
    pub after: Option<Position>,
}

/// Events of any of `types` (empty: all) that bear every one of `tags`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventQuery {
    /// Types.
    pub types: Vec<Arc<str>>,
    /// Tags.
    pub tags: Vec<Tag>,
}

impl EventQuery {
    /// Whether an event of this type with these tags matches.
    pub fn matches(&self, kind: &str, tags: &[Tag]) -> bool {
        let of_type = self.types.is_empty() || self.types.iter().any(|one| **one == *kind);
        of_type && self.tags.iter().all(|tag| tags.contains(tag))
    }
}

/// A read of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRead {
    /// Of what.
    pub scope: EventScope,
    /// From where.
    pub from: ReadFrom,
    /// Which way.
    pub direction: Direction,
    /// At most so many; at most [`crate::EVENTS_MAX`].
    pub limit: usize,
    /// Stop once their data together has so many bytes; the first one always fits. At most
    /// [`crate::EVENTS_BYTES_MAX`] counts.
    pub bytes_max: u64,
    /// Only what was recorded at or before this time: what stood then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
}

impl EventRead {
    /// All of a scope from its beginning, as much as one slice may hold.
    pub fn all_of(scope: EventScope) -> Self {
        Self {
            scope,
            from: ReadFrom::Start,
            direction: Direction::Forward,
            limit: crate::EVENTS_MAX,
            bytes_max: crate::EVENTS_BYTES_MAX,
            as_of: None,
        }
    }
}

/// What events are read of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventScope {
    /// One stream.
    Stream(StreamName),
    /// All streams of a category.
    Category {
        /// The namespace.
        namespace: Arc<str>,
        /// The category.
        category: Arc<str>,
    },
    /// A topic's retained messages.
    Topic(Name),
    /// Whatever matches.
    Query(EventQuery),
    /// Everything that stands in streams.
    All,
    /// The newest event of every stream whose name begins with `prefix`: what streams there are, and how far they go.
    Heads {
        /// The beginning of the names, as they are written; empty for all.
        prefix: String,
    },
}

/// Where a read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadFrom {
    /// The oldest.
    Start,
    /// The newest. Forward it is behind the newest: nothing yet, and `next` says where new ones will begin.
    End,
    /// This revision; only of a stream.
    Revision(u64),
    /// At or after this place (before or at it, when reading backward).
    Position(Position),
    /// The first that was recorded at or after this time (the last at or before it, when reading backward).
    Time(Timestamp),
}

/// Which way a read goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Oldest first.
    Forward,
    /// Newest first.
    Backward,
}

/// One slice of a read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSlice {
    /// The events.
    pub events: Vec<RecordedEvent>,
    /// Where to go on; `None` when this was all for now.
    pub next: Option<ReadFrom>,
    /// The newest event's place in the store, so that staleness can be told.
    pub head: Option<Position>,
}
