//! Archive files: records that live long, moved out of the log's segments once, in order, at the positions they have.
//!
//! ```text
//! FROM-TO.arch = head block* index foot
//! head  = "OnwrdArc" format (4) checksum (4) log id (8) from (8) to (8) 0 (24)
//! block = bytes (4) records (4) first position (8) checksum (4) 0 (4) record*
//! record = position (8) time (8) bytes (4) kind (1) 0 (3) the record's own bytes
//! index = (first position (8) place in the file (8) bytes (4) records (4))*, one for each block
//! foot  = place of the index (8) blocks (4) checksum of index and foot (4) records (8) "OnwrdArc"
//! ```
//! Numbers are little-endian; checksums are CRC-32C combined with the place in the file and the log's id. A file holds
//! what is kept of the positions from `from` to before `to`; no two files' ranges overlap. Files never change: one is
//! made beside, and takes the old one's place by its name in one step.

mod format;
mod reader;
mod set;
mod writer;

pub use reader::Archive;
pub use set::{Archives, Fill, Rewritten};
pub use writer::ArchiveWriter;

use crate::Position;

/// The newest format of archive files that this code reads, and the one it writes.
///
/// To change it: raise this, keep the old decoder beside the new one, and keep a file of the old format in
/// `tests/fixtures`.
pub const ARCHIVE_FORMAT: u32 = 1;

/// A record as an archive holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archived<'a> {
    /// Where it stood in the log, which is what it is read by.
    pub position: Position,
    /// The wall time that its unit was appended with, in microseconds.
    pub time: i64,
    /// The caller's own mark.
    pub kind: u8,
    /// The record's bytes.
    pub bytes: &'a [u8],
}
