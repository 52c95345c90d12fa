//! The data folder: what lies where, who holds it, and which format it has.
//!
//! ```text
//! DIR/lock          taken while a process has the folder open; says which
//! DIR/format        the folder's format
//! DIR/standby       the folder follows another one and is not to be opened: see `onward-keeping`
//! DIR/superseded    another folder has taken this one's place, and it is not to be opened
//! DIR/log/          the log's segments: the truth
//! DIR/snapshots/    states as of a position of the log: only to start faster
//! ```

use super::error::{io_error, log_error};
use super::outside;
use onward_core::{Error, Result};
use onward_log::{Disk, DiskLock, LockError, LogError, Mode, Overlay, RealDisk};
use std::{path::Path, sync::Arc, time::Duration};

/// The format of a data folder that this version writes, and the newest that it reads.
///
/// To change what stands in a folder: raise this; keep reading the older forms (a fact or snapshot part whose form
/// changes gets a new kind number, the old one stays decodable); move a folder of the last version into
/// `tests/fixtures`, where a test opens it; and describe the change in `docs/adr`.
pub const FORMAT: u32 = 1;

pub(crate) const LOCK: &str = "lock";
pub(crate) const FORMAT_FILE: &str = "format";
const FORMAT_FILE_NEW: &str = "format.new";
const FORMAT_WORDS: &str = "onward data folder, format ";
/// Longest format file that is looked at, in bytes.
const FORMAT_BYTES_MAX: usize = 256;

/// How often a lock that this process itself holds is tried, and how long it waits between.
const OWN_LOCK_ATTEMPTS: u32 = 50;
const OWN_LOCK_WAIT: Duration = Duration::from_millis(10);

/// How a lock's holder is named when it is this process.
fn myself() -> String {
    format!("process {} ", std::process::id())
}

/// The three places of a data folder. On a simulated disk they may be the same: their names don't clash.
#[derive(Debug, Clone)]
pub(crate) struct Disks {
    /// For the lock and the format.
    pub(crate) root: Arc<dyn Disk>,
    /// For the log.
    pub(crate) log: Arc<dyn Disk>,
    /// For the snapshots.
    pub(crate) snapshots: Arc<dyn Disk>,
}

