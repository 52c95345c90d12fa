//! What is written down of subscriptions, streams and schedules.

use std::time::Duration;

use onward_core::{Appended, Expected, Inlet, MessageId, Name, Position, ReadFrom, Timestamp};

/// A subscription was moved to another place of its topic.
#[derive(Clone, Debug)]
pub struct Sought {
    /// Which.
    pub inlet: Inlet,
    /// Everything from there on is processed again; otherwise only what was never processed.
    pub again: bool,
    /// What was answered.
    pub answer: Option<onward_core::Sought>,
}

/// An event as it was given to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventMark {
    /// Its id.
    pub id: MessageId,
    /// The [`super::content_mark`] of it.
    pub content: u64,
    /// Its tags.
    pub tags: Vec<String>,
}

/// Events that were given to be appended, all or none.
#[derive(Clone, Debug)]
pub struct Addition {
    /// The stream.
    pub stream: String,
    /// The events, in order.
    pub events: Vec<EventMark>,
    /// What its revision had to be.
    pub expected: Expected,
    /// No event with this tag may stand behind this place.
    pub absent: Option<(String, Option<Position>)>,
    /// What was answered.
    pub answer: Option<Appended>,
}

/// An event as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEvent {
    /// Its stream.
    pub stream: String,
    /// Its number in it.
    pub revision: u64,
    /// Its place.
    pub position: Position,
    /// Its id.
    pub id: MessageId,
    /// The [`super::content_mark`] of it.
    pub content: u64,
}

/// One slice of a reading of events.
#[derive(Clone, Debug)]
pub struct EventsRead {
    /// Of this stream; `None` for all.
    pub stream: Option<String>,
    /// From where.
    pub from: ReadFrom,
    /// Newest first.
    pub backward: bool,
    /// The engine says that it goes on from here.
    pub next: Option<ReadFrom>,
    /// What was there.
    pub events: Vec<SeenEvent>,
}

/// A schedule: a message at equal intervals.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its name.
    pub name: Name,
    /// Where its messages go.
    pub inlet: Inlet,
    /// Between two ticks.
    pub every: Duration,
    /// The nominal time of the first tick.
    pub first: Timestamp,
    /// The first tick, in the test's own time.
    pub first_at: Duration,
    /// The [`super::content_mark`] of each message.
    pub content: u64,
    /// Each tick gives a message, however late: none is left out.
    pub complete: bool,
}
