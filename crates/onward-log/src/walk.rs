//! Reading groups one behind the other from a segment's file, checking each before it is shown.

use std::sync::Arc;

use crate::disk::{self, DiskFile};
use crate::frame::{FORMAT, GROUP_HEADER_BYTES, GroupHeader, RECORD_HEADER_BYTES, RecordHeader};
use crate::frame::{checksum, record_holds};
use crate::segment::{SegmentHeader, segment_name};
use crate::{LogError, Position};

const READ_AT_ONCE: usize = 1 << 20;
const SMALLEST_SECTOR: u32 = 512;

/// A record as it is replayed or scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Where it stands.
    pub position: Position,
    /// The place just behind it.
    pub end: Position,
    /// The wall time that its unit was appended with, in microseconds.
    pub time: i64,
    /// The caller's own mark.
    pub kind: u8,
    /// The record's bytes.
    pub bytes: &'a [u8],
    /// Whether its unit begins with it.
    pub first_in_unit: bool,
    /// Whether its unit ends with it.
    pub last_in_unit: bool,
}

/// What a caller does with each record; an error ends the walk.
pub(crate) type Apply<'a> = dyn FnMut(RecordRef<'_>) -> Result<(), LogError> + 'a;

/// Reads one segment from front to back through a buffer.
#[derive(Debug)]
pub(crate) struct Walker {
    file: Arc<dyn DiskFile>,
    pub(crate) header: SegmentHeader,
    /// Whose groups are looked for; any log's if unknown.
    log_id: Option<u64>,
    buffer: Vec<u8>,
    /// The file's offset of the buffer's first byte, and how much of the buffer is filled.
    base: u64,
    filled: usize,
}

impl Walker {
    pub(crate) fn new(file: Arc<dyn DiskFile>, header: SegmentHeader) -> Walker {
        Walker { file, header, log_id: Some(header.log_id), buffer: Vec::new(), base: 0, filled: 0 }
    }

    /// Reads a segment whose first block is unreadable, in the smallest steps that groups can have.
    pub(crate) fn of_any_log(file: Arc<dyn DiskFile>, index: u32, bytes: u64) -> Walker {
        let header = SegmentHeader { index, epoch: 0, log_id: 0, bytes, sector: SMALLEST_SECTOR };
        Walker { log_id: None, ..Walker::new(file, header) }
    }

    /// The header of the group at `position`, if one was written there.
    pub(crate) fn header(&mut self, position: Position) -> Result<Option<GroupHeader>, LogError> {
        let end = position.offset() + GROUP_HEADER_BYTES as u64;
        if end > self.header.bytes {
            return Ok(None);
        }
        let log_id = self.log_id;
        let bytes = self.bytes(position.offset(), GROUP_HEADER_BYTES)?;
        match GroupHeader::decode(position, bytes).filter(|h| log_id.is_none_or(|id| h.log_id == id)) {
            Some(header) if header.flags != 0 => {
                let file = segment_name(self.header.index);
                Err(LogError::NewerFormat { file, found: FORMAT + 1, known: FORMAT })
            }
            found => Ok(found),
        }
    }

    /// The whole group at `position`, if it was written there and holds; else nothing.
    pub(crate) fn group(&mut self, position: Position) -> Result<Option<(GroupHeader, &[u8])>, LogError> {
        let Some(header) = self.header(position)? else { return Ok(None) };
        let whole = GROUP_HEADER_BYTES as u64 + u64::from(header.body_bytes);
        // The length is checked before anything is allocated for it.
        if position.offset() + whole > self.header.bytes {
            return Ok(None);
        }
        let bytes = self.bytes(position.offset(), whole as usize)?;
        Ok(group_holds(&header, bytes).then_some((header, bytes)))
    }

    /// `length` bytes at `offset`; fewer if the file ends before.
    fn bytes(&mut self, offset: u64, length: usize) -> Result<&[u8], LogError> {
        let held = self.base..self.base + self.filled as u64;
        if !(held.contains(&offset) && offset + length as u64 <= held.end) {
            self.refill(offset, length)?;
        }
        let from = (offset - self.base) as usize;
        Ok(&self.buffer[from.min(self.filled)..(from + length).min(self.filled)])
    }

    fn refill(&mut self, offset: u64, length: usize) -> Result<(), LogError> {
        let left = self.header.bytes.saturating_sub(offset) as usize;
        let wanted = length.max(READ_AT_ONCE).min(left);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let kept = self.keep_from(offset);
        let got =
            disk::read_full(&*self.file, &mut self.buffer[kept..wanted.max(kept)], offset + kept as u64)
                .map_err(|error| LogError::io("read", &segment_name(self.header.index), &error))?;
        self.filled = kept + got;
        Ok(())
    }

