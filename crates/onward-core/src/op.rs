//! Writes as data: every operation that a commit can hold.

use crate::{
    AppendCondition, Event, Expected, Inlet, LeaseToken, Message, MessageId, Name, Outcome, Payload,
    Position, ProcessId, RecordExpect, RecordKey, Schedule, StreamName, Timestamp,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// One write. What it answers stands at [`crate::Receipt`], in the same order.
///
/// Each says which [`crate::Capability`] it requires; an engine without it refuses in `prepare`, before any effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Puts a message into a queue. Requires `Queues`; `Delay` with a due time, `OrderByKey`, `Priority`, `Unique` as used.
    ///
    /// A repeat of the dedup key within the window answers the first receipt with `duplicate`; with other content
    /// (type, version or data) it is `Conflict`.
    Enqueue {
        /// The queue; declared with defaults on first use, unless the engine is strict.
        queue: Name,
        /// The message.
        message: Box<Message>,
    },
    /// Puts a message into a topic, once for all subscriptions. Requires `Topics`.
    Publish {
        /// The topic.
        topic: Name,
        /// The message.
        message: Box<Message>,
    },
    /// Ends an attempt. Requires `Queues`.
    ///
    /// The same token with the same outcome again answers with `already`; with another outcome it is `Conflict`;
    /// a stale token is `LeaseLost`.
    Settle {
        /// The lease.
        token: LeaseToken,
        /// How it ended.
        outcome: Outcome,
    },
    /// Cancels a message by id: a waiting one is gone, a leased one is asked to stop. Requires `Cancel`.
    Cancel {
        /// Where it is.
        inlet: Inlet,
        /// Which.
        id: MessageId,
    },
    /// Moves the due time of a waiting or delayed message. Requires `Reschedule`.
    Reschedule {
        /// Where it is.
        inlet: Inlet,
        /// Which.
        id: MessageId,
        /// The new due time; a past one is now.
        due: Timestamp,
    },
    /// Keeps what a running attempt has reached, for its successor. Requires `Progress`.
    Progress {
        /// The lease.
        token: LeaseToken,
        /// What was reached.
        detail: Payload,
    },
    /// Ends every lease of a process at once. Requires `Queues`.
    ///
    /// When it died, its messages are suspects: their attempts are restored and they are handed out again one at a
    /// time, alone in a process. When it closed, its messages are released.
    EndProcess {
        /// Which.
        process: ProcessId,
        /// Whether it died.
        died: bool,
    },
    /// Adds events to a stream. Requires `Streams`.
    Append {
        /// The stream; made on first use.
        stream: StreamName,
        /// The events.
        events: Vec<Event>,
        /// What its revision must be.
        expected: Expected,
        /// What must not have happened since, by tags.
        condition: Option<AppendCondition>,
    },
    /// Writes a record. Requires `Records`.
    PutRecord {
        /// Its key.
        key: RecordKey,
        /// Its value.
        value: Bytes,
        /// What must stand there now.
        expect: RecordExpect,
        /// Forgotten after this long.
        ttl: Option<Duration>,
    },
    /// Removes a record. Requires `Records`.
    DeleteRecord {
        /// Its key.
        key: RecordKey,
        /// What must stand there now.
        expect: RecordExpect,
    },
    /// Fails the whole commit with `Conflict` unless the condition holds. Writes nothing. Requires `Records` or `Streams`.
    Guard(Guarded),
    /// Sets or removes a schedule. Requires `Schedules`.
    PutSchedule {
        /// Its name.
        name: Name,
        /// What it does; `None` removes it.
        schedule: Option<Box<Schedule>>,
    },
    /// Stops handing out; accepting goes on. Requires `Pause`.
    Pause {
        /// Which.
        inlet: Inlet,
    },
    /// Hands out again. Requires `Pause`.
    Resume {
        /// Which.
        inlet: Inlet,
    },
    /// Moves a subscription to another place of its topic. Requires `Seek`.
    Seek {
        /// Which subscription.
        inlet: Inlet,
        /// Where to.
        to: SeekTo,
        /// What happens to what was processed; there is no default.
        mode: SeekMode,
    },
    /// Changes a dead letter: a new edition; the original and the difference are kept. Requires `DeadLetters`.
    EditDead {
        /// Where it is.
        inlet: Inlet,
        /// Which.
        id: MessageId,
        /// What changes.
        edit: DeadEdit,
    },
    /// Moves dead letters back to work, keeping id, history and correlation. Requires `DeadLetters`.
    Redrive {
        /// Where they are.
        inlet: Inlet,
        /// Which.
        selection: Selection,
        /// This long between one and the next, to go easy on what failed; zero for all at once.
        spacing: Duration,
        /// A resumable operation.
        bulk: BulkId,
        /// Only count.
        dry_run: bool,
    },
    /// Removes messages; they are counted as purged. Requires `Purge`.
    Purge {
        /// Where.
        inlet: Inlet,
        /// Of which state.
        what: PurgeWhat,
        /// Which.
        selection: Selection,
        /// A resumable operation.
        bulk: BulkId,
        /// Only count.
        dry_run: bool,
    },
    /// Removes a stream's events before a revision. Requires `Streams`.
    Truncate {
        /// Which stream.
        stream: StreamName,
        /// The first revision to keep.
        before: u64,
    },
}

