//! The binary form of a state's pieces, format version 1: a kind byte each, then its content.
//!
//! What there may be millions of (messages, remembered ids, settlements) is compact, and short where it is like the one
//! before it; what is rare carries the names of its fields. To change a form, give it a new kind number and keep the
//! old one readable: a snapshot may be all that is left of the log's early segments.

use super::pieces_streams::{get_stream, put_stream};
use crate::codec::wire::{Decoded, Input, Malformed, Wire, put_bytes, put_number};
use crate::state::{LeaseMark, MessageImage, Remembered, SettledMark, ShelvedImage};
use crate::{Piece, Said};
use hashbrown::HashMap;
use onward_core::{MessageState, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

const NAMED: u8 = 1;
const MESSAGE: u8 = 2;
const REMEMBERED: u8 = 3;
const SETTLED: u8 = 4;
const SHELVED: u8 = 5;
const TOPIC_REMEMBERED: u8 = 6;
const STREAM: u8 = 7;

const HAS_SIDE: u8 = 1;
const HAS_LEASE: u8 = 2;
const HAS_BODY: u8 = 4;

/// Writes pieces one behind the other.
#[derive(Debug, Default)]
pub(super) struct PieceWriter {
    before: Before,
    kinds: HashMap<Arc<str>, u64>,
    item: Vec<u8>,
}

/// Reads what a [`PieceWriter`] wrote, in the same order.
#[derive(Debug, Default)]
pub(super) struct PieceReader {
    before: Before,
    kinds: Vec<Arc<str>>,
}

/// What differences are from.
#[derive(Debug, Default)]
struct Before {
    seq: u64,
    time: i64,
}

impl Before {
    fn put(&mut self, seq: u64, time: Timestamp, out: &mut Vec<u8>) {
        (seq.wrapping_sub(self.seq) as i64).put(out);
        time.as_micros().wrapping_sub(self.time).put(out);
        (self.seq, self.time) = (seq, time.as_micros());
    }

    fn get(&mut self, input: &mut Input<'_>) -> Decoded<(u64, Timestamp)> {
        self.seq = self.seq.wrapping_add(i64::get(input)? as u64);
        self.time = self.time.wrapping_add(i64::get(input)?);
        Ok((self.seq, Timestamp::from_micros(self.time)))
    }
}

impl PieceWriter {
    pub(super) fn put(&mut self, piece: &Piece, out: &mut Vec<u8>) {
        match piece {
            Piece::Message(image) => self.message(image, out),
            Piece::Remembered { dedup, what } => self.remembered(REMEMBERED, *dedup, what, out),
            Piece::Shelved(image) => self.shelved(image, out),
            Piece::TopicRemembered { dedup, what } => self.remembered(TOPIC_REMEMBERED, *dedup, what, out),
            Piece::Settled(mark, how) => {
                out.push(SETTLED);
                put_settled(mark, how, out);
            }
            Piece::Streams(piece) => {
                out.push(STREAM);
                put_stream(piece, out);
            }
            other => {
                out.push(NAMED);
                self.item.clear();
                rmp_serde::encode::write_named(&mut self.item, other).expect(INTO_MEMORY);
                put_bytes(&self.item, out);
            }
        }
    }

    fn message(&mut self, image: &MessageImage, out: &mut Vec<u8>) {
        out.push(MESSAGE);
        self.before.put(image.seq, image.accepted_at, out);
        image.marks.put(out);
        image.size.put(out);
        self.kind(&image.kind, out);
        let flag = |there: bool, flag: u8| if there { flag } else { 0 };
        let flags = flag(image.side.is_some(), HAS_SIDE) | flag(image.lease.is_some(), HAS_LEASE);
        out.extend_from_slice(&[image.priority, image.status, flags]);
        if let Some(side) = &image.side {
            self.unnamed(side, out);
        }
        if let Some(lease) = &image.lease {
            self.unnamed(lease, out);
        }
    }

    /// A type's number; the first time, its text follows.
    fn kind(&mut self, kind: &Arc<str>, out: &mut Vec<u8>) {
        if let Some(number) = self.kinds.get(kind) {
            return put_number(*number, out);
        }
        let number = self.kinds.len() as u64;
        put_number(number, out);
        kind.put(out);
        self.kinds.insert(kind.clone(), number);
    }

    /// Fields by their place: new ones may only be added at the end, with a default.
    fn unnamed(&mut self, value: &impl Serialize, out: &mut Vec<u8>) {
        self.item.clear();
        rmp_serde::encode::write(&mut self.item, value).expect(INTO_MEMORY);
        put_bytes(&self.item, out);
    }

    fn shelved(&mut self, image: &ShelvedImage, out: &mut Vec<u8>) {
        out.push(SHELVED);
        self.before.put(image.seq, image.accepted_at, out);
        out.extend_from_slice(&image.id_hash.to_le_bytes());
        image.size.put(out);
        self.kind(&image.kind, out);
        self.kind(&image.source, out);
        let flag = |there: bool, flag: u8| if there { flag } else { 0 };
        let flags = flag(image.side.is_some(), HAS_SIDE) | flag(image.body.is_some(), HAS_BODY);
        out.extend_from_slice(&[image.priority, flags]);
        if let Some(body) = image.body {
            put_number(body, out);
        }
        if let Some(side) = &image.side {
            self.unnamed(side, out);
        }
    }

    fn remembered(&mut self, kind: u8, dedup: u64, what: &Remembered, out: &mut Vec<u8>) {
        out.push(kind);
        self.before.put(what.seq, what.at, out);
        for hash in [dedup, what.fingerprint, what.id_hash] {
            out.extend_from_slice(&hash.to_le_bytes());
        }
        what.id.put(out);
    }
}

const INTO_MEMORY: &str = "plain data into memory can't fail";

impl PieceReader {
    /// The next piece, if it is a message: there may be millions, which need no box of their own.
    pub(super) fn next_message(&mut self, input: &mut Input<'_>) -> Decoded<Option<MessageImage>> {
        if input.peek() != Some(MESSAGE) {
            return Ok(None);
        }
        input.byte()?;
        self.message(input).map(Some)
    }

    pub(super) fn get(&mut self, input: &mut Input<'_>) -> Decoded<Piece> {
        match input.byte()? {
            NAMED => from_rmp(input.bytes()?),
            MESSAGE => self.message(input).map(|image| Piece::Message(Box::new(image))),
            REMEMBERED => self.remembered(input).map(|(dedup, what)| Piece::Remembered { dedup, what }),
            SHELVED => self.shelved(input).map(|image| Piece::Shelved(Box::new(image))),
            TOPIC_REMEMBERED => {
                self.remembered(input).map(|(dedup, what)| Piece::TopicRemembered { dedup, what })
            }
            STREAM => get_stream(input).map(Piece::Streams),
            SETTLED => get_settled(input).map(|(mark, how)| Piece::Settled(mark, how)),
            _ => Err(Malformed("a piece of a kind that this version does not know")),
        }
    }

    fn message(&mut self, input: &mut Input<'_>) -> Decoded<MessageImage> {
        let (seq, accepted_at) = self.before.get(input)?;
        let (marks, size, kind) = (Wire::get(input)?, Wire::get(input)?, self.kind(input)?);
        let [priority, status, flags] = input.array()?;
        if flags & !(HAS_SIDE | HAS_LEASE) != 0 {
            return Err(Malformed("a message has a part that this version does not know"));
        }
        let side = if flags & HAS_SIDE != 0 { Some(from_rmp(input.bytes()?)?) } else { None };
        let lease = if flags & HAS_LEASE != 0 { Some(from_rmp(input.bytes()?)?) } else { None };
        Ok(MessageImage { seq, marks, accepted_at, size, kind, priority, status, side, lease })
    }

    fn kind(&mut self, input: &mut Input<'_>) -> Decoded<Arc<str>> {
        let number = usize::try_from(input.number()?).unwrap_or(usize::MAX);
        if number == self.kinds.len() {
            self.kinds.push(Wire::get(input)?);
        }
        self.kinds.get(number).cloned().ok_or(Malformed("a type's number was never given"))
    }

    fn shelved(&mut self, input: &mut Input<'_>) -> Decoded<ShelvedImage> {
        let (seq, accepted_at) = self.before.get(input)?;
        let id_hash = u64::from_le_bytes(input.array()?);
        let (size, kind, source) = (Wire::get(input)?, self.kind(input)?, self.kind(input)?);
        let [priority, flags] = input.array()?;
        if flags & !(HAS_SIDE | HAS_BODY) != 0 {
            return Err(Malformed("a topic's message has a part that this version does not know"));
        }
        let body = if flags & HAS_BODY != 0 { Some(input.number()?) } else { None };
        let side = if flags & HAS_SIDE != 0 { Some(from_rmp(input.bytes()?)?) } else { None };
        Ok(ShelvedImage { seq, id_hash, accepted_at, size, kind, source, priority, body, side })
    }

    fn remembered(&mut self, input: &mut Input<'_>) -> Decoded<(u64, Remembered)> {
        let (seq, at) = self.before.get(input)?;
        let mut hash = || Ok(u64::from_le_bytes(input.array()?));
        let (dedup, fingerprint, id_hash) = (hash()?, hash()?, hash()?);
        let what = Remembered { fingerprint, id_hash, seq, at, id: Wire::get(input)? };
        Ok((dedup, what))
    }
}

fn from_rmp<T: DeserializeOwned>(bytes: &[u8]) -> Decoded<T> {
    rmp_serde::from_slice(bytes).map_err(|_| Malformed("it does not have the form that is known"))
}

fn put_settled(mark: &LeaseMark, how: &SettledMark, out: &mut Vec<u8>) {
    mark.seq.put(out);
    (mark.epoch, mark.attempt).put(out);
    out.extend_from_slice(&mark.nonce.to_le_bytes());
    how.said.put(out);
    let state = MessageState::ALL.iter().position(|state| *state == how.state).unwrap_or(0);
    out.push(state as u8);
    how.due.put(out);
}

fn get_settled(input: &mut Input<'_>) -> Decoded<(LeaseMark, SettledMark)> {
    let (seq, epoch, attempt) = (Wire::get(input)?, Wire::get(input)?, Wire::get(input)?);
    let nonce = u32::from_le_bytes(input.array()?);
    let said = Said::get(input)?;
    let state = MessageState::ALL.get(usize::from(input.byte()?)).copied();
    let state = state.ok_or(Malformed("an unknown state of a message"))?;
    let due = Wire::get(input)?;
    Ok((LeaseMark { seq, epoch, attempt, nonce }, SettledMark { said, state, due }))
}
