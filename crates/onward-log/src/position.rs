//! Where a record stands: one rising number, from which its segment and offset follow by arithmetic.

use std::fmt;

/// How many positions each segment owns; no segment is larger.
pub const SEGMENT_SPAN: u64 = 1 << 32;

/// The address of a record, or the place just behind one; rises strictly along the log, with gaps.
///
/// `segment index * SEGMENT_SPAN + offset in the segment's file`. Segments count from 1, so that
/// [`Position::ZERO`] lies before every record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

impl Position {
    /// Before every record.
    pub const ZERO: Position = Position(0);

    /// The position at `offset` bytes into the file of segment `index`.
    pub const fn at(index: u32, offset: u64) -> Position {
        Position(index as u64 * SEGMENT_SPAN + offset)
    }

    /// The index of the segment that holds this position.
    pub const fn segment(self) -> u32 {
        (self.0 / SEGMENT_SPAN) as u32
    }

    /// The offset in that segment's file, in bytes.
    pub const fn offset(self) -> u64 {
        self.0 % SEGMENT_SPAN
    }

    pub(crate) const fn plus(self, bytes: u64) -> Position {
        Position(self.0 + bytes)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.segment(), self.offset())
    }
}