    /// Moves what is already held of `offset` onwards to the buffer's front; answers how much that is.
    fn keep_from(&mut self, offset: u64) -> usize {
        let held_end = self.base + self.filled as u64;
        let kept = if (self.base..held_end).contains(&offset) {
            let from = (offset - self.base) as usize;
            self.buffer.copy_within(from..self.filled, 0);
            self.filled - from
        } else {
            0
        };
        self.base = offset;
        kept
    }

    /// The first valid group header at or behind `from`, sector by sector.
    pub(crate) fn find_header(&mut self, from: Position) -> Result<Option<GroupHeader>, LogError> {
        let step = u64::from(self.header.sector);
        let mut offset = from.offset();
        while offset + step <= self.header.bytes {
            let position = Position::at(self.header.index, offset);
            if let Some(header) = self.header(position)? {
                return Ok(Some(header));
            }
            offset += step;
        }
        Ok(None)
    }
}

/// Whether all records of a group are what was written; `bytes` begin with the group's header.
fn group_holds(header: &GroupHeader, bytes: &[u8]) -> bool {
    let (mut at, mut records) = (GROUP_HEADER_BYTES, 0u32);
    while at < bytes.len() {
        let Some(record) = RecordHeader::peek(&bytes[at..]) else { return false };
        let end = at + record.record_bytes();
        if end > bytes.len() || record.epoch != header.epoch {
            return false;
        }
        if !record_holds(header.position.plus(at as u64), &bytes[at..end]) {
            return false;
        }
        records += 1;
        at = end;
    }
    let whole = GROUP_HEADER_BYTES + header.body_bytes as usize;
    at == whole && records == header.records
}

/// Shows the records of a group that holds, from `from` on and before `to`.
pub(crate) fn each_record(
    header: &GroupHeader,
    bytes: &[u8],
    from: Position,
    to: Position,
    apply: &mut Apply<'_>,
) -> Result<u64, LogError> {
    let (mut at, mut shown) = (GROUP_HEADER_BYTES, 0);
    while let Some(record) = RecordHeader::peek(&bytes[at..]) {
        let end = at + record.record_bytes();
        let position = header.position.plus(at as u64);
        if position >= to {
            break;
        }
        if position >= from {
            let next = RecordHeader::peek(&bytes[end..]);
            apply(RecordRef {
                position,
                end: header.position.plus(end as u64),
                time: header.time + i64::from(record.time_offset),
                kind: record.kind,
                bytes: &bytes[at + RECORD_HEADER_BYTES..end],
                first_in_unit: record.starts_unit,
                last_in_unit: next.is_none_or(|next| next.starts_unit),
            })?;
            shown += 1;
        }
        at = end;
    }
    Ok(shown)
}

/// Reads and checks one record by its position.
pub(crate) fn read_record(
    file: &dyn DiskFile,
    segment: &SegmentHeader,
    position: Position,
) -> Result<(u8, Vec<u8>), LogError> {
    let name = || segment_name(segment.index);
    let corrupt = |what: &str| LogError::Corrupt { file: name(), position, what: what.to_owned() };
    let left = segment.bytes.saturating_sub(position.offset()) as usize;
    let mut bytes = vec![0; left.min(GUESSED_RECORD_BYTES)];
    let read = |bytes: &mut [u8], at: usize| {
        disk::read_full(file, bytes, position.offset() + at as u64)
            .map_err(|error| LogError::io("read", &name(), &error))
    };
    let got = read(&mut bytes, 0)?;
    let header = RecordHeader::peek(&bytes[..got]).ok_or_else(|| corrupt("a record's header is cut off"))?;
    let whole = header.record_bytes();
    if whole > left {
        return Err(corrupt("a record's length leads out of its segment"));
    }
    if whole > got {
        bytes.resize(whole, 0);
        if read(&mut bytes[got..], got)? < whole - got {
            return Err(corrupt("a record is cut off"));
        }
    }
    bytes.truncate(whole);
    if !record_holds(position, &bytes) {
        return Err(damaged_record(segment, position));
    }
    Ok((header.kind, bytes))
}

/// A record that is not what was written there.
pub(crate) fn damaged_record(segment: &SegmentHeader, position: Position) -> LogError {
    LogError::Corrupt {
        file: segment_name(segment.index),
        position,
        what: "a record's checksum does not match".to_owned(),
    }
}

/// What is read of a record before its length is known.
const GUESSED_RECORD_BYTES: usize = 2048;

/// A checksum for whole small files, as the caller's snapshots are.
pub(crate) fn file_checksum(bytes: &[u8]) -> u32 {
    checksum(Position::ZERO, bytes)
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
