//! All archive files of a folder: no two overlap, and each change leaves the old ones or the new one.

use std::sync::Arc;

use super::writer::{UNFINISHED, name_of};
use super::{Archive, ArchiveWriter, Archived};
use crate::disk::{self, Disk};
use crate::reading::Record;
use crate::{LogError, Position};

/// The archive files of one log, in the order of their positions.
#[derive(Debug)]
pub struct Archives {
    disk: Arc<dyn Disk>,
    log_id: u64,
    files: Vec<Archive>,
}

/// What rewriting came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Records that are kept.
    pub kept: u64,
    /// Records that are gone.
    pub dropped: u64,
    /// Bytes that were given back to the disk.
    pub freed_bytes: u64,
}

/// What a range is filled with: called with a place to put each record, in the order of positions.
pub type Fill<'a> =
    dyn FnMut(&mut dyn FnMut(Archived<'_>) -> Result<(), LogError>) -> Result<(), LogError> + 'a;

impl Archives {
    /// Opens a folder's archive files; what a crash left over is deleted.
    ///
    /// Errors: [`LogError::NewerFormat`] and [`LogError::Corrupt`] before anything is changed, the disk's.
    pub fn open(disk: Arc<dyn Disk>, log_id: u64) -> Result<Archives, LogError> {
        let names = disk.list().map_err(|error| LogError::io("list", ".", &error))?;
        let mut files = Vec::new();
        for name in names.iter().filter(|name| name.ends_with(".arch")) {
            let file = Archive::open(&*disk, name)?;
            if file.log_id() != log_id || *name != name_of(file.range().start, file.range().end) {
                return Err(corrupt(&file, "it belongs to another log, or has another's name"));
            }
            files.push(file);
        }
        // Of those that begin at one place, the one that covers most comes first.
        files.sort_by_key(|file| (file.range().start, std::cmp::Reverse(file.range().end)));
        let (kept, replaced) = without_replaced(files)?;
        let unfinished = names.into_iter().filter(|name| name.ends_with(UNFINISHED));
        let gone: Vec<String> = replaced.into_iter().chain(unfinished).collect();
        delete(&*disk, &gone)?;
        Ok(Archives { disk, log_id, files: kept })
    }

    /// The files, in the order of their positions.
    pub fn files(&self) -> &[Archive] {
        &self.files
    }

    /// Everything before this has its place in an archive file, if it was kept at all.
    pub fn end(&self) -> Position {
        self.files.last().map_or(Position::ZERO, |file| file.range().end)
    }

    /// Makes a file for what lives long of the positions from `from` to before `to`, behind all others.
    ///
    /// On return it is durable: only then may the log's segments of that range be released.
    ///
    /// Errors: [`LogError::Invalid`] for a range that is not behind the others, what `fill` answers, the disk's; nothing
    /// has changed then.
    pub fn add(&mut self, from: Position, to: Position, fill: &mut Fill<'_>) -> Result<u64, LogError> {
        if from < self.end() {
            return Err(LogError::Invalid(format!("{from} is not behind what is archived, {}", self.end())));
        }
        let file = self.write(from, to, fill)?;
        let records = file.records();
        self.files.push(file);
        Ok(records)
    }

    fn write(&self, from: Position, to: Position, fill: &mut Fill<'_>) -> Result<Archive, LogError> {
        let mut writer = ArchiveWriter::create(&*self.disk, self.log_id, from, to)?;
        fill(&mut |record| writer.push(&record))?;
        let (name, _) = writer.finish()?;
        Archive::open(&*self.disk, &name)
    }

    /// The record at `position`; nothing if no file covers it or it is not kept.
    ///
    /// Errors: [`LogError::Corrupt`], the disk's.
    pub fn read(&self, position: Position) -> Result<Option<Record>, LogError> {
        let behind = self.files.partition_point(|file| file.range().start <= position);
        match behind.checked_sub(1).map(|at| &self.files[at]) {
            Some(file) if position < file.range().end => file.read(position),
            _ => Ok(None),
        }
    }

    /// Shows what is kept from `from` to before `to`, in order; answers how many records.
    ///
    /// Errors: [`LogError::Corrupt`], what `apply` answers, the disk's.
    pub fn scan(
        &self,
        from: Position,
        to: Position,
        apply: &mut dyn FnMut(Archived<'_>) -> Result<(), LogError>,
    ) -> Result<u64, LogError> {
        let within = self.files.iter().filter(|file| file.range().start < to && file.range().end > from);
        within.map(|file| file.scan(from, to, apply)).sum()
    }

    /// Writes the files at `first..=last` anew as one, with only the records that `keep` wants.
    ///
    /// Errors: [`LogError::Invalid`] for files that are not there, the disk's. Old or new is there then, never neither.
    pub fn rewrite(
        &mut self,
        first: usize,
        last: usize,
        keep: &mut dyn FnMut(Position) -> bool,
    ) -> Result<Rewritten, LogError> {
        let old = self.files.get(first..=last).filter(|old| !old.is_empty());
        let Some(old) = old else {
            return Err(LogError::Invalid("there are no such archive files".to_owned()));
        };
        let (from, to) = (old[0].range().start, old[old.len() - 1].range().end);
        let (mut done, bytes) = (Rewritten::default(), old.iter().map(Archive::bytes).sum::<u64>());
        let new = self.write(from, to, &mut |put| {
            let mut each = |record: Archived<'_>| match keep(record.position) {
                true => {
                    done.kept += 1;
                    put(record)
                }
                false => {
                    done.dropped += 1;
                    Ok(())
                }
            };
            old.iter().try_for_each(|file| file.scan(from, to, &mut each).map(drop))
        })?;
        done.freed_bytes = bytes.saturating_sub(new.bytes());
        let replaced: Vec<Archive> = self.files.splice(first..=last, [new]).collect();
        // One of the same range was replaced by its name.
        let gone: Vec<String> = replaced
            .iter()
            .map(Archive::name)
            .filter(|name| *name != name_of(from, to))
            .map(str::to_owned)
            .collect();
        delete(&*self.disk, &gone)?;
        Ok(done)
    }
}

/// Separates files that another one has replaced; refuses ranges that overlap otherwise.
fn without_replaced(files: Vec<Archive>) -> Result<(Vec<Archive>, Vec<String>), LogError> {
    let (mut kept, mut replaced): (Vec<Archive>, Vec<String>) = (Vec::new(), Vec::new());
    for file in files {
        match kept.last() {
            Some(before) if file.range().end <= before.range().end => replaced.push(file.name().to_owned()),
            Some(before) if file.range().start < before.range().end => {
                return Err(corrupt(&file, "its range overlaps another file's"));
            }
            _ => kept.push(file),
        }
    }
    Ok((kept, replaced))
}

fn delete(disk: &dyn Disk, names: &[String]) -> Result<(), LogError> {
    for name in names {
        disk.delete(name).map_err(|error| LogError::io("delete", name, &error))?;
    }
    if names.is_empty() { Ok(()) } else { disk::sync_dir(disk) }
}

fn corrupt(file: &Archive, what: &str) -> LogError {
    LogError::Corrupt { file: file.name().to_owned(), position: file.range().start, what: what.to_owned() }
}
