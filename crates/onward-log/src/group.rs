//! The group being filled: units are encoded straight into the buffer that goes to the disk.

use std::sync::Arc;

use bytes::Bytes;

use crate::aligned::{AlignedBuf, BufferStore};
use crate::frame::{GROUP_HEADER_BYTES, GroupHeader, RECORD_HEADER_BYTES, RecordHeader};
use crate::{LogError, Position};

/// The size of a unit to be appended: an upper bound is enough, but room for all of it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitSize {
    /// How many records.
    pub records: usize,
    /// How many bytes in all records together.
    pub bytes: usize,
}

impl UnitSize {
    /// Bytes in the log, headers included.
    pub const fn encoded(self) -> u64 {
        self.records as u64 * RECORD_HEADER_BYTES as u64 + self.bytes as u64
    }
}

/// A group that units are added to.
#[derive(Debug)]
pub(crate) struct OpenGroup {
    buffer: AlignedBuf,
    pub(crate) start: Position,
    /// Bytes of the header and all whole units; what lies behind is not part of the group.
    used: usize,
    pub(crate) records: u32,
    time: i64,
    epoch: u32,
}

/// A group that is complete, with its header; what goes to the disk is `bytes`.
#[derive(Clone, Debug)]
pub(crate) struct SealedGroup {
    pub(crate) start: Position,
    pub(crate) bytes: Bytes,
    /// Memory that `bytes` keeps.
    pub(crate) held: u64,
    /// What the group counted in the log's pending bytes.
    pub(crate) pending: u64,
}

impl SealedGroup {
    pub(crate) fn end(&self) -> Position {
        self.start.plus(self.bytes.len() as u64)
    }
}

/// What a group's header says besides the group's own content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    pub(crate) log_id: u64,
    pub(crate) follows: Position,
    pub(crate) synced_through: Position,
    pub(crate) sector: u64,
}

impl OpenGroup {
    pub(crate) fn new(store: &Arc<BufferStore>, start: Position, epoch: u32, capacity: usize) -> OpenGroup {
        let buffer = store.take(capacity.max(GROUP_HEADER_BYTES));
        OpenGroup { buffer, start, used: GROUP_HEADER_BYTES, records: 0, time: 0, epoch }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Where the group would end with `more` bytes, in whole sectors.
    pub(crate) fn end_with(&self, more: u64, sector: u64) -> Position {
        self.start.plus((self.used as u64 + more).next_multiple_of(sector))
    }

    /// Whether a unit of this time can say its distance from the group's time.
    pub(crate) fn takes_time(&self, time: i64) -> bool {
        self.is_empty() || time.checked_sub(self.time).is_some_and(|apart| i32::try_from(apart).is_ok())
    }

    /// Begins a unit of `size`; nothing of it counts until [`Unit::finish`].
    pub(crate) fn unit(&mut self, store: &Arc<BufferStore>, size: UnitSize, time: i64) -> Unit<'_> {
        if self.is_empty() {
            self.time = time;
        }
        let end = self.used + size.encoded() as usize;
        self.grow(store, end);
        let (at, time_offset) = (self.used, (time - self.time) as i32);
        Unit { group: self, at, end, records: 0, time_offset }
    }

    fn grow(&mut self, store: &Arc<BufferStore>, capacity: usize) {
        if capacity > self.buffer.len() {
            let mut larger = store.take(capacity);
            larger[..self.used].copy_from_slice(&self.buffer[..self.used]);
            self.buffer = larger;
        }
    }

    /// A record's own bytes, copied; `position` lies in this group.
    pub(crate) fn record(&self, position: Position) -> Option<(u8, Bytes)> {
        let at = position.0.checked_sub(self.start.0)? as usize;
        let (kind, bytes) = record_in(&self.buffer[..self.used], at, self.epoch)?;
        Some((kind, Bytes::copy_from_slice(&self.buffer[bytes])))
    }

    /// Closes the group: header, padding, no more units.
    pub(crate) fn seal(mut self, seal: Seal) -> SealedGroup {
        let header = GroupHeader {
            flags: 0,
            log_id: seal.log_id,
            position: self.start,
            follows: seal.follows,
            synced_through: seal.synced_through,
            time: self.time,
            epoch: self.epoch,
            body_bytes: (self.used - GROUP_HEADER_BYTES) as u32,
            records: self.records,
        };
        header.encode(&mut self.buffer[..GROUP_HEADER_BYTES]);
        let whole = self.used.next_multiple_of(seal.sector as usize);
        if whole > self.buffer.len() {
            // The buffer is a power of two of at least 4096: only a larger sector comes here.
            let mut padded = AlignedBuf::zeroed(whole);
            padded[..self.used].copy_from_slice(&self.buffer[..self.used]);
            self.buffer = padded;
        }
        self.buffer[self.used..whole].fill(0);
        let pending = (self.used - GROUP_HEADER_BYTES) as u64;
        let held = self.buffer.held();
        SealedGroup { start: self.start, bytes: Bytes::from_owner(self.buffer).slice(..whole), held, pending }
    }
}

/// Where a record's own bytes lie in a group's bytes, if one of `epoch` begins `at`.
pub(crate) fn record_in(group: &[u8], at: usize, epoch: u32) -> Option<(u8, std::ops::Range<usize>)> {
    let header = RecordHeader::peek(group.get(at..)?)?;
    let end = at.checked_add(header.record_bytes())?;
    (header.epoch == epoch && end <= group.len()).then_some((header.kind, at + RECORD_HEADER_BYTES..end))
}

/// The records of one append, all kept or none.
#[derive(Debug)]
pub struct Unit<'a> {
    group: &'a mut OpenGroup,
    at: usize,
    end: usize,
    records: u32,
    time_offset: i32,
}

impl Unit<'_> {
    /// Adds a record whose bytes are the parts one behind the other; answers where it will stand.
    ///
    /// Errors: [`LogError::TooLarge`] when the unit grows past the size it was announced with.
    pub fn record(&mut self, kind: u8, parts: &[&[u8]]) -> Result<Position, LogError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let end = self.at + RECORD_HEADER_BYTES + bytes;
        if end > self.end {
            return Err(LogError::TooLarge {
                bytes: (end - self.group.used) as u64,
                max: (self.end - self.group.used) as u64,
            });
        }
        let position = self.group.start.plus(self.at as u64);
        let record = &mut self.group.buffer[self.at..end];
        let mut to = RECORD_HEADER_BYTES;
        for part in parts {
            record[to..to + part.len()].copy_from_slice(part);
            to += part.len();
        }
        let header = RecordHeader {
            bytes: bytes as u32,
            epoch: self.group.epoch,
            time_offset: self.time_offset,
            kind,
            starts_unit: self.records == 0,
        };
        header.encode(position, record);
        self.at = end;
        self.records += 1;
        Ok(position)
    }

    /// Where the next record will stand.
    pub fn position(&self) -> Position {
        self.group.start.plus(self.at as u64)
    }

    /// Makes the unit part of the group; answers how many bytes it took.
    pub(crate) fn finish(self) -> u64 {
        let taken = self.at - self.group.used;
        self.group.used = self.at;
        self.group.records += self.records;
        taken as u64
    }
}
