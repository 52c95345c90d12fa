//! Reading: one record by its position, or a stretch of the log from front to back.

use std::sync::atomic::Ordering::*;

use bytes::Bytes;

use crate::frame::RECORD_HEADER_BYTES;
use crate::log::Log;
use crate::segment::{SEGMENT_HEADER_BYTES, segment_name};
use crate::walk::{Apply, RecordRef, Walker, each_record, read_record};
use crate::{LogError, Position};

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The caller's own mark.
    pub kind: u8,
    /// The record's bytes. They may keep a whole group in memory: copy what is held for long.
    pub bytes: Bytes,
}

impl Log {
    /// Reads one record.
    ///
    /// `position` must be a record's own. What was appended lately is answered from memory, without copying
    /// once it is on its way to the disk; else the file is read and the checksum verified.
    ///
    /// Errors: [`LogError::OutOfRange`], [`LogError::Corrupt`], the disk's errors. Works on a poisoned log.
    pub fn read(&self, position: Position) -> Result<Record, LogError> {
        let shared = &*self.shared;
        // Groups move from `head` to `tail` before `taken` says so: looked for in this order, none is missed.
        if position.0 >= shared.taken.load(Acquire)
            && let Some((kind, bytes)) = shared.head.lock().record(position)
        {
            return Ok(Record { kind, bytes });
        }
        if let Some((kind, bytes)) = shared.tail.record(position) {
            return Ok(Record { kind, bytes });
        }
        let segment = shared.stock.segment(position.segment());
        let Some(segment) = segment.filter(|_| position < self.progress().written) else {
            return Err(self.out_of_range(position));
        };
        let file = shared.stock.reader(segment.index)?;
        let (kind, record) = read_record(&*file, &segment, position)?;
        Ok(Record { kind, bytes: Bytes::from(record).slice(RECORD_HEADER_BYTES..) })
    }

    fn out_of_range(&self, position: Position) -> LogError {
        LogError::OutOfRange { position, first: self.shared.stock.first(), end: self.progress().written }
    }

    /// Shows the records from `from` to before `to`, as far as they are written; answers how many.
    ///
    /// Released segments are passed over. Reads the files in large pieces; every group is verified first.
    ///
    /// Errors: [`LogError::Corrupt`], what `apply` answers, the disk's errors.
    pub fn scan(
        &self,
        from: Position,
        to: Position,
        apply: &mut dyn FnMut(RecordRef<'_>) -> Result<(), LogError>,
    ) -> Result<u64, LogError> {
        let to = to.min(self.progress().written);
        let mut shown = 0;
        for segment in self.shared.stock.segments() {
            if segment.end() > from && Position::at(segment.index, 0) < to {
                let file = self.shared.stock.reader(segment.index)?;
                shown += scan_segment(Walker::new(file, segment), from, to, apply)?;
            }
        }
        Ok(shown)
    }
}

fn scan_segment(
    mut walker: Walker,
    from: Position,
    to: Position,
    apply: &mut Apply<'_>,
) -> Result<u64, LogError> {
    let segment = walker.header;
    let sector = u64::from(segment.sector);
    let mut at = Position::at(segment.index, SEGMENT_HEADER_BYTES);
    let mut shown = 0;
    while at < to {
        let Some(header) = walker.header(at)? else {
            // The log leaves the rest of a segment empty when a unit does not fit; it goes on in the next one.
            return if to.segment() > segment.index { Ok(shown) } else { Err(damaged(at)) };
        };
        let next = at.plus(header.disk_bytes(sector));
        if next > from {
            let (header, bytes) = walker.group(at)?.ok_or_else(|| damaged(at))?;
            shown += each_record(&header, bytes, from, to, apply)?;
        }
        at = next;
    }
    Ok(shown)
}

fn damaged(position: Position) -> LogError {
    LogError::Corrupt {
        file: segment_name(position.segment()),
        position,
        what: "a written group does not hold".to_owned(),
    }
}
