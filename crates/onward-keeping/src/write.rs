//! A data folder that is being made of copies.

use crate::{claim::write_whole, file::ReadOnly, names::Copied};
use onward_core::{Error, Position, Result, RetryHint};
use onward_embedded::outside;
use onward_log::{SegmentLook, segment_name};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder that no engine opens before it is finished.
#[derive(Debug)]
pub(crate) struct Folder {
    dir: PathBuf,
}

impl Folder {
    /// Makes the folder.
    ///
    /// # Errors
    /// `AlreadyExists` when something is in it.
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        let folder = Self { dir: dir.to_owned() };
        match std::fs::read_dir(dir) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(Error::already_exists("the folder is not empty; nothing was changed")
                        .at(dir.display())
                        .mend("name a new folder; a folder is never restored over"));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(folder.failed("read", &error)),
        }
        let made = ["log", "snapshots"].iter().try_for_each(|name| std::fs::create_dir_all(dir.join(name)));
        made.map_err(|error| folder.failed("make", &error))?;
        folder.put(outside::UNFINISHED, b"a restore into this folder has not finished\n")?;
        Ok(folder)
    }

    /// A folder that was made before, as a standby's.
    pub(crate) fn made(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_whole(&self.dir.join(name), bytes).map_err(|error| self.failed(name, &error))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(name, &error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn path(&self, file: Copied) -> PathBuf {
        match file {
            Copied::Segment(index) => self.dir.join("log").join(segment_name(index)),
            Copied::Snapshot(at) => self.dir.join("snapshots").join(outside::snapshot_name(Position(at))),
        }
    }

    fn open(&self, file: Copied) -> Result<File> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(self.path(file));
        opened.map_err(|error| self.failed("open", &error))
    }

    pub(crate) fn write(&self, file: Copied, at: u64, bytes: &[u8]) -> Result<()> {
        self.open(file)?.write_all_at(bytes, at).map_err(|error| self.failed("write", &error))
    }

    pub(crate) fn sync(&self, file: Copied) -> Result<()> {
        self.open(file)?.sync_all().map_err(|error| self.failed("sync", &error))
    }

    /// Looks at a segment; nothing if its first block does not hold.
    pub(crate) fn look(&self, index: u32) -> Result<Option<SegmentLook>> {
        let opened = File::open(self.path(Copied::Segment(index)));
        let file = opened.map_err(|error| self.failed("open", &error))?;
        SegmentLook::new(index, Arc::new(ReadOnly(file))).map_err(|error| Error::corrupt(error.to_string()))
    }

    /// Gives a segment's file its whole length, and answers it: behind its groups it is zeros.
    pub(crate) fn lengthen(&self, index: u32) -> Result<u64> {
        let bytes = self.segment_bytes(index)?;
        let file = self.open(Copied::Segment(index))?;
        file.set_len(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|error| self.failed("lengthen", &error))?;
        Ok(bytes)
    }

    /// The whole length of a segment's file, as its first block says it.
    pub(crate) fn segment_bytes(&self, index: u32) -> Result<u64> {
        let look = self.look(index)?.ok_or_else(|| {
            let path = self.path(Copied::Segment(index));
            Error::corrupt("a segment's first block does not hold").at(path.display())
        })?;
        Ok(look.segment_bytes())
    }

    /// Makes everything durable, then says that the folder is whole; `marks` are files that are put beside.
    pub(crate) fn finish(&self, marks: &[&str]) -> Result<()> {
        for name in ["log", "snapshots"] {
            File::open(self.dir.join(name))
                .and_then(|dir| dir.sync_all())
                .map_err(|error| self.failed("sync", &error))?;
        }
        self.put(outside::FORMAT_NAME, outside::format_line().as_bytes())?;
        marks.iter().try_for_each(|mark| self.put(mark, b"\n"))?;
        self.remove(outside::UNFINISHED)?;
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(|error| self.failed("sync", &error))
    }

    pub(crate) fn failed(&self, what: &str, error: &io::Error) -> Error {
        let text = format!("can't {what}: {error}");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::full(text).retry(RetryHint::Unknown).mend("free some space, then begin again")
            }
            _ => Error::unavailable(text).mend("check the folder and its disk"),
        }
        .at(self.dir.display())
    }
}
