//! Reading many bodies one behind the other: what is mostly the same from one to the next, as type and source, is kept
//! once, and small data shares memory.

use super::event::get_event;
use super::fact::{kind::APPENDED, to_body};
use super::message::get_message_with;
use super::wire::{Decoded, Input, Malformed, Wire};
use crate::{Stored, StoredEvent};
use bytes::{Bytes, BytesMut};
use onward_core::{Event, Timestamp};
use std::sync::Arc;

/// Reads messages and events one behind the other.
#[derive(Debug, Default)]
pub(crate) struct BodyReader {
    texts: Texts,
    data: Shared,
}

/// Data up to this size shares memory with that of its neighbours, in bytes.
const SHARED_BYTES_MAX: usize = 1 << 10;
/// The first piece of shared memory and the largest, in bytes; each is twice the one before. Who keeps one small event
/// of many keeps no more than the largest.
const PIECE_BYTES: (usize, usize) = (1 << 10, 16 << 10);

/// Memory that small data shares: one allocation for many.
#[derive(Debug, Default)]
pub(super) struct Shared {
    piece: BytesMut,
    bytes: usize,
}

impl Shared {
    pub(super) fn copy(&mut self, data: &[u8]) -> Bytes {
        if data.len() > SHARED_BYTES_MAX {
            return Bytes::copy_from_slice(data);
        }
        if self.piece.capacity() < data.len() {
            self.bytes = (self.bytes * 2).clamp(PIECE_BYTES.0, PIECE_BYTES.1);
            self.piece = BytesMut::with_capacity(self.bytes);
        }
        self.piece.extend_from_slice(data);
        self.piece.split().freeze()
    }
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

impl BodyReader {
    /// The message that stands in a record; its data is copied.
    pub(crate) fn body(&mut self, kind: u8, record: &[u8]) -> Decoded<Stored> {
        let mut input = Input::new(record);
        let event = to_body(kind, &mut input)?;
        let span = i64::get(&mut input)?;
        let message = get_message_with(&mut self.texts, &mut self.data, &mut input, record)?;
        let accepted_at = Timestamp::from_micros(message.timestamp.as_micros().wrapping_add(span));
        Ok(Stored { message: Arc::new(message), accepted_at, event })
    }

    /// The event that stands in a record; its data is copied.
    pub(crate) fn event(&mut self, kind: u8, record: &[u8], position: u64) -> Decoded<StoredEvent> {
        if kind != APPENDED {
            return Err(Malformed("no event stands in this record"));
        }
        let mut input = Input::new(record);
        let (stream, revision, tags, _) = get_event(&mut input)?;
        let span = i64::get(&mut input)?;
        let message = get_message_with(&mut self.texts, &mut self.data, &mut input, record)?;
        let recorded_at = Timestamp::from_micros(message.timestamp.as_micros().wrapping_add(span));
        Ok(StoredEvent { position, stream, revision, event: Event { message, tags }, recorded_at })
    }
}
