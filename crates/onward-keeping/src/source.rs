//! A data folder read from outside, whoever has it open: whole groups of its log, as they become durable.

use crate::{file::ReadOnly, names};
use bytes::Bytes;
use onward_core::{Error, Position, Result};
use onward_embedded::outside;
use onward_log::{DiskFile, LogError, Overlay, SegmentLook, segment_index, segment_name};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Most bytes of one object; a single group may be larger.
pub(crate) const PART_BYTES: usize = 16 << 20;

/// A data folder.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) dir: PathBuf,
}

/// Where reading goes on: in a segment, at an offset of its file; 0 when nothing of it was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) epoch: u32,
}

impl Cursor {
    pub(crate) fn position(self) -> onward_log::Position {
        onward_log::Position::at(self.segment, self.offset)
    }
}

/// Whole groups of one segment, durable in the folder.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) from: u64,
    pub(crate) bytes: Bytes,
    pub(crate) end: Cursor,
    /// When its last unit was written; none where it only attests.
    pub(crate) last_us: Option<i64>,
}

/// What stands behind a cursor.
#[derive(Debug)]
pub(crate) enum Behind {
    /// Groups in the same segment.
    Stretch(Stretch),
    /// Nothing yet: it is the log's end.
    Nothing,
    /// The log goes on in the next segment.
    NextSegment,
    /// The segment was released meanwhile.
    Gone,
}

/// What a copy is built on.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) snapshot: Option<Position>,
    /// Indexes of the segments, in rising order.
    pub(crate) segments: Vec<u32>,
}

