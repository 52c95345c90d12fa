//! Reading ahead: records that are asked for one behind the other come from one large read.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;

use crate::disk::{self, DiskFile};
use crate::frame::{RECORD_HEADER_BYTES, record_holds, whole_record};
use crate::segment::{SegmentHeader, segment_name};
use crate::{LogError, Position};

/// A record is asked for behind another when it begins at most so many bytes behind it.
const NEAR_BYTES: u64 = 64 << 10;
/// What is read at once, in bytes.
const PIECE_BYTES: u64 = 256 << 10;
/// Pieces that are kept.
const PIECES: usize = 4;

/// The pieces read last. What was written never changes, so none is ever wrong; those of released segments must not be
/// asked for.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    kept: Mutex<Kept>,
    /// Held while a piece is read, so that no two read the same.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    pieces: VecDeque<Piece>,
    /// The record that was asked for last and was in no piece.
    last: Position,
}

#[derive(Debug, Clone)]
struct Piece {
    start: Position,
    bytes: Bytes,
}

impl Ahead {
    /// The record at `position`, if it is in a piece or follows what was asked for before; `written` ends what may be
    /// read.
    ///
    /// Nothing is answered for a record that does not hold: the single read says what is wrong with it.
    pub(crate) fn record(
        &self,
        file: &dyn DiskFile,
        segment: &SegmentHeader,
        position: Position,
        written: Position,
    ) -> Result<Option<(u8, Bytes)>, LogError> {
        let follows = {
            let mut kept = self.kept.lock();
            if let Some(record) = kept.pieces.iter().rev().find_map(|piece| piece.record(position)) {
                return Ok(Some(record));
            }
            let last = std::mem::replace(&mut kept.last, position);
            last < position && position.0 - last.0 <= NEAR_BYTES
        };
        let Some(_reading) = follows.then(|| self.reading.try_lock()).flatten() else { return Ok(None) };
        let piece = Piece::read(file, segment, position, written)?;
        let record = piece.record(position);
        let mut kept = self.kept.lock();
        if kept.pieces.len() == PIECES {
            kept.pieces.pop_front();
        }
        kept.pieces.push_back(piece);
        Ok(record)
    }
}

impl Piece {
    fn read(
        file: &dyn DiskFile,
        segment: &SegmentHeader,
        start: Position,
        written: Position,
    ) -> Result<Self, LogError> {
        // What lies behind may be written at this moment.
        let end = if written.segment() == segment.index { written.offset() } else { segment.bytes };
        let mut bytes = vec![0; end.saturating_sub(start.offset()).min(PIECE_BYTES) as usize];
        let got = disk::read_full(file, &mut bytes, start.offset())
            .map_err(|error| LogError::io("read", &segment_name(segment.index), &error))?;
        bytes.truncate(got);
        Ok(Self { start, bytes: bytes.into() })
    }

    fn record(&self, position: Position) -> Option<(u8, Bytes)> {
        let from = position.0.checked_sub(self.start.0)? as usize;
        let (kind, record) = whole_record(&self.bytes, from)?;
        record_holds(position, record)
            .then(|| (kind, self.bytes.slice(from + RECORD_HEADER_BYTES..from + record.len())))
    }
}
