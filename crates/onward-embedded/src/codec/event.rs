//! The binary form of an event: its stream, revision and tags, then its message. Many of them are read one behind the
//! other, so what is mostly the same from one to the next, type and source, is kept once.

use super::message::get_message_with;
use super::wire::{Decoded, Input, Malformed, Wire};
use crate::{StoredEvent, StreamId};
use bytes::Bytes;
use onward_core::{Event, Tag, Timestamp};
use std::sync::Arc;

/// Which stream and revision, the tags, and the mark.
pub(super) type Head = (StreamId, u64, Vec<Tag>, u64);

pub(super) fn put_event(stream: StreamId, revision: u64, tags: &[Tag], mark: u64, out: &mut Vec<u8>) {
    (stream, revision).put(out);
    out.extend_from_slice(&mark.to_le_bytes());
    super::wire::put_number(tags.len() as u64, out);
    tags.iter().for_each(|tag| tag.put(out));
}

pub(super) fn get_event(input: &mut Input<'_>) -> Decoded<Head> {
    let (stream, revision) = Wire::get(input)?;
    let mark = u64::from_le_bytes(input.array()?);
    Ok((stream, revision, Wire::get(input)?, mark))
}

/// Reads events one behind the other.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    texts: Texts,
}

/// Texts that were read lately: the same one again costs no memory.
#[derive(Debug, Default)]
pub(super) struct Texts {
    kept: Vec<Arc<str>>,
    next: usize,
}

/// Most texts kept.
const TEXTS_MAX: usize = 16;

impl Texts {
    pub(super) fn get(&mut self, input: &mut Input<'_>) -> Decoded<Arc<str>> {
        let text = input.text()?;
        if let Some(kept) = self.kept.iter().find(|kept| ***kept == *text) {
            return Ok(kept.clone());
        }
        let new: Arc<str> = text.into();
        if self.kept.len() < TEXTS_MAX {
            self.kept.push(new.clone());
        } else {
            self.kept[self.next % TEXTS_MAX] = new.clone();
            self.next += 1;
        }
        Ok(new)
    }
}

impl EventReader {
    /// The event that stands in a record. Its data is a slice of `record`, not a copy.
    pub(crate) fn get(&mut self, kind: u8, record: &Bytes, position: u64) -> Decoded<StoredEvent> {
        if kind != super::fact::kind::APPENDED {
            return Err(Malformed("no event stands in this record"));
        }
        let mut input = Input::new(record);
        let (stream, revision, tags, _) = get_event(&mut input)?;
        let span = i64::get(&mut input)?;
        let message = get_message_with(&mut self.texts, &mut input, record)?;
        let recorded_at = Timestamp::from_micros(message.timestamp.as_micros().wrapping_add(span));
        Ok(StoredEvent { position, stream, revision, event: Event { message, tags }, recorded_at })
    }
}
