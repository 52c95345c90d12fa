//! Writing an archive file: whole and durable, or not there at all.

use std::sync::Arc;

use super::Archived;
use super::format::{
    BLOCK_BYTES, BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, Entry, HEAD_BYTES, Head, RECORD_HEAD_BYTES, put_index,
    put_record, seal_block,
};
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::{LogError, Position};

/// Blocks are written together up to this size, in bytes.
const WRITE_BYTES: usize = 1 << 20;
/// How an unfinished file's name ends.
pub(super) const UNFINISHED: &str = ".arch-new";

/// The name of the file that keeps what stands from `from` to before `to`.
pub(super) fn name_of(from: Position, to: Position) -> String {
    format!("{:020}-{:020}.arch", from.0, to.0)
}

/// Makes one archive file.
///
/// Nothing is there under its name before [`ArchiveWriter::finish`]; one that is dropped before leaves an unfinished
/// file, which the next [`super::Archives::open`] deletes.
#[derive(Debug)]
pub struct ArchiveWriter<'a> {
    disk: &'a dyn Disk,
    file: Arc<dyn DiskFile>,
    head: Head,
    unfinished: String,
    /// Blocks that are closed and not yet written, and where they go.
    ready: Vec<u8>,
    at: u64,
    block: Vec<u8>,
    block_records: u32,
    block_first: Position,
    entries: Vec<Entry>,
    last: Option<Position>,
}

impl<'a> ArchiveWriter<'a> {
    /// Begins the file that keeps what stands from `from` to before `to` of the log `log_id`.
    ///
    /// Errors: [`LogError::Invalid`] for an empty range, the disk's.
    pub fn create(
        disk: &'a dyn Disk,
        log_id: u64,
        from: Position,
        to: Position,
    ) -> Result<ArchiveWriter<'a>, LogError> {
        if from >= to {
            return Err(LogError::Invalid("an archive file must cover at least one position".to_owned()));
        }
        let unfinished = format!("{:020}{UNFINISHED}", from.0);
        // One that an earlier attempt left.
        let _ = disk.delete(&unfinished);
        let file = disk
            .create(&unfinished, Mode::Buffered)
            .map_err(|error| LogError::io("create", &unfinished, &error))?;
        let head = Head { log_id, from, to };
        Ok(ArchiveWriter {
            disk,
            file,
            ready: head.encode().to_vec(),
            head,
            unfinished,
            at: 0,
            block: vec![0; BLOCK_HEAD_BYTES],
            block_records: 0,
            block_first: from,
            entries: Vec::new(),
            last: None,
        })
    }

    /// Adds a record behind the others.
    ///
    /// Errors: [`LogError::Invalid`] for a position outside of the range or not behind the last one,
    /// [`LogError::TooLarge`], the disk's.
    pub fn push(&mut self, record: &Archived<'_>) -> Result<(), LogError> {
        let in_order = self.last.is_none_or(|last| last < record.position);
        if !in_order || record.position < self.head.from || record.position >= self.head.to {
            let text =
                format!("{} is not behind the last record, or not in the file's range", record.position);
            return Err(LogError::Invalid(text));
        }
        let grown = (self.block.len() + RECORD_HEAD_BYTES + record.bytes.len()) as u64;
        if self.block_records > 0 && grown > BLOCK_BYTES as u64 {
            self.close_block()?;
        }
        if record.bytes.len() as u64 + (RECORD_HEAD_BYTES + BLOCK_HEAD_BYTES) as u64 > BLOCK_BYTES_MAX {
            return Err(LogError::TooLarge { bytes: record.bytes.len() as u64, max: BLOCK_BYTES_MAX });
        }
        if self.block_records == 0 {
            self.block_first = record.position;
        }
        put_record(&mut self.block, record);
        self.block_records += 1;
        self.last = Some(record.position);
        Ok(())
    }

    fn close_block(&mut self) -> Result<(), LogError> {
        if self.block_records == 0 {
            return Ok(());
        }
        let at = self.at + self.ready.len() as u64;
        let (records, first) = (self.block_records, self.block_first);
        seal_block(&mut self.block, self.head.log_id, at, records, first);
        self.entries.push(Entry { first, at, bytes: self.block.len() as u32, records });
        self.ready.extend_from_slice(&self.block);
        self.block.truncate(BLOCK_HEAD_BYTES);
        self.block_records = 0;
        if self.ready.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), LogError> {
        disk::write_all(&*self.file, &self.ready, self.at, 1)
            .map_err(|error| LogError::io("write", &self.unfinished, &error))?;
        self.at += self.ready.len() as u64;
        self.ready.clear();
        Ok(())
    }

    /// Makes the file durable and gives it its name, in place of one of the same range; answers name and bytes.
    ///
    /// Errors: the disk's; the old one is still there then, or the new one already.
    pub fn finish(mut self) -> Result<(String, u64), LogError> {
        self.close_block()?;
        let index_at = self.at + self.ready.len() as u64;
        debug_assert!(index_at >= HEAD_BYTES as u64);
        put_index(&mut self.ready, self.head.log_id, index_at, &self.entries);
        self.write()?;
        disk::sync(&*self.file, &self.unfinished)?;
        let name = name_of(self.head.from, self.head.to);
        self.disk.rename(&self.unfinished, &name).map_err(|error| LogError::io("rename", &name, &error))?;
        disk::sync_dir(self.disk)?;
        Ok((name, self.at))
    }
}
