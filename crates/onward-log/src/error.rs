//! What can go wrong in the log: what, where, and the mend.

use std::io;
use std::sync::Arc;

use crate::Position;

/// Why the log refused or failed; cheap to clone, so that every waiter can be told the same.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The disk refused an operation.
    #[error("{what} {file}: {message}; {}", mend_of(*.kind))]
    Io {
        /// The operation, as "write" or "sync".
        what: &'static str,
        /// The file's name within the folder.
        file: String,
        /// The kind of the disk's error.
        kind: io::ErrorKind,
        /// The disk's own words.
        message: String,
    },
    /// Bytes that were once durable are damaged or missing; nothing was changed.
    #[error(
        "{file} is damaged at {position} ({what}); nothing was changed: restore the folder from a backup, or check the disk"
    )]
    Corrupt {
        /// The damaged or missing file.
        file: String,
        /// Where the damage begins.
        position: Position,
        /// What was found there.
        what: String,
    },
    /// An earlier write or sync failed, so that what is on the disk is unknown; reads still work.
    #[error(
        "the log takes no more writes since this failed: {cause}; mend the disk and open the folder again"
    )]
    Poisoned {
        /// The first failure.
        cause: Arc<LogError>,
    },
    /// Too many bytes wait for the disk, or the next segment is still being made; try again after the
    /// observer's next call.
    #[error("the disk is behind ({pending_bytes} bytes wait); try again shortly")]
    Busy {
        /// Bytes appended and not yet durable.
        pending_bytes: u64,
    },
    /// The disk is full, and what is left is kept for essential appends; nothing was written.
    #[error("no space for a new segment on the disk; free some, the log goes on by itself")]
    NoSpace,
    /// The unit is larger than allowed, or than was announced; nothing was written.
    #[error("a unit of {bytes} bytes is over the limit of {max} bytes; split it, or raise `unit_bytes_max`")]
    TooLarge {
        /// What was asked for, with headers.
        bytes: u64,
        /// What is allowed.
        max: u64,
    },
    /// Another process holds the folder.
    #[error("the folder is in use by {holder}; stop that process, or work through it")]
    Locked {
        /// Process id and command of the holder, as it wrote them.
        holder: String,
    },
    /// The folder was written by a newer version; nothing was changed.
    #[error("{file} has format {found}, this program knows up to {known}; use a newer version of it")]
    NewerFormat {
        /// The file that says so.
        file: String,
        /// Its format.
        found: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// No record can stand at this position: it lies behind the end or in a released segment.
    #[error("no record at {position}: the log holds {first} to {end}, without the released segments")]
    OutOfRange {
        /// The position asked for.
        position: Position,
        /// The beginning of the oldest segment.
        first: Position,
        /// The end of the log.
        end: Position,
    },
    /// A setting or argument is not possible.
    #[error("{0}")]
    Invalid(String),
    /// The log was closed.
    #[error("the log is closed; open it again")]
    Closed,
}

impl LogError {
    pub(crate) fn io(what: &'static str, file: &str, source: &io::Error) -> LogError {
        LogError::Io { what, file: file.to_owned(), kind: source.kind(), message: source.to_string() }
    }

    /// Whether the disk said that it is full.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::NoSpace) || matches!(self, LogError::Io { kind, .. } if full(*kind))
    }
}

fn full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn mend_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "make the folder writable",
        io::ErrorKind::NotFound => "check that the folder exists",
        kind if full(kind) => "free some space",
        _ => "check the disk",
    }
}