impl Disks {
    /// The folders under `dir` of the machine's own disk, made if missing.
    ///
    /// # Errors
    /// `Unsupported` for a newer format, before anything is made; `Unavailable` when they can't be made or opened.
    pub(crate) fn real(dir: &Path) -> Result<Self> {
        match std::fs::read(dir.join(FORMAT_FILE)) {
            Ok(bytes) => drop(known_format(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error("read", FORMAT_FILE, &error)),
        }
        let open = |path: &Path| -> Result<Arc<dyn Disk>> {
            match RealDisk::open(path) {
                Ok(disk) => Ok(Arc::new(disk)),
                Err(error) => Err(io_error("open the folder", &path.display().to_string(), &error)),
            }
        };
        Ok(Self { root: open(dir)?, log: open(&dir.join("log"))?, snapshots: open(&dir.join("snapshots"))? })
    }

    /// The same places of a folder that is there and must not be changed.
    ///
    /// # Errors
    /// `NotFound` where no data folder is.
    pub(crate) fn looked_at(dir: &Path) -> Result<Self> {
        // The segments say their format themselves: where the file alone is missing, an opening writes it anew.
        if !dir.join(FORMAT_FILE).is_file() && !has_segments(&dir.join("log")) {
            return Err(Error::not_found("is not a data folder: it has neither a format file nor a log")
                .at(dir.display())
                .mend("name the folder that a command or program was given as its data folder"));
        }
        let look = |path: &Path| -> Arc<dyn Disk> { Arc::new(Overlay::new(path)) };
        Ok(Self { root: look(dir), log: look(&dir.join("log")), snapshots: look(&dir.join("snapshots")) })
    }

    /// Everything on one disk.
    pub(crate) fn one(disk: Arc<dyn Disk>) -> Self {
        Self { root: disk.clone(), log: disk.clone(), snapshots: disk }
    }

    /// Takes the folder and checks its format; writes the format into a new folder.
    ///
    /// # Errors
    /// `AlreadyExists` naming the holder; `Unsupported` for a newer format, before anything is written.
    pub(crate) fn take(&self) -> Result<Option<Box<dyn DiskLock>>> {
        let names = self.root.list().map_err(|error| io_error("list the folder", ".", &error))?;
        outside::refuse_marked(&names)?;
        let found = self.format(&names)?;
        let lock = self.lock()?;
        if found.is_none() {
            self.write_format()?;
        }
        Ok(lock)
    }

    /// Where the log lies in the same place, its own lock does.
    ///
    /// An engine of this process that was just dropped may need a moment to let go: it is waited for.
    fn lock(&self) -> Result<Option<Box<dyn DiskLock>>> {
        if Arc::ptr_eq(&self.root, &self.log) {
            return Ok(None);
        }
        for left in (0..OWN_LOCK_ATTEMPTS).rev() {
            match self.root.lock(LOCK) {
                Ok(lock) => return Ok(Some(lock)),
                Err(LockError::Held(holder)) if left > 0 && holder.starts_with(&myself()) => {
                    std::thread::park_timeout(OWN_LOCK_WAIT);
                }
                Err(LockError::Held(holder)) => return Err(log_error(LogError::Locked { holder })),
                Err(LockError::Io(error)) => return Err(io_error("take the lock", LOCK, &error)),
            }
        }
        Err(Error::internal("the lock was never tried"))
    }

    fn format(&self, names: &[String]) -> Result<Option<u32>> {
        if !names.iter().any(|name| name == FORMAT_FILE) {
            return Ok(None);
        }
        let mut bytes = [0; FORMAT_BYTES_MAX];
        let read = self
            .root
            .open(FORMAT_FILE, Mode::Read)
            .and_then(|file| file.read_at(&mut bytes, 0))
            .map_err(|error| io_error("read", FORMAT_FILE, &error))?;
        known_format(&bytes[..read]).map(Some)
    }

    /// The file appears whole or not at all.
    fn write_format(&self) -> Result<()> {
        let text = format_line(FORMAT);
        let failed = |error| io_error("write", FORMAT_FILE, &error);
        write_whole(&*self.root, FORMAT_FILE_NEW, text.as_bytes()).map_err(failed)?;
        // Without this, a power cut may leave the rename and lose the new file, of which an old one is left.
        self.root.sync_dir().map_err(failed)?;
        self.root.rename(FORMAT_FILE_NEW, FORMAT_FILE).map_err(failed)?;
        self.root.sync_dir().map_err(failed)
    }
}

fn has_segments(log: &Path) -> bool {
    let names = std::fs::read_dir(log).into_iter().flatten().flatten();
    names.into_iter().any(|entry| onward_log::segment_index(&entry.file_name().to_string_lossy()).is_some())
}

/// What the file says of a format.
pub(crate) fn format_line(format: u32) -> String {
    format!("{FORMAT_WORDS}{format}\n")
}

/// The format that the file says, if this version knows it.
pub(crate) fn known_format(bytes: &[u8]) -> Result<u32> {
    known_format_up_to(bytes, FORMAT)
}

/// The format that the file says, if a version that knows formats up to `known` knows it.
pub(crate) fn known_format_up_to(bytes: &[u8], known: u32) -> Result<u32> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(FORMAT_BYTES_MAX)]);
    let number = text.trim_end().strip_prefix(FORMAT_WORDS).and_then(|number| number.parse().ok());
    match number {
        Some(format) if (1..=known).contains(&format) => Ok(format),
        Some(newer) => {
            Err(Error::unsupported(format!("has format {newer}, this version knows up to {known}"))
                .at("the data folder")
                .mend("use the version that wrote it, or a newer one; nothing was changed"))
        }
        None => Err(Error::corrupt("does not say a format of a data folder")
            .at(FORMAT_FILE)
            .mend("is this the right folder? restore the file from a backup, or choose an empty folder")),
    }
}

fn write_whole(disk: &dyn Disk, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    if disk.list()?.iter().any(|there| there == name) {
        disk.delete(name)?;
    }
    let file = disk.create(name, Mode::Buffered)?;
    super::snapshot_file::write_at(&*file, bytes, 0)?;
    file.sync_data()
}
