//! What can go wrong in the log: what, where, and the mend.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use crate::Position;

/// Why the log refused or failed; cheap to clone, so that every waiter can be told the same.
#[derive(Clone, Debug)]
pub enum LogError {
    /// The disk refused an operation.
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
    Corrupt {
        /// The damaged or missing file.
        file: String,
        /// Where the damage begins.
        position: Position,
        /// What was found there.
        what: String,
    },
    /// An earlier write or sync failed, so that what is on the disk is unknown; reads still work.
    Poisoned {
        /// The first failure.
        cause: Arc<LogError>,
    },
    /// Too many bytes wait for the disk, or the next segment is still being made; try again after the
    /// observer's next call.
    Busy {
        /// Bytes appended and not yet durable.
        pending_bytes: u64,
    },
    /// The disk is full, and what is left is kept for essential appends; nothing was written.
    NoSpace,
    /// The unit is larger than allowed, or than was announced; nothing was written.
    TooLarge {
        /// What was asked for, with headers.
        bytes: u64,
        /// What is allowed.
        max: u64,
    },
    /// Another process holds the folder.
    Locked {
        /// Process id and command of the holder, as it wrote them.
        holder: String,
    },
    /// The folder was written by a newer version; nothing was changed.
    NewerFormat {
        /// The file that says so.
        file: String,
        /// Its format.
        found: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// No record can stand at this position: it lies behind the end or in a released segment.
    OutOfRange {
        /// The position asked for.
        position: Position,
        /// The beginning of the oldest segment.
        first: Position,
        /// The end of the log.
        end: Position,
    },
    /// A setting or argument is not possible.
    Invalid(String),
    /// The log was closed.
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

    /// Where it went wrong, if that is a file or place in the log.
    fn place(&self) -> Option<String> {
        match self {
            LogError::Io { file, .. } | LogError::NewerFormat { file, .. } => Some(file.clone()),
            LogError::Corrupt { file, position, .. } => Some(format!("{file} at {position}")),
            _ => None,
        }
    }

    fn what(&self) -> String {
        match self {
            LogError::Io { what, message, .. } => format!("{what} failed: {message}"),
            LogError::Corrupt { what, .. } => format!("damaged ({what}); nothing was changed"),
            LogError::Poisoned { cause } => {
                format!("the log takes no more writes since this failed: {cause}")
            }
            LogError::Busy { pending_bytes } => format!("the disk is behind, {pending_bytes} bytes wait"),
            LogError::NoSpace => "no space on the disk for a new segment; nothing was written".to_owned(),
            LogError::TooLarge { bytes, max } => {
                format!("{bytes} bytes at once are over the limit of {max} bytes")
            }
            LogError::Locked { holder } => format!("the folder is in use by {holder}"),
            LogError::NewerFormat { found, known, .. } => {
                format!("written in format {found}, this program knows up to {known}; nothing was changed")
            }
            LogError::OutOfRange { position, first, end } => {
                format!(
                    "no record at {position}: the log holds {first} to {end}, without the released segments"
                )
            }
            LogError::Invalid(what) => what.clone(),
            LogError::Closed => "the log is closed".to_owned(),
        }
    }

    fn mend(&self) -> Option<&'static str> {
        Some(match self {
            LogError::Io { kind, .. } => mend_of(*kind),
            LogError::Corrupt { .. } => "restore the folder from a backup, and check the disk",
            LogError::Poisoned { .. } => "mend the disk and open the folder again",
            LogError::Busy { .. } => "try again shortly",
            LogError::NoSpace => "free some space, the log goes on by itself",
            LogError::TooLarge { .. } => "split it, or raise the limit",
            LogError::Locked { .. } => "stop that process, or work through it",
            LogError::NewerFormat { .. } => "use a newer version of this program",
            LogError::Closed => "open it again",
            LogError::OutOfRange { .. } | LogError::Invalid(_) => return None,
        })
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what())?;
        self.mend().map_or(Ok(()), |mend| write!(f, "; {mend}"))
    }
}

impl std::error::Error for LogError {}

impl From<LogError> for onward_core::Error {
    fn from(error: LogError) -> Self {
        use onward_core::{Error, RetryHint};
        let what = error.what();
        let plain = match &error {
            failed if failed.is_full() => Error::full(what),
            LogError::Busy { .. } => Error::full(what).retry(RetryHint::After(Duration::from_millis(10))),
            LogError::Io { .. } => Error::unavailable(what).retry(RetryHint::Never),
            LogError::Corrupt { .. } => Error::corrupt(what),
            LogError::Poisoned { .. } => Error::poisoned(what),
            LogError::Locked { .. } => Error::unavailable(what),
            LogError::NewerFormat { .. } => Error::unsupported(what),
            LogError::OutOfRange { .. } => Error::not_found(what),
            LogError::Closed => Error::closed(what),
            LogError::NoSpace | LogError::TooLarge { .. } | LogError::Invalid(_) => Error::invalid(what),
        };
        let placed = match error.place() {
            Some(place) => plain.at(place),
            None => plain,
        };
        match error.mend() {
            Some(mend) => placed.mend(mend),
            None => placed,
        }
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
