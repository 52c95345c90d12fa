//! What an operation answers once its declared durability holds.

use crate::{Durability, MessageId, MessageState, Position, Timestamp};
use serde::{Deserialize, Serialize};

/// The answer to one [`crate::Op`]. It exists only once the declared durability holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// To enqueue and publish.
    Accepted(Accepted),
    /// To settle.
    Settled(SettledAs),
    /// To cancel.
    Cancelled(CancelOutcome),
    /// To append.
    Appended(Appended),
    /// To put record: its new revision.
    Recorded {
        /// The record's revision, rising with each write of this key.
        revision: u64,
    },
    /// To edit dead letter: the new edition.
    Edited {
        /// The edition that is now worked on when redriven.
        edition: u32,
    },
    /// To redrive and purge.
    Bulk(BulkReport),
    /// To end process: how many leases ended.
    ProcessEnded {
        /// How many.
        leases: u64,
    },
    /// To seek.
    Sought(Sought),
    /// To everything that has nothing more to say.
    Done,
}

/// Where a subscription was moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// The position of the message that it goes on with; `None` when that is the next one to be published.
    pub next: Option<Position>,
    /// Messages that come again or for the first time, before the filter looks at them.
    pub messages: u64,
    /// The place that was asked for is not retained any more: it goes on with the oldest that is.
    pub clipped: bool,
    /// The subscription's replay epoch now.
    pub replay: u32,
}

/// A message was accepted: durable, not done. It has no result on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The message's id; of a duplicate, the first one's.
    pub id: MessageId,
    /// It was accepted before; nothing was added.
    pub duplicate: bool,
    /// The queue or topic did not exist and was declared with defaults.
    pub declared: bool,
    /// Its place, where the engine has one.
    pub position: Option<Position>,
    /// The durability that holds now.
    pub durability: Durability,
}

/// What a settlement did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledAs {
    /// The message's state now: `Done`, `Waiting`, `Delayed`, `Dead`.
    pub state: MessageState,
    /// When it comes again.
    pub due: Option<Timestamp>,
    /// The same settlement was made before; nothing changed.
    pub already: bool,
}

/// What a cancellation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// It was waiting and is gone.
    Cancelled,
    /// It is being worked on; its holder is told at its next extension and the message is gone when the lease ends.
    Requested,
    /// It is finished already.
    AlreadyFinished,
}

/// Events were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appended {
    /// Revision of the first of them.
    pub first_revision: u64,
    /// Revision of the last of them.
    pub last_revision: u64,
    /// Position of the last of them.
    pub position: Position,
    /// They were appended before; nothing was added.
    pub duplicate: bool,
}

/// How far a bulk operation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BulkReport {
    /// How many matched.
    pub matched: u64,
    /// How many were changed so far; 0 in a dry run.
    pub done: u64,
    /// Nothing is left to do.
    pub finished: bool,
}
