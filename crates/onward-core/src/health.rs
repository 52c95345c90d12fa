//! Whether an engine is well, and hints that something happened.

use crate::{Durability, Inlet, Name, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

/// Whether an engine is well. It tells the truth about the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// It answers reads.
    pub readable: bool,
    /// It accepts writes.
    pub writable: bool,
    /// The durability that a receipt means now.
    pub durability: Durability,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What.
    pub what: String,
    /// Since when.
    pub since: Timestamp,
    /// What to do about it.
    pub mend: String,
}

/// What somebody wants hints about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interest {
    /// Work may be there.
    Inlets(Vec<Inlet>),
    /// Dead letters came or went.
    Dead(Vec<Inlet>),
    /// Events were appended.
    Stream(StreamName),
    /// A message was published.
    Topic(Name),
    /// Anything.
    Everything,
}

/// Something may have happened: look. Hints may be merged or lost; polling alone is always enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// At this inlet.
    Inlet(Inlet),
    /// In this stream.
    Stream(StreamName),
    /// Somewhere.
    Somewhere,
}
