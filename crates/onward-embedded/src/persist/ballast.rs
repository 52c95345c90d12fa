//! Space kept for the next snapshot: without one no segment can be released, so a full disk could never be emptied.

use super::snapshot::Image;
use onward_log::{Disk, Mode};
use std::io;

const NAME: &str = "ballast";
/// Least space kept, in bytes.
const BYTES_MIN: u64 = 1 << 20;

/// Writes a snapshot, with the kept space where the disk has no other.
pub(crate) fn write(disk: &dyn Disk, image: &Image) -> io::Result<u64> {
    match image.write(disk) {
        Err(error) if full(&error) && drop_ballast(disk)? => image.write(disk),
        done => done,
    }
}

fn full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn drop_ballast(disk: &dyn Disk) -> io::Result<bool> {
    let there = disk.list()?.iter().any(|name| name == NAME);
    if there {
        disk.delete(NAME)?;
    }
    Ok(there)
}

/// Keeps space for the next snapshot, which may be a quarter larger than one of `bytes`.
///
/// Where there is none now, the next snapshot tries again: this is a precaution, not a promise.
pub(crate) fn keep(disk: &dyn Disk, bytes: u64) {
    let wanted = (bytes + bytes / 4).max(BYTES_MIN);
    let kept = disk.open(NAME, Mode::Read).and_then(|file| file.size()).unwrap_or(0);
    if kept >= wanted {
        return;
    }
    let grown = drop_ballast(disk)
        .and_then(|_| disk.create(NAME, Mode::Buffered))
        .and_then(|file| file.allocate(wanted));
    if grown.is_err() {
        let _ = disk.delete(NAME);
    }
}
