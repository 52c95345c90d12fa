//! A data folder seen from outside: what whoever copies, ships or restores one needs to know of it.

use super::error::io_error;
pub use super::folder::FORMAT;
use super::folder::{FORMAT_FILE, LOCK, known_format, known_format_up_to};
use super::snapshot_file;
use onward_core::{Error, Position, Result};
use onward_log::{Disk, DiskLock, LockError, RealDisk};
use std::path::Path;

/// A folder with this file follows another one: it is not opened before it is promoted.
pub const STANDBY: &str = "standby";
/// A folder with this file was replaced by another one: it is not opened, so that there are never two.
pub const SUPERSEDED: &str = "superseded";

/// A folder with this file is not whole: a restore into it did not finish.
pub const UNFINISHED: &str = "unfinished";
/// A folder with this file is a copy of another one: the next opening voids every lease and token of the original, by
/// ending the leases and beginning an epoch that the original does not come to.
pub const RESTORED: &str = "restored";

/// The name of the file that says a folder's format.
pub const FORMAT_NAME: &str = FORMAT_FILE;

/// Refuses a folder that must not be opened, by the names of its files.
pub(super) fn refuse_marked(names: &[String]) -> Result<()> {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(SUPERSEDED) {
        return Err(Error::conflict("another folder has taken its place since").at("the data folder").mend(
            "go on with the folder that was promoted; what was written here behind its last shipped position is \
             only here (`onward export` on a copy without the file `superseded` reads it)",
        ));
    }
    if has(UNFINISHED) {
        return Err(Error::conflict("a restore into it did not finish")
            .at("the data folder")
            .mend("delete the folder and restore again"));
    }
    if has(STANDBY) {
        return Err(Error::conflict("it is a standby: it follows another folder")
            .at("the data folder")
            .mend("run `onward promote` to make it the one that is worked on"));
    }
    Ok(())
}

/// How far a copy's epoch is beyond the original's, so that the original's later openings never come to it.
pub(super) const EPOCHS_SKIPPED: u32 = 1 << 16;

pub(super) fn is_restored(root: &dyn Disk) -> Result<bool> {
    let names = root.list().map_err(|error| io_error("list the folder", ".", &error))?;
    Ok(names.iter().any(|name| name == RESTORED))
}

pub(super) fn forget_restored(root: &dyn Disk) -> Result<()> {
    root.delete(RESTORED).and_then(|()| root.sync_dir()).map_err(|error| io_error("delete", RESTORED, &error))
}

/// What the format file says in this version.
pub fn format_line() -> String {
    format_line_of(FORMAT)
}

/// What the format file says of a format.
pub fn format_line_of(format: u32) -> String {
    super::folder::format_line(format)
}

/// The format that a format file says.
///
/// # Errors
/// `Unsupported` for a newer one than this version knows, `Corrupt` for what says none.
pub fn check_format(bytes: &[u8]) -> Result<u32> {
    known_format(bytes)
}

/// The places of the snapshots in a folder's `snapshots`, newest first, whether they hold or not.
///
/// # Errors
/// The disk's.
pub fn snapshots(disk: &dyn Disk) -> Result<Vec<Position>> {
    snapshot_file::list(disk).map(|(there, _)| there)
}

/// The name of the file of a snapshot as of `position`.
pub fn snapshot_name(position: Position) -> String {
    snapshot_file::name_of(position)
}

/// The same for a version that knows formats up to `known`, as the next one does.
///
/// # Errors
/// Those of [`check_format`].
pub fn check_format_up_to(bytes: &[u8], known: u32) -> Result<u32> {
    known_format_up_to(bytes, known)
}

/// Reads a snapshot to its end and checks every piece of it.
///
/// # Errors
/// `Corrupt` when it is cut or damaged, `Unsupported` for a newer format, the disk's.
pub fn check_snapshot(disk: &dyn Disk, position: Position) -> Result<()> {
    let mut reader = snapshot_file::Reader::open(disk, position)?;
    while reader.piece()?.is_some() {}
    Ok(())
}

/// Takes a folder's lock, so that no engine opens it, for as long as the answer is kept.
///
/// # Errors
/// `AlreadyExists` naming the holder, `Unavailable` from the disk.
pub fn lock(dir: &Path) -> Result<Box<dyn DiskLock>> {
    let failed = |error: std::io::Error| io_error("take the lock", LOCK, &error);
    let disk = RealDisk::open(dir).map_err(failed)?;
    disk.lock(LOCK).map_err(|error| match error {
        LockError::Held(holder) => {
            Error::already_exists(format!("the folder is held by {holder}")).at(dir.display())
        }
        LockError::Io(error) => failed(error),
    })
}
