//! The binary form of an event: its stream, revision and tags, then its message.

use super::wire::{Decoded, Input, Wire};
use crate::StreamId;
use onward_core::Tag;

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
