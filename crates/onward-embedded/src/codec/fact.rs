//! The binary form of facts, format version 1: one log record each, the record's kind says which fact.
//!
//! A record holds the fact's fields in their order, then, for facts with a message or a record's value, its data to
//! the end. To change a form: give it a new kind number below, keep the old one decodable, follow the procedure at
//! [`crate::persist::folder::FORMAT`]. A golden test holds the bytes of every kind, so none changes by accident.
//!
//! Kinds 32 to 47 are kept for topics and subscriptions, 51 to 63 for more about streams, 64 to 71 for
//! schedules.

use super::event::{get_event, put_event};
use super::message::{get_message, put_envelope};
use super::wire::{Decoded, Input, Malformed, Wire};
use crate::store::{EventPlace, Stored};
use crate::{At, Fact, InletId, Marks, MessageRef, TopicId};
use bytes::Bytes;
use onward_core::{Message, Timestamp};
use std::{ops::Range, sync::Arc};

/// Numbers of record kinds. They never change their meaning.
pub(crate) mod kind {
    pub(crate) const FOUNDED: u8 = 1;
    pub(crate) const OPENED: u8 = 2;
    pub(crate) const DECLARED: u8 = 3;
    pub(crate) const DROPPED: u8 = 4;
    pub(crate) const PAUSED: u8 = 5;
    pub(crate) const ENQUEUED: u8 = 6;
    pub(crate) const LEASED: u8 = 7;
    pub(crate) const EXTENDED: u8 = 8;
    pub(crate) const SETTLED: u8 = 9;
    pub(crate) const CANCEL_REQUESTED: u8 = 10;
    pub(crate) const REMOVED: u8 = 11;
    pub(crate) const RESCHEDULED: u8 = 12;
    pub(crate) const PROGRESSED: u8 = 13;
    pub(crate) const EDITED: u8 = 14;
    pub(crate) const REDRIVEN: u8 = 15;
    pub(crate) const MOVED: u8 = 16;
    pub(crate) const RECORD_PUT: u8 = 17;
    pub(crate) const RECORD_DELETED: u8 = 18;
    pub(crate) const RECORDS_EXPIRED: u8 = 19;
    pub(crate) const TOPIC_DECLARED: u8 = 32;
    pub(crate) const TOPIC_DROPPED: u8 = 33;
    pub(crate) const PUBLISHED: u8 = 34;
    pub(crate) const SUBSCRIBED: u8 = 35;
    pub(crate) const DRAWN: u8 = 36;
    pub(crate) const PASSED: u8 = 37;
    pub(crate) const SOUGHT: u8 = 38;
    pub(crate) const TRIMMED: u8 = 39;
    pub(crate) const TOPIC_MOVED: u8 = 40;
    pub(crate) const SCHEDULE_SET: u8 = 64;
    pub(crate) const SCHEDULE_REMOVED: u8 = 65;
    pub(crate) const SCHEDULE_TICKED: u8 = 66;
    pub(crate) const STREAM_NAMED: u8 = 48;
    pub(crate) const APPENDED: u8 = 49;
    pub(crate) const TRUNCATED: u8 = 50;
}

/// A fact ready for the log: its kind, where its fields lie in the buffer, and its data, which is not copied.
#[derive(Debug)]
pub(crate) struct Encoded<'f> {
    pub(crate) kind: u8,
    pub(crate) fields: Range<usize>,
    pub(crate) data: &'f [u8],
}

impl Encoded<'_> {
    /// Bytes of the record.
    pub(crate) fn len(&self) -> usize {
        self.fields.len() + self.data.len()
    }
}

/// Writes the fields behind what `out` holds already. `time` is that of the fact's unit.
pub(crate) fn encode<'f>(fact: &'f Fact, time: Timestamp, out: &mut Vec<u8>) -> Encoded<'f> {
    let from = out.len();
    let (kind, data) = put_fact(fact, time, out);
    Encoded { kind, fields: from..out.len(), data }
}

