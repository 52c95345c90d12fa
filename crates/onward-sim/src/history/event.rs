//! What is written down of a call: when, by whom, what was asked and what was answered.

use std::time::Duration;

use onward_core::{Books, Inlet, Key, LeaseToken, MessageId, Name, Position, RecordKey};

use super::facts::{Addition, EventsRead, Planned, Sought};

/// An instant of the test's own clock. `order` tells apart what happened at one time: it rises with each moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// True time since the test began, whatever the wall clock showed.
    pub at: Duration,
    /// Rises with each moment of the history.
    pub order: u64,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It happened.
    Ok,
    /// It did not happen.
    Refused,
    /// The answer was lost: it may have happened, until the moment at which the event ended.
    Unknown,
}

/// One call of one client, from being made to being answered.
#[derive(Clone, Debug)]
pub struct Event {
    /// Who made it: one start of one process.
    pub process: u32,
    /// When.
    pub called: Moment,
    /// When it was answered; of an unknown one, when it could no longer happen.
    pub ended: Moment,
    /// What became of it.
    pub answer: Answer,
    /// The events of one commit have its number: they happen all or none.
    pub commit: Option<u64>,
    /// What was called for.
    pub what: What,
}

impl Event {
    /// Whether it happened, or may have.
    pub fn maybe(&self) -> bool {
        self.answer != Answer::Refused
    }
}

/// What was called for, with what was answered.
#[derive(Clone, Debug)]
pub enum What {
    /// A message was put in.
    Enqueue(Sent),
    /// A message was handed out. Each delivery of a lease request is an event of its own.
    Deliver(Delivered),
    /// A lease request was answered with nothing, or its answer was lost: then it may have begun attempts.
    Lease {
        /// Where from.
        inlets: Vec<Inlet>,
    },
    /// A message was put into a topic.
    Publish {
        /// Which.
        topic: Name,
        /// The message; its inlet says nothing.
        sent: Sent,
        /// The subscriptions that are to get it.
        takers: Vec<Inlet>,
    },
    /// What a topic keeps was read from its beginning to its end.
    ReadTopic {
        /// Which.
        topic: Name,
        /// Each message's id, content mark and place.
        messages: Vec<(MessageId, u64, Position)>,
    },
    /// A subscription was moved.
    Seek(Sought),
    /// Events were appended to a stream.
    Append(Addition),
    /// A stream's events before a revision were removed.
    Truncate {
        /// Which.
        stream: String,
        /// The first revision that is kept.
        before: u64,
    },
    /// Events were read.
    ReadEvents(EventsRead),
    /// A schedule was set.
    Schedule(Planned),
    /// The wall clock was stepped: how far it is ahead of the truth now, in microseconds.
    Clock(i64),
    /// An attempt was ended.
    Settle(Settled),
    /// A lease was extended.
    Extend {
        /// Which.
        token: LeaseToken,
        /// How long it lasts from the answer.
        lease: Duration,
    },
    /// A message was cancelled by id.
    Cancel {
        /// Where.
        inlet: Inlet,
        /// Which.
        id: MessageId,
        /// The engine says that it is gone; otherwise its holder was asked to stop, or it was finished.
        gone: bool,
    },
    /// Dead letters were moved back to work.
    Redrive {
        /// Where.
        inlet: Inlet,
        /// Which; empty for all.
        ids: Vec<MessageId>,
    },
    /// A dead letter was changed.
    Edit {
        /// Where.
        inlet: Inlet,
        /// Which.
        id: MessageId,
        /// The [`super::content_mark`] of the new edition.
        content: u64,
    },
    /// Messages were removed.
    Purge {
        /// Where.
        inlet: Inlet,
        /// Which; empty for all.
        ids: Vec<MessageId>,
    },
    /// Every lease of a process was ended.
    EndProcess {
        /// Which.
        process: u32,
    },
    /// The engine's process ended and the engine was opened again; called when it ended, answered when it was open.
    Restart(Restart),
    /// The inlet's books were read.
    Count {
        /// Of which.
        inlet: Inlet,
        /// What they say.
        books: Books,
    },
    /// A record was written, or removed.
    PutRecord {
        /// Its key.
        key: RecordKey,
        /// A mark of the value; `None` for a removal.
        value: Option<u64>,
        /// What had to stand there.
        expected: RecordExpected,
        /// The revision that was answered; `None` when unknown, and for a removal.
        revision: Option<u64>,
    },
    /// A record was read.
    GetRecord {
        /// Its key.
        key: RecordKey,
        /// What stood there: the mark of the value and its revision.
        found: Option<(u64, u64)>,
    },
}

/// A message as it was put in.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Where to.
    pub inlet: Inlet,
    /// Its id.
    pub id: MessageId,
    /// The [`super::content_mark`] of what was sent.
    pub content: u64,
    /// What deduplicates it, where that is not its id.
    pub dedup_key: Option<Key>,
    /// What orders it.
    pub order_key: Option<Key>,
    /// Not to be handed out before, in the test's own time.
    pub not_before: Duration,
    /// Not to be handed out at or after, in the test's own time.
    pub not_after: Option<Duration>,
    /// The engine answered that it had it already; under which id.
    pub duplicate_of: Option<MessageId>,
    /// Its place, where the engine told one.
    pub position: Option<Position>,
}

/// A message as it was handed out.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The right to settle it, with the message's inlet and id.
    pub token: LeaseToken,
    /// Which attempt the engine says it is.
    pub attempt: u32,
    /// How long the lease lasts from receipt.
    pub lease: Duration,
    /// The [`super::content_mark`] of what was handed out.
    pub content: u64,
    /// The replay epoch of a subscription that it belongs to; 0 for a queue.
    pub replay: u32,
    /// Handed out alone, as a suspect of a process's death.
    pub suspect: bool,
}

/// How an attempt was ended.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Under which lease.
    pub token: LeaseToken,
    /// How.
    pub how: How,
    /// Not to be handed out before, in the test's own time; for retry and release.
    pub not_before: Duration,
    /// The engine answered that the message is a dead letter now.
    pub dead: bool,
    /// The engine answered that the same was said before.
    pub already: bool,
}

/// How an attempt was ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// Done.
    Ack,
    /// Failed; comes again.
    Retry,
    /// Put back without counting.
    Release,
    /// To the dead letters.
    Reject,
}

/// How the engine's process ended, and how it was opened again.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// What was not synced may be gone.
    pub power_cut: bool,
    /// How far the wall clock was ahead of the truth when it was opened again, in microseconds.
    pub wall_ahead: i64,
}

/// What had to stand at a record's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordExpected {
    /// Anything.
    Any,
    /// Nothing.
    Absent,
    /// The record of this revision.
    Revision(u64),
}