/// A condition without a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guarded {
    /// On a record.
    Record {
        /// Its key.
        key: RecordKey,
        /// What must stand there.
        expect: RecordExpect,
    },
    /// On a stream's revision.
    Stream {
        /// Its name.
        stream: StreamName,
        /// What its revision must be.
        expected: Expected,
    },
    /// On a lease: it must be live. What a handler writes under it is then fenced.
    Lease {
        /// The token.
        token: LeaseToken,
    },
}

/// Where a subscription is moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeekTo {
    /// The oldest retained message.
    Beginning,
    /// Behind the newest message.
    End,
    /// The first message at or after this time.
    Time(Timestamp),
    /// The first message at or after this position; one that never was is `NotFound`.
    Position(Position),
}

/// What happens to what was processed when a subscription is moved back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeekMode {
    /// A new replay epoch, part of the inbox key: handlers run again.
    Reprocess,
    /// What was processed is skipped.
    FillGaps,
}

/// What changes in a dead letter; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeadEdit {
    /// New data.
    pub data: Option<Payload>,
    /// New type.
    pub kind: Option<Arc<str>>,
    /// New schema version.
    pub version: Option<u32>,
    /// Headers to set; `None` as value removes one.
    pub headers: BTreeMap<String, Option<String>>,
}

/// Which messages a bulk operation is about; every given part must hold. The default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// These ids; empty for any.
    pub ids: Vec<MessageId>,
    /// This type.
    pub kind: Option<Arc<str>>,
    /// This correlation id.
    pub correlation_id: Option<Arc<str>>,
    /// This order key.
    pub order_key: Option<crate::Key>,
    /// The last cause has this kind.
    pub cause: Option<crate::CauseKind>,
    /// The last cause's error contains this text.
    pub error_contains: Option<Arc<str>>,
    /// Set aside or accepted before this time.
    pub before: Option<Timestamp>,
    /// At most so many, oldest first.
    pub limit: Option<u64>,
}

/// Which messages a purge removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurgeWhat {
    /// Waiting and delayed ones.
    Waiting,
    /// Dead letters.
    Dead,
}

/// The caller's id of a bulk operation: a repeat goes on where it stopped, or answers the first report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BulkId(pub u128);

impl BulkId {
    /// A new random one.
    pub fn generate(env: &dyn crate::Env) -> Self {
        Self(crate::RequestId::generate(env).0)
    }
}

impl Op {
    /// Its name in messages to people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Enqueue { .. } => "enqueue",
            Self::Publish { .. } => "publish",
            Self::Settle { .. } => "settle",
            Self::Cancel { .. } => "cancel",
            Self::Reschedule { .. } => "reschedule",
            Self::Progress { .. } => "progress",
            Self::EndProcess { .. } => "end process",
            Self::Append { .. } => "append",
            Self::PutRecord { .. } => "put record",
            Self::DeleteRecord { .. } => "delete record",
            Self::Guard(_) => "guard",
            Self::PutSchedule { .. } => "put schedule",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Seek { .. } => "seek",
            Self::EditDead { .. } => "edit dead letter",
            Self::Redrive { .. } => "redrive",
            Self::Purge { .. } => "purge",
            Self::Truncate { .. } => "truncate",
        }
    }
}
