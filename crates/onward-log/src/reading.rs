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
    /// once it is on its way to the disk; else the file is read, ahead of those that follow where one is asked for behind
    /// the other, and the checksum verified.
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
        let read = shared.stock.reader(segment.index).and_then(|file| {
            let written = self.progress().written;
            if let Some((kind, bytes)) = shared.ahead.record(&*file, &segment, position, written)? {
                return Ok(Record { kind, bytes });
            }
            let (kind, record) = read_record(&*file, &segment, position)?;
            Ok(Record { kind, bytes: Bytes::from(record).slice(RECORD_HEADER_BYTES..) })
        });
        match read {
            // Released meanwhile: its file has another name, or bytes of another segment.
            Err(_) if shared.stock.segment(segment.index).is_none() => Err(self.out_of_range(position)),
            read => read,
        }
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
                let mut walker = Walker::new(self.shared.stock.reader(segment.index)?, segment);
                let scanned = scan_segment(&mut walker, from, to, apply)?;
                if scanned.end < to {
                    self.check_end(&mut walker, &scanned, to)?;
                }
                shown += scanned.shown;
            }
        }
        Ok(shown)
    }

    /// Tells the end of a segment from damage in it: the rest is left empty when a unit does not fit, and the
    /// first group of the next segment says where it follows.
    fn check_end(&self, walker: &mut Walker, scanned: &Scanned, to: Position) -> Result<(), LogError> {
        let next = walker.header.index + 1;
        let holds = match self.shared.stock.segment(next) {
            _ if to.segment() < next => false,
            Some(segment) => {
                let mut walker = Walker::new(self.shared.stock.reader(next)?, segment);
                let first = walker.header(Position::at(next, SEGMENT_HEADER_BYTES))?;
                // One that does not hold is found when its segment is scanned.
                first.is_none_or(|first| first.follows == scanned.end)
            }
            // The next one is released: then nothing of this epoch may stand behind the end.
            None => walker.find_header(scanned.end)?.is_none_or(|found| found.epoch < scanned.epoch),
        };
        if holds { Ok(()) } else { Err(damaged(scanned.end)) }
    }
}

/// How far a segment was scanned.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    shown: u64,
    /// Behind the last group.
    end: Position,
    epoch: u32,
}

fn scan_segment(
    walker: &mut Walker,
    from: Position,
    to: Position,
    apply: &mut Apply<'_>,
) -> Result<Scanned, LogError> {
    let sector = u64::from(walker.header.sector);
    let begin = Position::at(walker.header.index, SEGMENT_HEADER_BYTES);
    let mut scanned = Scanned { shown: 0, end: begin, epoch: 0 };
    while scanned.end < to {
        let at = scanned.end;
        // A group of an older epoch is left over from before a cut.
        let Some(header) = walker.header(at)?.filter(|header| header.epoch >= scanned.epoch) else { break };
        let next = at.plus(header.disk_bytes(sector));
        if next > from {
            let (header, bytes) = walker.group(at)?.ok_or_else(|| damaged(at))?;
            scanned.shown += each_record(&header, bytes, from, to, apply)?;
        }
        (scanned.end, scanned.epoch) = (next, header.epoch);
    }
    Ok(scanned)
}

fn damaged(position: Position) -> LogError {
    LogError::Corrupt {
        file: segment_name(position.segment()),
        position,
        what: "a written group does not hold".to_owned(),
    }
}
