//! Reading many records in one go: those that lie near each other with one read of their file.

use std::sync::atomic::Ordering::Acquire;

use bytes::Bytes;

use crate::aligned::AlignedBuf;
use crate::disk;
use crate::frame::{RECORD_HEADER_BYTES, record_holds, whole_record};
use crate::group::record_in;
use crate::log::Log;
use crate::segment::{SegmentHeader, segment_name};
use crate::walk::damaged_record;
use crate::{LogError, Position};

/// Records are read together while no more than this lies between the beginnings of two, in bytes.
const APART_BYTES_MAX: u64 = 16 << 10;
/// What is read of the last record of a piece, whose length is not known before, in bytes.
const LAST_BYTES: u64 = 2 << 10;
/// Most that lies between the beginnings of the records that are read at once, in bytes.
const SPAN_BYTES_MAX: u64 = (256 << 10) - LAST_BYTES;

/// A record among many that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Which of the positions asked for, counted from 0.
    pub index: usize,
    /// The caller's own mark.
    pub kind: u8,
    /// The record's bytes.
    pub bytes: &'a [u8],
}

/// What a caller does with each record; answers whether it wants more.
type Each<'a> = dyn FnMut(Found<'_>) -> bool + 'a;

impl Log {
    /// Reads the records at these positions, in the order given, until `each` answers that it has enough.
    ///
    /// Each must be a record's own position. Records that lie near each other, in either direction, are read together, in
    /// pieces of at most 256 KiB; each one's checksum is verified. Those of released segments are passed over: their
    /// index is not among those shown.
    ///
    /// Errors: [`LogError::Corrupt`], the disk's errors. Works on a poisoned log.
    pub fn read_many(
        &self,
        positions: &[Position],
        each: &mut dyn FnMut(Found<'_>) -> bool,
    ) -> Result<(), LogError> {
        let mut at = 0;
        while at < positions.len() {
            let done = match self.in_memory(positions[at]) {
                Some(group) => show_group(&group, positions, at, each),
                None => self.show_piece(positions, at, each)?,
            };
            match done {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The bytes in memory among which the record at `position` stands.
    fn in_memory(&self, position: Position) -> Option<InMemory> {
        let shared = &*self.shared;
        // The same order as for a single record: groups move from `head` to `tail` before `taken` says so.
        if position.0 >= shared.taken.load(Acquire)
            && let Some((kind, bytes)) = shared.head.lock().record(position)
        {
            return Some(InMemory::Record(kind, bytes));
        }
        let (start, bytes) = shared.tail.group(position)?;
        Some(InMemory::Group { start, bytes, epoch: self.epoch() })
    }

    /// Reads the piece of a file that begins with `positions[at]`; answers which position follows it, if more are wanted.
    fn show_piece(
        &self,
        positions: &[Position],
        at: usize,
        each: &mut Each<'_>,
    ) -> Result<Option<usize>, LogError> {
        let written = self.progress().written;
        let segment = self.shared.stock.segment(positions[at].segment());
        let Some(segment) = segment.filter(|_| positions[at] < written) else { return Ok(Some(at + 1)) };
        let run = Run::of(&positions[at..], written);
        let (buffer, got) = match self.piece(&run, &segment) {
            Ok(read) => read,
            Err(_) if self.is_released(&segment) => return Ok(Some(at + run.count)),
            Err(error) => return Err(error),
        };
        for (index, position) in positions.iter().enumerate().skip(at).take(run.count) {
            let from = (position.0 - run.least.0) as usize;
            let more = match whole_record(&buffer[..got], from) {
                Some((kind, record)) if record_holds(*position, record) => {
                    each(Found { index, kind, bytes: &record[RECORD_HEADER_BYTES..] })
                }
                // Perhaps written anew, as a part of another segment.
                Some(_) if self.is_released(&segment) => true,
                Some(_) => return Err(damaged_record(&segment, *position)),
                // Cut off by the end of the piece.
                None => match self.read(*position) {
                    Ok(record) => each(Found { index, kind: record.kind, bytes: &record.bytes }),
                    Err(LogError::OutOfRange { .. }) => true,
                    Err(error) => return Err(error),
                },
            };
            if !more {
                return Ok(None);
            }
        }
        Ok(Some(at + run.count))
    }

    /// The bytes of a run and how many there are, as far as they go in one read.
    fn piece(&self, run: &Run, segment: &SegmentHeader) -> Result<(AlignedBuf, usize), LogError> {
        let file = self.shared.stock.reader(segment.index)?;
        let held = run.bytes(segment);
        // One that was used before: new memory costs more than what is read into it.
        let mut buffer = self.shared.buffers.take(held);
        let got = disk::read_full(&*file, &mut buffer[..held], run.least.offset())
            .map_err(|error| LogError::io("read", &segment_name(segment.index), &error))?;
        Ok((buffer, got))
    }

    fn is_released(&self, segment: &SegmentHeader) -> bool {
        self.shared.stock.segment(segment.index).is_none()
    }
}

/// What is answered from memory: one record of the open group, or a closed group.
enum InMemory {
    Record(u8, Bytes),
    Group { start: Position, bytes: Bytes, epoch: u32 },
}

/// Shows the records from `positions[at]` on that stand in the same bytes; answers which one follows, if more are wanted.
fn show_group(held: &InMemory, positions: &[Position], at: usize, each: &mut Each<'_>) -> Option<usize> {
    let (start, group, epoch) = match held {
        InMemory::Record(kind, bytes) => {
            return each(Found { index: at, kind: *kind, bytes }).then_some(at + 1);
        }
        InMemory::Group { start, bytes, epoch } => (*start, bytes, *epoch),
    };
    let end = start.plus(group.len() as u64);
    let within = positions.iter().enumerate().skip(at).take_while(|(_, p)| (start..end).contains(p));
    let mut next = at;
    for (index, position) in within {
        if let Some((kind, bytes)) = record_in(group, (position.0 - start.0) as usize, epoch)
            && !each(Found { index, kind, bytes: &group[bytes] })
        {
            return None;
        }
        next = index + 1;
    }
    Some(next)
}

/// Positions that are read together.
struct Run {
    count: usize,
    least: Position,
    most: Position,
}

impl Run {
    /// The longest run that `positions` begin with.
    fn of(positions: &[Position], written: Position) -> Run {
        let mut run = Run { count: 1, least: positions[0], most: positions[0] };
        for pair in positions.windows(2) {
            let (least, most) = (run.least.min(pair[1]), run.most.max(pair[1]));
            let near = pair[0].0.abs_diff(pair[1].0) <= APART_BYTES_MAX && most.0 - least.0 <= SPAN_BYTES_MAX;
            if !near || least.segment() != most.segment() || most >= written {
                break;
            }
            run = Run { count: run.count + 1, least, most };
        }
        run
    }

    /// How much of the segment it takes, in bytes.
    fn bytes(&self, segment: &SegmentHeader) -> usize {
        (self.most.0 - self.least.0 + LAST_BYTES).min(segment.bytes.saturating_sub(self.least.offset()))
            as usize
    }
}
