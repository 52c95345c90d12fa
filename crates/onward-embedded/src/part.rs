//! What facts are made of: which message, how a lease ended, why something was removed.

use onward_core::{BulkId, BulkReport, Cause, Payload, Timestamp};
use serde::{Deserialize, Serialize};

/// An inlet's number within one store: given at its declaration, never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InletId(pub u32);

/// A topic's number within one store: given at its declaration, never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicId(pub u32);
/// A stream's number within one store: given at its first event, never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StreamId(pub u32);

/// Which message of an inlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageRef {
    /// Its sequence: the position of the fact that accepted it.
    pub seq: u64,
    /// The keyed hash of its id, by which it is indexed.
    pub id_hash: u64,
}

/// One message of one inlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct At {
    /// The inlet.
    pub inlet: InletId,
    /// The message.
    pub message: MessageRef,
}

/// One message handed out by a [`Fact::Leased`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Which.
    pub at: At,
    /// The attempt that begins, from 1.
    pub attempt: u32,
    /// Part of the token, so that it can't be guessed.
    pub nonce: u32,
}

/// The keyed hashes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Of its id.
    pub id: u64,
    /// Of what deduplicates it: its dedup key, or source and id.
    pub dedup: u64,
    /// Of what must be the same in a repeat: type, version and data.
    pub fingerprint: u64,
}

impl Marks {
    /// The half of the fingerprint that is kept of a message, and compared with a repeat's.
    pub(crate) fn short_fingerprint(fingerprint: u64) -> u64 {
        fingerprint & u64::from(u32::MAX)
    }
}

/// What the holder of a lease said at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Said {
    /// Ack.
    Ack,
    /// Retry.
    Retry,
    /// Release.
    Release,
    /// Reject.
    Reject,
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Done.
    Acked {
        /// The result, where the inlet keeps results.
        result: Option<Payload>,
    },
    /// Failed; comes again at `due`.
    Retried {
        /// When.
        due: Timestamp,
        /// Why.
        cause: Cause,
    },
    /// Put back; the attempt does not count.
    Released {
        /// When it comes again, where that is later.
        due: Option<Timestamp>,
    },
    /// Failed for good: a dead letter.
    Died {
        /// Why.
        cause: Cause,
    },
    /// Its process died with others in flight: the attempt does not count, it is handed out alone.
    Suspected,
    /// Its process died alone with it: counts as attempt and as crash, is handed out alone at `due`.
    Crashed {
        /// When.
        due: Timestamp,
        /// What is known.
        cause: Cause,
    },
    /// A cancellation was asked for while it was leased: it is gone.
    Cancelled,
    /// Of an at-most-once inlet, where the message was gone at hand-out: a failure, counted.
    Lost {
        /// Why.
        cause: Cause,
        /// Keep a copy as a dead letter.
        copy: bool,
    },
}

/// Why messages were removed without an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Removal {
    /// Their time ran out.
    Expired,
    /// Somebody cancelled them.
    Cancelled,
    /// Somebody purged them.
    Purged,
    /// They made room for higher priorities.
    Shed,
    /// Dead letters past their retention; counted as purged.
    Retired,
    /// Finished ones past the retention of their results; not counted again.
    Forgotten,
}

/// How far a bulk operation has come, remembered so that a repeat of its id answers the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkMark {
    /// Its id.
    pub id: BulkId,
    /// The report so far.
    pub report: BulkReport,
}
