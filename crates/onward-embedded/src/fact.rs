//! Facts: what the log holds. Each is the outcome of a decision, never a command.
//!
//! A replay only applies them: waits are already computed, attempts already counted, which message went to whom is
//! already chosen. What follows from a fact by the inlet's own rules alone (the next message of an order key becomes
//! ready, later ones follow a dead head) is not written: applying does it, the same way each time.

use crate::{
    At, BulkMark, End, EventPlace, Given, InletId, Marks, MessageRef, Removal, Said, StreamId, TopicId,
};
use bytes::Bytes;
use onward_core::{
    Filter, Holder, Inlet, InletConfig, Message, Name, Payload, RecordKey, RequestId, Schedule, StreamName,
    Tag, Timestamp, TopicConfig,
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// One thing that happened. Its position and time stand beside it in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Fact {
    /// The store was made: the first fact of every log.
    Founded {
        /// A random secret: the key of every hash in the state.
        secret: [u64; 2],
    },
    /// The store was opened: leases begin anew with their full term, tokens get a new epoch.
    Opened {
        /// Rises with each opening.
        epoch: u32,
    },
    /// An inlet is new, or has new rules.
    Declared {
        /// Its number.
        inlet: InletId,
        /// Its name.
        name: Inlet,
        /// Its rules.
        config: Box<InletConfig>,
    },
    /// An inlet was removed with what was in it.
    Dropped {
        /// Which.
        inlet: InletId,
    },
    /// An inlet hands out, or does not.
    Paused {
        /// Which.
        inlet: InletId,
        /// Whether it is paused now.
        paused: bool,
    },
    /// A message was accepted. Its body stands in this fact, at this position.
    Enqueued {
        /// Where.
        inlet: InletId,
        /// The message.
        message: Arc<Message>,
        /// Its hashes, so that a replay needs not compute them.
        marks: Marks,
        /// The engine's clock less the wall clock, in microseconds: added to the message's due time and expiry, which
        /// were said by the wall clock. It is 0 unless the wall clock jumped.
        skew_us: i64,
    },
    /// A lease request was answered.
    Leased {
        /// The request, for its repeat.
        request: RequestId,
        /// Who holds them.
        holder: Holder,
        /// How long each lease lasts from this fact's time, in microseconds: one per message.
        terms_us: Vec<u64>,
        /// What was handed out.
        given: Vec<Given>,
    },
    /// Leases begin anew with this term.
    Extended {
        /// Which.
        leases: Vec<At>,
        /// How long from this fact's time.
        term: Duration,
    },
    /// A lease ended.
    Settled {
        /// Which message.
        at: At,
        /// What its holder said, so that a repeat is recognised; `None` when the engine found out.
        said: Option<Said>,
        /// How.
        end: End,
    },
    /// Somebody wants a leased message cancelled.
    CancelRequested {
        /// Which.
        at: At,
    },
    /// Messages without a lease are gone.
    Removed {
        /// Where.
        inlet: InletId,
        /// Which.
        messages: Vec<MessageRef>,
        /// Why.
        why: Removal,
        /// The bulk operation that did it.
        bulk: Option<BulkMark>,
    },
    /// A due time was moved.
    Rescheduled {
        /// Which.
        at: At,
        /// To when.
        due: Timestamp,
    },
    /// A running attempt reached something.
    Progressed {
        /// Which.
        at: At,
        /// What.
        detail: Payload,
    },
    /// A dead letter has a new edition, whose body stands in this fact. The original stays where it is.
    Edited {
        /// Which.
        at: At,
        /// The new edition.
        message: Arc<Message>,
    },
    /// Dead letters are work again, each with a due time, in this order.
    Redriven {
        /// Where.
        inlet: InletId,
        /// Which, and when.
        messages: Vec<(MessageRef, Timestamp)>,
        /// The bulk operation that did it.
        bulk: Option<BulkMark>,
    },
    /// A body was copied forward, so that its old segment can go. Its new place is this fact's position.
    Moved {
        /// Whose.
        at: At,
        /// It is the latest edition's body of an edited message; otherwise the original's.
        edition: bool,
        /// When the message was accepted.
        accepted_at: Timestamp,
        /// The body.
        message: Arc<Message>,
    },
    /// A record was written. Its revision is this fact's position.
    RecordPut {
        /// Its key.
        key: RecordKey,
        /// Its value.
        value: Bytes,
        /// When it is forgotten.
        expires: Option<Timestamp>,
    },
    /// A record was removed.
    RecordDeleted {
        /// Its key.
        key: RecordKey,
    },
    /// Records ran out of time and were removed.
    RecordsExpired {
        /// Their keys.
        keys: Vec<RecordKey>,
    },
    /// A schedule is new, or does something else now.
    ScheduleSet {
        /// Its name.
        name: Name,
        /// What it does.
        schedule: Box<Schedule>,
        /// Ticks after this are its.
        since: Timestamp,
        /// The first of them, by the rules of time zones as they were known then.
        next: Option<Timestamp>,
    },
    /// A schedule was removed.
    ScheduleRemoved {
        /// Its name.
        name: Name,
    },
    /// Ticks of a schedule were decided. The messages that they gave stand before this in the same unit.
    ScheduleTicked {
        /// Its name.
        name: Name,
        /// The nominal times of those that gave a message.
        ticks: Vec<Timestamp>,
        /// How many were left out since they were missed.
        missed: u64,
        /// How many were left out since the last message was unfinished.
        overlapped: u64,
        /// Every tick up to here has its decision.
        decided: Timestamp,
        /// The next one, by the rules of time zones as they were known then.
        next: Option<Timestamp>,
    },
    /// A topic is new, or has new rules.
    TopicDeclared {
        /// Its number.
        topic: TopicId,
        /// Its name.
        name: Name,
        /// Its rules.
        config: Box<TopicConfig>,
    },
    /// A topic was removed with what it kept. It has no subscriptions.
    TopicDropped {
        /// Which.
        topic: TopicId,
    },
    /// A message was published: once for all subscriptions. Its body stands in this fact, at this position.
    Published {
        /// Where.
        topic: TopicId,
        /// The message.
        message: Arc<Message>,
        /// Its hashes, so that a replay needs not compute them.
        marks: Marks,
        /// As in [`Fact::Enqueued`].
        skew_us: i64,
    },
    /// A subscription is new, or has new rules.
    Subscribed {
        /// Its number among the inlets.
        inlet: InletId,
        /// Its topic.
        topic: TopicId,
        /// Its name.
        name: Inlet,
        /// Its rules.
        config: Box<InletConfig>,
        /// Which messages it takes.
        filter: Box<Filter>,
        /// The number in the topic of the first message that it reaches, where it is new.
        start: u64,
    },
    /// A subscription took messages from its topic: those of these numbers that its filter takes.
    Drawn {
        /// Which.
        inlet: InletId,
        /// The first number.
        from: u64,
        /// The number behind the last one.
        until: u64,
        /// Numbers among them whose headers the filter does not take, in order.
        unfit: Vec<u64>,
    },
    /// A subscription passed over messages that it had not reached.
    Passed {
        /// Which.
        inlet: InletId,
        /// The number behind the last one.
        until: u64,
        /// Why: shed, or purged.
        why: Removal,
        /// The bulk operation that did it.
        bulk: Option<BulkMark>,
    },
    /// A subscription was moved to another place of its topic.
    Sought {
        /// Which.
        inlet: InletId,
        /// The number of the message that it goes on with.
        to: u64,
        /// It processes again what it had processed: a new replay epoch, and every lease of before has ended.
        again: bool,
    },
    /// A topic lets go what is past its retention at this fact's time.
    Trimmed {
        /// Which.
        topic: TopicId,
    },
    /// The body of a topic's message was copied forward. Its new place is this fact's position.
    TopicMoved {
        /// Whose topic.
        topic: TopicId,
        /// Which message.
        which: MessageRef,
        /// When it was published.
        accepted_at: Timestamp,
        /// The body.
        message: Arc<Message>,
    },
    /// A stream is new: its first event follows.
    StreamNamed {
        /// Its number.
        stream: StreamId,
        /// Its name.
        name: StreamName,
    },
    /// An event was appended. It stands in this fact, at this position.
    Appended {
        /// To which stream.
        stream: StreamId,
        /// Its number in the stream, from 0.
        revision: u64,
        /// Its envelope and data.
        message: Arc<Message>,
        /// Its tags.
        tags: Vec<Tag>,
        /// The keyed hash of stream and id, by which a repeat is recognised.
        mark: u64,
    },
    /// A stream's events before a revision are gone.
    Truncated {
        /// Which stream.
        stream: StreamId,
        /// The first revision that is kept.
        before: u64,
    },
}

impl Fact {
    /// The message body that stands in this fact: what [`crate::Store::read`] answers for its position.
    pub fn body(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Enqueued { message, .. }
            | Self::Edited { message, .. }
            | Self::Moved { message, .. }
            | Self::Published { message, .. }
            | Self::TopicMoved { message, .. }
            | Self::Appended { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The place in its stream of the event that stands in this fact.
    pub(crate) fn event(&self) -> Option<EventPlace> {
        let Self::Appended { stream, revision, tags, .. } = self else { return None };
        Some(EventPlace { stream: *stream, revision: *revision, tags: tags.clone() })
    }
}
