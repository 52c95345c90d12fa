//! A file that is only read.

use onward_log::DiskFile;
use std::{fs::File, io, os::unix::fs::FileExt};

/// A file that is only read, opened without any lock.
#[derive(Debug)]
pub(crate) struct ReadOnly(pub(crate) File);

impl DiskFile for ReadOnly {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn allocate(&self, _: u64) -> io::Result<bool> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}