impl Source {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Checks that it is a data folder of a format that this version knows.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_known(outside::FORMAT).map(drop)
    }

    /// The same for a version that knows formats up to `known`; answers the folder's.
    pub(crate) fn check_known(&self, known: u32) -> Result<u32> {
        let format = self.dir.join(outside::FORMAT_NAME);
        match std::fs::read(&format) {
            Ok(bytes) => outside::check_format_up_to(&bytes, known),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::not_found("is not a data folder: it has no format file")
                    .at(self.dir.display())
                    .mend("name the data folder with --data-dir"))
            }
            Err(error) => Err(Error::unavailable(format!("can't be read: {error}")).at(format.display())),
        }
    }

    pub(crate) fn path(&self, index: u32) -> PathBuf {
        self.dir.join("log").join(segment_name(index))
    }

    pub(crate) fn snapshots(&self) -> Overlay {
        Overlay::new(&self.dir.join("snapshots"))
    }

    /// The newest snapshot that holds, and the segments that there are now.
    pub(crate) fn base(&self) -> Result<Base> {
        let snapshot = self.snapshot(u64::MAX)?;
        Ok(Base { snapshot, segments: self.segments()? })
    }

    /// The newest snapshot that holds of those at or before `end`.
    pub(crate) fn snapshot(&self, end: u64) -> Result<Option<Position>> {
        let disk = self.snapshots();
        let there = outside::snapshots(&disk)?;
        Ok(there.into_iter().filter(|at| at.0 <= end).find(|at| outside::check_snapshot(&disk, *at).is_ok()))
    }

    pub(crate) fn segments(&self) -> Result<Vec<u32>> {
        let log = self.dir.join("log");
        let failed = |error| Error::unavailable(format!("can't be listed: {error}")).at(log.display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&log).map_err(failed)? {
            found.extend(segment_index(&entry.map_err(failed)?.file_name().to_string_lossy()));
        }
        found.sort_unstable();
        Ok(found)
    }

    fn look(&self, index: u32) -> Result<Option<(Arc<ReadOnly>, SegmentLook)>> {
        let file = match File::open(self.path(index)) {
            Ok(file) => Arc::new(ReadOnly(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(
                    Error::unavailable(format!("can't be opened: {error}")).at(self.path(index).display())
                );
            }
        };
        let look = SegmentLook::new(index, file.clone()).map_err(|error| self.failed(&error))?;
        Ok(look.map(|look| (file, look)))
    }

    fn failed(&self, error: &LogError) -> Error {
        let text = error.to_string();
        match error {
            LogError::NewerFormat { .. } => Error::unsupported(text),
            LogError::Corrupt { .. } => Error::corrupt(text),
            _ => Error::unavailable(text),
        }
        .at(self.dir.display())
    }

    /// Reads on behind `cursor`; what is answered is durable.
    ///
    /// # Errors
    /// `Corrupt` where groups are damaged that others follow, the disk's.
    pub(crate) fn behind(&self, cursor: Cursor) -> Result<Behind> {
        // What was still under way at the first look stands there at the second, if the log has gone on since.
        for _ in 0..2 {
            match self.stretch(cursor)? {
                Behind::Nothing => {}
                found => return Ok(found),
            }
            match self.first_of_next(cursor.segment)? {
                None => return Ok(Behind::Nothing),
                Some(follows) if follows == cursor.position() => return Ok(Behind::NextSegment),
                Some(_) => {}
            }
        }
        if !self.path(cursor.segment).exists() {
            return Ok(Behind::Gone);
        }
        Err(Error::corrupt("a group does not hold, and others follow it")
            .at(format!("{} at {}", segment_name(cursor.segment), cursor.position()))
            .mend("run `onward verify` on the folder; see the guide on keeping"))
    }

    /// Where the first group of the next segment says that the log went on from.
    fn first_of_next(&self, index: u32) -> Result<Option<onward_log::Position>> {
        let Some((_, mut look)) = self.look(index + 1)? else { return Ok(None) };
        let first = look.next_group().map_err(|error| self.failed(&error))?;
        Ok(first.map(|group| group.follows))
    }

    fn stretch(&self, cursor: Cursor) -> Result<Behind> {
        let Some((file, mut look)) = self.look(cursor.segment)? else {
            return Ok(if self.path(cursor.segment).exists() { Behind::Nothing } else { Behind::Gone });
        };
        let failed = |error: LogError| self.failed(&error);
        let mut bytes =
            if cursor.offset == 0 { look.first_block(&*file).map_err(failed)? } else { Vec::new() };
        look.go_on(cursor.position(), cursor.epoch);
        let (mut end, mut last_us, mut groups) = (cursor, None, 0);
        while let Some(group) = look.next_group().map_err(failed)? {
            if groups > 0 && bytes.len() + group.bytes.len() > PART_BYTES {
                break;
            }
            bytes.extend_from_slice(group.bytes);
            let padded = group.end.offset() - cursor.offset;
            bytes.resize(padded as usize, 0);
            end = Cursor { segment: cursor.segment, offset: group.end.offset(), epoch: group.epoch };
            last_us = if group.records > 0 { Some(group.time) } else { last_us };
            groups += 1;
        }
        if groups == 0 {
            return Ok(Behind::Nothing);
        }
        // The writer may not have come to its own sync yet; a copy must never hold what a power cut takes from it.
        file.sync_data().map_err(|error| Error::unavailable(format!("can't be synced: {error}")))?;
        Ok(Behind::Stretch(Stretch { from: cursor.offset, bytes: bytes.into(), end, last_us }))
    }

    /// Where a copy that ends at `to` of a segment goes on, if the folder holds the same bytes as its last span.
    pub(crate) fn resume(&self, segment: u32, last: names::Span) -> Result<Resumed> {
        let Some((file, mut look)) = self.look(segment)? else { return Ok(Resumed::Gone) };
        let mut bytes = match last.from {
            0 => look.first_block(&*file).map_err(|error| self.failed(&error))?,
            _ => Vec::new(),
        };
        let (mut cursor, mut last_us) = (Cursor { segment, offset: 0, epoch: 0 }, None);
        while cursor.offset < last.to {
            let Some(group) = look.next_group().map_err(|error| self.failed(&error))? else {
                return Ok(if self.path(segment).exists() { Resumed::Other } else { Resumed::Gone });
            };
            if group.start.offset() >= last.from {
                bytes.extend_from_slice(group.bytes);
                bytes.resize((group.end.offset() - last.from) as usize, 0);
            }
            cursor = Cursor { segment, offset: group.end.offset(), epoch: group.epoch };
            last_us = if group.records > 0 { Some(group.time) } else { last_us };
        }
        let same = cursor.offset == last.to && names::checksum(&bytes) == last.checksum;
        Ok(if same { Resumed::At(cursor, last_us) } else { Resumed::Other })
    }

    /// Bytes of a snapshot's file from `from` on, at most a part.
    pub(crate) fn snapshot_bytes(&self, position: Position, from: u64) -> io::Result<Bytes> {
        let path = self.dir.join("snapshots").join(outside::snapshot_name(position));
        let file = ReadOnly(File::open(path)?);
        let left = file.size()?.saturating_sub(from).min(PART_BYTES as u64) as usize;
        let (mut bytes, mut done) = (vec![0; left], 0);
        while done < left {
            match file.read_at(&mut bytes[done..], from + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(bytes.into())
    }
}

/// How a copy of a segment goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// There, and when its last unit was written.
    At(Cursor, Option<i64>),
    /// The segment was released.
    Gone,
    /// The folder has another history than the copy.
    Other,
}
