//! A backup: a whole folder copied once, while it is worked on.

use crate::{
    copy::{Copier, Watch},
    destination::Destination,
};
use onward_core::{Env, Position, Result, Timestamp};
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// Everything before this is in it.
    pub position: Position,
    /// When the last unit in it was written.
    pub last_at: Option<Timestamp>,
    /// The snapshot that it begins with.
    pub snapshot: Option<Position>,
    /// Segments of the log.
    pub segments: usize,
    /// Bytes that were written by this call.
    pub bytes: u64,
    /// Bytes that an earlier backup or attempt had left there.
    pub kept_bytes: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// Copies a data folder while it may be worked on, by whatever process.
///
/// Guarantees: the backup restores to a valid prefix of what was written, no older than this call's start. What an
/// earlier backup or an interrupted one left at the destination is used, and not copied again. The folder's log is only
/// read; a file in the folder remembers which claim it holds at the destination.
///
/// # Errors
/// `NotFound` where no data folder is, `Corrupt` for damage in it, `Conflict` where another folder's copies are,
/// `Unavailable` from disk and destination: the same call goes on where it stopped.
///
/// Limits: 16 MiB of memory at once, or the largest group.
pub async fn backup(dir: &Path, to: &Destination, watch: Watch, env: Arc<dyn Env>) -> Result<BackedUp> {
    let begun = env.monotonic();
    let mut copier = Copier::enter(dir, to, false, watch, env.clone()).await?;
    let stand = copier.base().await?;
    let manifest = copier.manifest(&stand).await?;
    Ok(BackedUp {
        position: Position(manifest.end),
        last_at: manifest.last_at,
        snapshot: manifest.snapshot_at(),
        segments: manifest.segments.len(),
        bytes: copier.progress.bytes,
        kept_bytes: copier.progress.kept_bytes,
        took_ms: millis(env.monotonic().saturating_sub(begun)),
    })
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
