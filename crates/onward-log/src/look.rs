//! Looking at a segment from outside, while its log may go on: which whole groups stand in it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::{self, DiskFile};
use crate::frame::GroupHeader;
use crate::segment::{HeaderBlock, SEGMENT_HEADER_BYTES, read_header_of, segment_name};
use crate::walk::{Apply, Walker, each_record};
use crate::{LogError, Position};

/// A reader of one segment, which needs neither the log nor its lock.
///
/// Guarantees: only whole groups are shown, each checked, each following the one before; what is being written
/// meanwhile is not there yet. What it has read stays in its buffer: for what came later, look anew.
#[derive(Debug)]
pub struct SegmentLook {
    walker: Walker,
    at: Position,
    epoch: u32,
    /// Whether the next group must follow `at`; the segment's first one follows another segment.
    chained: bool,
}

/// A group that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Where it begins.
    pub start: Position,
    /// Where it ends, padding included: where the next one can begin.
    pub end: Position,
    /// Where the group before it ends, in this segment or an earlier one.
    pub follows: Position,
    /// The opening of the log that wrote it.
    pub epoch: u32,
    /// The wall time of its first unit, in microseconds.
    pub time: i64,
    /// How many records it has; none in what only attests.
    pub records: u32,
    /// Its bytes without the padding, which is zeros.
    pub bytes: &'a [u8],
    header: GroupHeader,
}

impl Group<'_> {
    /// Shows its records in order.
    ///
    /// Errors: what `apply` answers.
    pub fn each(&self, apply: &mut Apply<'_>) -> Result<(), LogError> {
        each_record(&self.header, self.bytes, Position::ZERO, Position(u64::MAX), apply).map(drop)
    }
}

impl SegmentLook {
    /// Looks at segment `index` in `file`; nothing if the file does not begin as that segment does.
    ///
    /// Errors: [`LogError::NewerFormat`], the disk's.
    pub fn new(index: u32, file: Arc<dyn DiskFile>) -> Result<Option<SegmentLook>, LogError> {
        match read_header_of(&*file, index)? {
            HeaderBlock::Valid(header) => Ok(Some(SegmentLook {
                walker: Walker::new(file, header),
                at: Position::at(index, SEGMENT_HEADER_BYTES),
                epoch: 0,
                chained: false,
            })),
            HeaderBlock::Damaged => Ok(None),
            HeaderBlock::Newer(found) => {
                Err(LogError::NewerFormat { file: segment_name(index), found, known: crate::FORMAT })
            }
        }
    }

    /// Goes on at `at`, the end of a group of this segment that was of `epoch`.
    pub fn go_on(&mut self, at: Position, epoch: u32) {
        self.chained = at.offset() > SEGMENT_HEADER_BYTES;
        (self.at, self.epoch) = (at.max(Position::at(at.segment(), SEGMENT_HEADER_BYTES)), epoch);
    }

    /// Goes on in another file that holds the same segment's next bytes.
    pub fn read_from(&mut self, file: Arc<dyn DiskFile>) {
        self.walker = Walker::new(file, self.walker.header);
    }

    /// Behind the last group shown.
    pub fn at(&self) -> Position {
        self.at
    }

    /// The id of the log that the segment belongs to.
    pub fn log_id(&self) -> u64 {
        self.walker.header.log_id
    }

    /// The size of the whole segment's file, in bytes.
    pub fn segment_bytes(&self) -> u64 {
        self.walker.header.bytes
    }

    /// The next group, if a whole one follows.
    ///
    /// Errors: [`LogError::NewerFormat`], the disk's.
    pub fn next_group(&mut self) -> Result<Option<Group<'_>>, LogError> {
        let (at, epoch, chained) = (self.at, self.epoch, self.chained);
        let sector = u64::from(self.walker.header.sector);
        let Some((header, bytes)) = self.walker.group(at)? else { return Ok(None) };
        if header.epoch < epoch || (chained && header.follows != at) {
            return Ok(None);
        }
        let end = at.plus(header.disk_bytes(sector));
        (self.at, self.epoch, self.chained) = (end, header.epoch, true);
        Ok(Some(Group {
            start: at,
            end,
            follows: header.follows,
            epoch: header.epoch,
            time: header.time,
            records: header.records,
            bytes,
            header,
        }))
    }

    /// The segment's first block, as it stands in a file.
    ///
    /// Errors: the disk's, and a file that is cut.
    pub fn first_block(&self, file: &dyn DiskFile) -> Result<Vec<u8>, LogError> {
        let name = segment_name(self.walker.header.index);
        let mut block = vec![0; SEGMENT_HEADER_BYTES as usize];
        let got =
            disk::read_full(file, &mut block, 0).map_err(|error| LogError::io("read", &name, &error))?;
        if got < block.len() {
            return Err(LogError::io("read", &name, &io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(block)
    }
}

/// Some bytes of a file, in memory, where they stand in it; the rest of the file is not there.
#[derive(Clone, Debug)]
pub struct Part {
    from: u64,
    bytes: Bytes,
}

impl Part {
    /// The bytes that stand at `from`.
    pub fn new(from: u64, bytes: Bytes) -> Part {
        Part { from, bytes }
    }

    /// Where in the file they stand.
    pub fn range(&self) -> Range<u64> {
        self.from..self.from + self.bytes.len() as u64
    }
}

impl DiskFile for Part {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(skipped) = offset.checked_sub(self.from) else { return Ok(0) };
        let there = self.bytes.get(usize::try_from(skipped).unwrap_or(usize::MAX)..).unwrap_or_default();
        let read = there.len().min(buffer.len());
        buffer[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<bool> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.range().end)
    }
}