fn put_fact<'f>(fact: &'f Fact, time: Timestamp, out: &mut Vec<u8>) -> (u8, &'f [u8]) {
    let kind = match fact {
        Fact::Founded { secret } => put(kind::FOUNDED, &(secret[0], secret[1]), out),
        Fact::Opened { epoch } => put(kind::OPENED, epoch, out),
        Fact::Declared { inlet, name, config } => {
            (*inlet, name.clone()).put(out);
            put(kind::DECLARED, &**config, out)
        }
        Fact::Dropped { inlet } => put(kind::DROPPED, inlet, out),
        Fact::Paused { inlet, paused } => put(kind::PAUSED, &(*inlet, *paused), out),
        Fact::Enqueued { inlet, message, marks, skew_us } => {
            (*inlet, *marks).put(out);
            skew_us.put(out);
            return (kind::ENQUEUED, put_body(time, message, out));
        }
        Fact::Leased { request, holder, terms_us, given } => {
            request.put(out);
            holder.put(out);
            terms_us.put(out);
            put(kind::LEASED, given, out)
        }
        Fact::Extended { leases, term } => {
            leases.put(out);
            put(kind::EXTENDED, term, out)
        }
        Fact::Settled { at, said, end } => {
            (*at, *said).put(out);
            put(kind::SETTLED, end, out)
        }
        Fact::CancelRequested { at } => put(kind::CANCEL_REQUESTED, at, out),
        Fact::Removed { inlet, messages, why, bulk } => {
            inlet.put(out);
            messages.put(out);
            put(kind::REMOVED, &(*why, *bulk), out)
        }
        Fact::Rescheduled { at, due } => put(kind::RESCHEDULED, &(*at, *due), out),
        Fact::Progressed { at, detail } => {
            at.put(out);
            put(kind::PROGRESSED, detail, out)
        }
        Fact::Edited { at, message } => {
            at.put(out);
            return (kind::EDITED, put_body(time, message, out));
        }
        Fact::Redriven { inlet, messages, bulk } => {
            inlet.put(out);
            messages.put(out);
            put(kind::REDRIVEN, bulk, out)
        }
        Fact::Moved { at, edition, accepted_at, message } => {
            (*at, *edition).put(out);
            return (kind::MOVED, put_body(*accepted_at, message, out));
        }
        Fact::RecordPut { key, value, expires } => {
            key.put(out);
            expires.put(out);
            return (kind::RECORD_PUT, value);
        }
        Fact::RecordDeleted { key } => put(kind::RECORD_DELETED, key, out),
        Fact::RecordsExpired { keys } => put(kind::RECORDS_EXPIRED, keys, out),
        Fact::ScheduleSet { name, schedule, since, next } => {
            (name.clone(), *since).put(out);
            next.put(out);
            put(kind::SCHEDULE_SET, &**schedule, out)
        }
        Fact::ScheduleRemoved { name } => put(kind::SCHEDULE_REMOVED, name, out),
        Fact::ScheduleTicked { name, ticks, missed, overlapped, decided, next } => {
            name.put(out);
            ticks.put(out);
            ((*missed, *overlapped), *decided).put(out);
            put(kind::SCHEDULE_TICKED, next, out)
        }
        Fact::StreamNamed { stream, name } => put(kind::STREAM_NAMED, &(*stream, name.clone()), out),
        Fact::Appended { stream, revision, message, tags, mark } => {
            put_event(*stream, *revision, tags, *mark, out);
            return (kind::APPENDED, put_body(time, message, out));
        }
        Fact::Truncated { stream, before } => put(kind::TRUNCATED, &(*stream, *before), out),
        other => return super::topic::put_topic_fact(other, time, out),
    };
    (kind, &[])
}

pub(super) fn put(kind: u8, fields: &impl Wire, out: &mut Vec<u8>) -> u8 {
    fields.put(out);
    kind
}

/// When the message was accepted stands as the span from its own timestamp, which is mostly short.
pub(super) fn put_body<'f>(accepted_at: Timestamp, message: &'f Message, out: &mut Vec<u8>) -> &'f [u8] {
    accepted_at.as_micros().wrapping_sub(message.timestamp.as_micros()).put(out);
    put_envelope(message, out);
    message.data.as_bytes()
}

pub(super) fn get_body(input: &mut Input<'_>, record: &Bytes) -> Decoded<Stored> {
    let span = i64::get(input)?;
    let message = get_message(input, record)?;
    let accepted_at = Timestamp::from_micros(message.timestamp.as_micros().wrapping_add(span));
    Ok(Stored { message: Arc::new(message), accepted_at, event: None })
}

/// The fact of a record. The data of a message or record is a slice of `record`, not a copy.
pub(crate) fn decode(kind: u8, record: &Bytes) -> Decoded<Fact> {
    let mut input = Input::new(record);
    let input = &mut input;
    let fact = match kind {
        kind::ENQUEUED => {
            let ((inlet, marks), skew_us) = Wire::get(input)?;
            let message = get_body(input, record)?.message;
            return Ok(Fact::Enqueued { inlet, marks, skew_us, message });
        }
        kind::EDITED => {
            return Ok(Fact::Edited { at: Wire::get(input)?, message: get_body(input, record)?.message });
        }
        kind::MOVED => {
            let (at, edition) = Wire::get(input)?;
            let Stored { message, accepted_at, .. } = get_body(input, record)?;
            return Ok(Fact::Moved { at, edition, accepted_at, message });
        }
        kind::APPENDED => {
            let (stream, revision, tags, mark) = get_event(input)?;
            let message = get_body(input, record)?.message;
            return Ok(Fact::Appended { stream, revision, message, tags, mark });
        }
        kind::RECORD_PUT => {
            let (key, expires) = (Wire::get(input)?, Wire::get(input)?);
            return Ok(Fact::RecordPut { key, value: record.slice(input.at()..), expires });
        }
        kind => match super::topic::get_topic_fact(kind, input, record)? {
            // What it has read to the end holds a body.
            Some(fact) if fact.body().is_some() => return Ok(fact),
            Some(fact) => fact,
            None => get_fields(kind, input)?,
        },
    };
    input.end()?;
    Ok(fact)
}

