//! The binary form of what a snapshot holds of streams, format version 1: a kind byte each, then its content.

use crate::codec::wire::{Decoded, Input, Malformed, Wire, put_number, wire_enum};
use crate::{EventFound, ListOf, StreamPiece};

const STREAM: u8 = 1;
const LIST: u8 = 2;
const PART: u8 = 3;
const IDS: u8 = 4;
const GONE: u8 = 5;

wire_enum!(ListOf { Category = 1, Kind = 2, Tag = 3, All = 4, Times = 5 });

pub(super) fn put_stream(piece: &StreamPiece, out: &mut Vec<u8>) {
    match piece {
        StreamPiece::Stream { name, first, next, base } => {
            out.push(STREAM);
            name.put(out);
            ((*first, *next), *base).put(out);
        }
        StreamPiece::List { of, word } => {
            out.push(LIST);
            of.put(out);
            word.put(out);
        }
        StreamPiece::Part { first, last, count, deltas } => {
            out.push(PART);
            ((*first, last.wrapping_sub(*first)), *count).put(out);
            deltas.put(out);
        }
        StreamPiece::Ids { old, entries } => {
            out.push(IDS);
            old.put(out);
            put_number(entries.len() as u64, out);
            for (mark, found) in entries {
                out.extend_from_slice(&mark.to_le_bytes());
                (found.stream, found.revision).put(out);
            }
        }
        StreamPiece::Gone(places) => {
            out.push(GONE);
            places.put(out);
        }
    }
}

pub(super) fn get_stream(input: &mut Input<'_>) -> Decoded<StreamPiece> {
    Ok(match input.byte()? {
        STREAM => {
            let (name, ((first, next), base)) = (Wire::get(input)?, Wire::get(input)?);
            if base > first || first > next {
                return Err(Malformed("a stream's revisions are out of order"));
            }
            StreamPiece::Stream { name, first, next, base }
        }
        LIST => StreamPiece::List { of: Wire::get(input)?, word: Wire::get(input)? },
        PART => {
            let ((first, span), count) = <((u64, u64), u32)>::get(input)?;
            let deltas: bytes::Bytes = Wire::get(input)?;
            if count == 0 || count as usize > deltas.len() + 1 {
                return Err(Malformed("a list has fewer places than it says"));
            }
            StreamPiece::Part { first, last: first.wrapping_add(span), count, deltas }
        }
        IDS => {
            let old = Wire::get(input)?;
            let count = input.count()?;
            let mut entries = Vec::with_capacity(count.min(4096));
            for _ in 0..count {
                let mark = u64::from_le_bytes(input.array()?);
                entries.push((mark, EventFound { stream: Wire::get(input)?, revision: Wire::get(input)? }));
            }
            StreamPiece::Ids { old, entries }
        }
        GONE => StreamPiece::Gone(Wire::get(input)?),
        _ => return Err(Malformed("a piece of streams of a kind that this version does not know")),
    })
}
