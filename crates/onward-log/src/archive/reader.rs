//! Reading an archive file: one record by its position, or a range at the disk's own speed.

use std::sync::Arc;

use bytes::Bytes;

use super::Archived;
use super::format::{
    BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, ENTRY_BYTES, Entry, FOOT_BYTES, HEAD_BYTES, Head, block_holds,
    entries, foot, index_checksum, record_at,
};
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::reading::Record;
use crate::{LogError, Position};

/// Blocks are read together up to this size, in bytes, when a range is read.
const READ_BYTES: u64 = 1 << 20;

/// Called with a record and where its bytes lie in its block.
type Placed<'a> = dyn FnMut(Archived<'_>, std::ops::Range<usize>) -> Result<(), LogError> + 'a;

/// An archive file, open for reading: its index is in memory (24 bytes for each block of 64 KiB).
#[derive(Debug)]
pub struct Archive {
    name: String,
    file: Arc<dyn DiskFile>,
    head: Head,
    entries: Vec<Entry>,
    records: u64,
    bytes: u64,
}

impl Archive {
    /// Opens a file and reads its index.
    ///
    /// Errors: [`LogError::NewerFormat`], [`LogError::Corrupt`] for what is cut or damaged, the disk's.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Archive, LogError> {
        let failed = |error: std::io::Error| LogError::io("open", name, &error);
        let file = disk.open(name, Mode::Read).map_err(failed)?;
        let bytes = file.size().map_err(failed)?;
        let mut archive = Archive {
            name: name.to_owned(),
            file,
            head: Head { log_id: 0, from: Position::ZERO, to: Position::ZERO },
            entries: Vec::new(),
            records: 0,
            bytes,
        };
        archive.head = Head::decode(name, &archive.read_at(0, HEAD_BYTES.min(bytes as usize))?)?
            .ok_or_else(|| archive.corrupt(Position::ZERO, "its head does not hold"))?;
        archive.read_index()?;
        Ok(archive)
    }

    fn read_index(&mut self) -> Result<(), LogError> {
        let damaged = || self.corrupt(self.head.from, "its index is cut or damaged");
        let at = self.bytes.checked_sub(FOOT_BYTES as u64).ok_or_else(damaged)?;
        let found = foot(&self.read_at(at, FOOT_BYTES)?).ok_or_else(damaged)?;
        let length = u64::from(found.blocks) * ENTRY_BYTES as u64;
        // Lengths are checked before anything is allocated for them.
        if found.index_at.checked_add(length) != Some(at) {
            return Err(damaged());
        }
        let index = self.read_at(found.index_at, length as usize)?;
        let sum = index_checksum(&index, self.head.log_id, found.index_at, found.blocks, found.records);
        if sum != found.checksum {
            return Err(damaged());
        }
        (self.entries, self.records) = (entries(&index), found.records);
        Ok(())
    }

    /// The positions that it covers.
    pub fn range(&self) -> std::ops::Range<Position> {
        self.head.from..self.head.to
    }

    /// The log whose records it keeps.
    pub fn log_id(&self) -> u64 {
        self.head.log_id
    }

    /// How many records it keeps.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The file's size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The record that stands at `position`; nothing if it is not kept.
    ///
    /// Errors: [`LogError::Corrupt`], the disk's.
    pub fn read(&self, position: Position) -> Result<Option<Record>, LogError> {
        let behind = self.entries.partition_point(|entry| entry.first <= position);
        let Some(entry) = behind.checked_sub(1).map(|at| self.entries[at]) else { return Ok(None) };
        let block = self.read_at(entry.at, entry.bytes as usize)?;
        let mut found = None;
        self.each(&entry, &block, &mut |record, place| {
            if record.position == position {
                found = Some((record.kind, place));
            }
            Ok(())
        })?;
        let block = Bytes::from(block);
        Ok(found.map(|(kind, place)| Record { kind, bytes: block.slice(place) }))
    }

    /// Shows the kept records from `from` to before `to`, in order; answers how many.
    ///
    /// Errors: [`LogError::Corrupt`], what `apply` answers, the disk's.
    pub fn scan(
        &self,
        from: Position,
        to: Position,
        apply: &mut dyn FnMut(Archived<'_>) -> Result<(), LogError>,
    ) -> Result<u64, LogError> {
        let begin = self.entries.partition_point(|entry| entry.first <= from).saturating_sub(1);
        let end = self.entries.partition_point(|entry| entry.first < to);
        let (mut shown, mut at) = (0, begin);
        while at < end {
            let run = self.run(at, end);
            let start = self.entries[at].at;
            let last = self.entries[run - 1];
            let blocks = self.read_at(start, (last.at + u64::from(last.bytes) - start) as usize)?;
            for entry in &self.entries[at..run] {
                let place = (entry.at - start) as usize;
                let block = &blocks[place..place + entry.bytes as usize];
                self.each(entry, block, &mut |record, _| {
                    if record.position < from || record.position >= to {
                        return Ok(());
                    }
                    shown += 1;
                    apply(record)
                })?;
            }
            at = run;
        }
        Ok(shown)
    }

    /// Behind the last of the blocks from `at` on that are read together.
    fn run(&self, at: usize, end: usize) -> usize {
        let begin = self.entries[at].at;
        let fits = |entry: &&Entry| entry.at + u64::from(entry.bytes) - begin <= READ_BYTES;
        at + 1 + self.entries[at + 1..end].iter().take_while(fits).count()
    }

    /// Shows a block's records and where their bytes lie in it, once all of it is checked.
    fn each(&self, entry: &Entry, block: &[u8], apply: &mut Placed<'_>) -> Result<(), LogError> {
        if !block_holds(block, self.head.log_id, entry) {
            return Err(self.corrupt(entry.first, "a block does not hold"));
        }
        let mut at = BLOCK_HEAD_BYTES;
        for _ in 0..entry.records {
            let (record, next) =
                record_at(block, at).ok_or_else(|| self.corrupt(entry.first, "a block has fewer records"))?;
            apply(record, next - record.bytes.len()..next)?;
            at = next;
        }
        Ok(())
    }

    fn read_at(&self, at: u64, bytes: usize) -> Result<Vec<u8>, LogError> {
        if bytes as u64 > BLOCK_BYTES_MAX || at + bytes as u64 > self.bytes {
            return Err(self.corrupt(self.head.from, "a length leads out of the file"));
        }
        let mut buffer = vec![0; bytes];
        let got = disk::read_full(&*self.file, &mut buffer, at)
            .map_err(|error| LogError::io("read", &self.name, &error))?;
        if got < bytes {
            return Err(self.corrupt(self.head.from, "it is cut off"));
        }
        Ok(buffer)
    }

    fn corrupt(&self, position: Position, what: &str) -> LogError {
        LogError::Corrupt { file: self.name.clone(), position, what: what.to_owned() }
    }
}