fn get_fields(kind: u8, input: &mut Input<'_>) -> Decoded<Fact> {
    Ok(match kind {
        kind::FOUNDED => Fact::Founded { secret: [Wire::get(input)?, Wire::get(input)?] },
        kind::OPENED => Fact::Opened { epoch: Wire::get(input)? },
        kind::DECLARED => Fact::Declared {
            inlet: Wire::get(input)?,
            name: Wire::get(input)?,
            config: Box::new(Wire::get(input)?),
        },
        kind::DROPPED => Fact::Dropped { inlet: Wire::get(input)? },
        kind::PAUSED => Fact::Paused { inlet: Wire::get(input)?, paused: Wire::get(input)? },
        kind::LEASED => Fact::Leased {
            request: Wire::get(input)?,
            holder: Wire::get(input)?,
            terms_us: Wire::get(input)?,
            given: Wire::get(input)?,
        },
        kind::EXTENDED => Fact::Extended { leases: Wire::get(input)?, term: Wire::get(input)? },
        kind::SETTLED => {
            Fact::Settled { at: Wire::get(input)?, said: Wire::get(input)?, end: Wire::get(input)? }
        }
        kind::CANCEL_REQUESTED => Fact::CancelRequested { at: Wire::get(input)? },
        kind::REMOVED => Fact::Removed {
            inlet: Wire::get(input)?,
            messages: Wire::get(input)?,
            why: Wire::get(input)?,
            bulk: Wire::get(input)?,
        },
        kind::RESCHEDULED => Fact::Rescheduled { at: Wire::get(input)?, due: Wire::get(input)? },
        kind::PROGRESSED => Fact::Progressed { at: Wire::get(input)?, detail: Wire::get(input)? },
        kind::REDRIVEN => {
            Fact::Redriven { inlet: Wire::get(input)?, messages: Wire::get(input)?, bulk: Wire::get(input)? }
        }
        kind::RECORD_DELETED => Fact::RecordDeleted { key: Wire::get(input)? },
        kind::RECORDS_EXPIRED => Fact::RecordsExpired { keys: Wire::get(input)? },
        kind::SCHEDULE_SET => {
            let ((name, since), next) = (Wire::get(input)?, Wire::get(input)?);
            Fact::ScheduleSet { name, schedule: Wire::get(input)?, since, next }
        }
        kind::SCHEDULE_REMOVED => Fact::ScheduleRemoved { name: Wire::get(input)? },
        kind::SCHEDULE_TICKED => {
            let (name, ticks) = (Wire::get(input)?, Wire::get(input)?);
            let ((missed, overlapped), decided) = Wire::get(input)?;
            Fact::ScheduleTicked { name, ticks, missed, overlapped, decided, next: Wire::get(input)? }
        }
        kind::STREAM_NAMED => Fact::StreamNamed { stream: Wire::get(input)?, name: Wire::get(input)? },
        kind::TRUNCATED => Fact::Truncated { stream: Wire::get(input)?, before: Wire::get(input)? },
        _ => return Err(Malformed("a fact of a kind that this version does not know")),
    })
}

/// The message that stands in a record.
pub(crate) fn decode_body(kind: u8, record: &Bytes) -> Decoded<Stored> {
    let mut input = Input::new(record);
    let event = to_body(kind, &mut input)?;
    Ok(Stored { event, ..get_body(&mut input, record)? })
}

/// Reads up to where a record's message begins; answers the place of an event.
pub(super) fn to_body(kind: u8, input: &mut Input<'_>) -> Decoded<Option<Box<EventPlace>>> {
    match kind {
        kind::ENQUEUED => drop(<((InletId, Marks), i64)>::get(input)?),
        kind::EDITED => drop(At::get(input)?),
        kind::MOVED => drop(<(At, bool)>::get(input)?),
        kind::PUBLISHED => drop(<((TopicId, Marks), i64)>::get(input)?),
        kind::TOPIC_MOVED => drop(<(TopicId, MessageRef)>::get(input)?),
        kind::APPENDED => {
            let (stream, revision, tags, _) = get_event(input)?;
            return Ok(Some(Box::new(EventPlace { stream, revision, tags })));
        }
        _ => return Err(Malformed("no message stands in this record")),
    }
    Ok(None)
}
