//! The log's errors in the words of the engine seam.

use onward_core::{Error, RetryHint};
use onward_log::LogError;
use std::{io, time::Duration};

/// How long a caller waits before it tries again on a full disk.
const FULL_RETRY: Duration = Duration::from_secs(1);
/// How long a caller waits before it tries again when the disk is behind.
const BUSY_RETRY: Duration = Duration::from_millis(20);

/// What a log's refusal means to a caller of the engine.
pub(crate) fn log_error(error: LogError) -> Error {
    let text = error.to_string();
    match error {
        LogError::Io { .. } if error.is_full() => full(text),
        LogError::Io { .. } => Error::unavailable(text),
        LogError::NoSpace => full(text),
        LogError::Corrupt { .. } => Error::corrupt(text),
        LogError::Poisoned { .. } => Error::poisoned(text),
        LogError::Busy { .. } => Error::unavailable(text).retry(RetryHint::After(BUSY_RETRY)),
        LogError::TooLarge { .. } => Error::invalid(text),
        LogError::Locked { .. } => Error::already_exists(text),
        LogError::NewerFormat { .. } => Error::unsupported(text),
        LogError::OutOfRange { .. } => Error::not_found(text),
        LogError::Invalid(_) => Error::invalid(text),
        LogError::Closed => Error::closed(text),
    }
}

fn full(text: String) -> Error {
    Error::full(text).retry(RetryHint::After(FULL_RETRY))
}

/// A file operation that failed, with the file and the mend.
pub(crate) fn io_error(what: &str, file: &str, error: &io::Error) -> Error {
    let text = format!("can't {what}: {error}");
    let (failed, mend) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (full(text), "free some space"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (Error::unavailable(text), "make the folder writable")
        }
        _ => (Error::unavailable(text), "check the disk and the folder"),
    };
    failed.at(file).mend(mend)
}
