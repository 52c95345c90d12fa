//! The seam to the disk: one flat folder of files, real or simulated.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use crate::LogError;

/// A folder of files; names are flat and of plain letters, digits, `-` and `.`.
///
/// Guarantees asked of an implementation: a file's bytes are durable after `sync_data` of that file; a
/// create, rename or delete is durable after `sync_dir`; nothing else is.
pub trait Disk: Debug + Send + Sync {
    /// Opens an existing file.
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes a new, empty file; fails if the name is taken.
    fn create(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, replacing `to` if it exists, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes a file.
    fn delete(&self, name: &str) -> io::Result<()>;
    /// The names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creates, renames and deletes so far durable.
    fn sync_dir(&self) -> io::Result<()>;
    /// Takes the folder for this process until the answer is dropped or the process dies.
    ///
    /// Errors: [`LogError::Locked`] with the holder.
    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>, LockError>;
    /// What kind of disk this is, for reports.
    fn info(&self) -> DiskInfo;
}

/// An open file; positioned reads and writes only, from any thread.
pub trait DiskFile: Debug + Send + Sync {
    /// Reads up to the buffer's length at `offset`; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at `offset` and answers how much was written. In [`Mode::Direct`], offset and length are
    /// multiples of the sector, and the buffer's address of 4096.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes all writes to this file that have returned, and its length, durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes the file `bytes` long, and answers whether writes within it need no new space from now on. Where the
    /// filesystem can't promise that, only writing the bytes takes the space.
    fn allocate(&self, bytes: u64) -> io::Result<bool>;
    /// The file's length in bytes.
    fn size(&self) -> io::Result<u64>;
}

/// Holds the folder's lock while it lives.
pub trait DiskLock: Debug + Send + Sync {}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For reading, through the page cache.
    Read,
    /// For reading and writing, through the page cache.
    Buffered,
    /// For writing past the page cache, where the filesystem can; else as `Buffered`.
    Direct,
}

/// Why a folder's lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it: its id and command.
    Held(String),
    /// The lock's file could not be used.
    Io(io::Error),
}

/// What kind of disk a folder is on; printed with every measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskInfo {
    /// The filesystem's name, as "ext4", or its number in hexadecimal.
    pub filesystem: String,
    /// The device, as "254:0".
    pub device: String,
    /// Whether writes pass the page cache.
    pub direct: bool,
    /// The unit of writing, in bytes: what one power cut can tear.
    pub sector: usize,
    /// Whether everything is gone after a power cut (a memory filesystem).
    pub volatile: bool,
}

/// Writes of less than a sector in a row after which a write has failed.
const WRITES_WITHOUT_PROGRESS_MAX: u32 = 16;

/// Writes everything, going on after short and interrupted writes at a sector's boundary.
pub(crate) fn write_all(file: &dyn DiskFile, bytes: &[u8], offset: u64, sector: usize) -> io::Result<()> {
    let (mut done, mut stuck) = (0, 0);
    while done < bytes.len() && stuck < WRITES_WITHOUT_PROGRESS_MAX {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) if done + n >= bytes.len() => done = bytes.len(),
            // A partly written sector is written again as a whole.
            Ok(n) if n >= sector => done += n / sector * sector,
            Ok(_) => stuck += 1,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if done < bytes.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
}

/// Reads until the buffer is full or the file ends; answers how much was read.
pub(crate) fn read_full(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Syncs once; an interrupted call is an error like any other, since a failed sync is never repeated.
pub(crate) fn sync(file: &dyn DiskFile, name: &str) -> Result<(), LogError> {
    file.sync_data().map_err(|error| LogError::io("sync", name, &error))
}

pub(crate) fn sync_dir(disk: &dyn Disk) -> Result<(), LogError> {
    disk.sync_dir().map_err(|error| LogError::io("sync the folder of", ".", &error))
}
