//! Restoring: a data folder made of copies, as of their end or of an earlier moment, in an epoch of its own.

use crate::{
    backup::millis,
    claim,
    cut::{Cut, Until},
    destination::Destination,
    manifest::Manifest,
    names::{self, Copied, Holdings, LineNumber},
    write::Folder,
};
use onward_core::{Env, Error, Position, Result, Timestamp};
use onward_embedded::{EmbeddedEngine, OpenOptions, outside};
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};

/// How long the restored folder's engine may take to close, at most.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Up to where copies are restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Target {
    /// All that was copied.
    #[default]
    End,
    /// Nothing that was written after this moment.
    Time(Timestamp),
    /// Nothing that stands behind this position.
    Position(Position),
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Everything before this is there.
    pub position: Position,
    /// When the last unit that is there was written; what was accepted later is lost.
    pub last_at: Option<Timestamp>,
    /// How long before now that was, in milliseconds: how much was lost at most, if the original worked until now.
    pub lost_ms_max: Option<u64>,
    /// When the copies were last added to, as far as they tell.
    pub copied_at: Timestamp,
    /// Groups of the copies behind the target, which are not restored.
    pub groups_left_out: u64,
    /// The snapshot that the folder begins with.
    pub snapshot: Option<Position>,
    /// Bytes that were read from the copies.
    pub bytes: u64,
    /// Leases of the original that were voided: their tokens settle nothing, their messages are handed out again.
    pub leases_voided: u64,
    /// Until the folder was whole, in milliseconds.
    pub took_ms: u64,
    /// Of that: bringing the engine up on it, once.
    pub opening_ms: u64,
}

/// Makes a data folder of copies.
///
/// Guarantees: the folder is a valid prefix of what the original wrote; it is opened once, in an epoch that the original
/// never comes to, so that no lease token of the original settles anything in it. A restore that was interrupted leaves a
/// folder that no engine opens.
///
/// # Errors
/// `AlreadyExists` when the folder is not empty, `NotFound` when there are no copies or none that old, `Corrupt` naming
/// the object for damaged or missing ones, `Full` and `Unavailable` from disk and destination.
pub async fn restore(from: &Destination, dir: &Path, target: Target, env: Arc<dyn Env>) -> Result<Restored> {
    let begun = env.monotonic();
    let (line, held) = newest_line(from).await?;
    let manifest = choose(from, line, &held, target).await?;
    let folder = Folder::make(dir)?;
    let fetched = fetch(from, line, &held, &manifest, target, &folder).await?;
    folder.finish(&[outside::RESTORED])?;
    let fetched_at = env.monotonic();
    let leases_voided = open_once(dir, fetched.segment_bytes, env.clone()).await?;
    let now = env.monotonic();
    Ok(Restored {
        position: Position(fetched.end.0),
        last_at: fetched.last_at,
        lost_ms_max: fetched.last_at.map(|last| millis(env.now().since(last))),
        copied_at: manifest.made_at,
        groups_left_out: fetched.left_out,
        snapshot: manifest.snapshot_at(),
        bytes: fetched.bytes,
        leases_voided,
        took_ms: millis(now.saturating_sub(begun)),
        opening_ms: millis(now.saturating_sub(fetched_at)),
    })
}

/// Brings the engine up once, which voids the original's leases, and leaves a snapshot for the next start.
pub(crate) async fn open_once(dir: &Path, segment_bytes: u64, env: Arc<dyn Env>) -> Result<u64> {
    let dir = dir.to_owned();
    // Of the original's own size, so that no files are made that the next opening throws away.
    let options = OpenOptions { segment_bytes, reserve_bytes: segment_bytes, ..OpenOptions::default() };
    let opened = tokio::task::spawn_blocking(move || EmbeddedEngine::open(&dir, options, env)).await;
    let engine = opened.map_err(|failed| Error::internal(format!("opening failed: {failed}")))??;
    let voided = engine.report().voided.unwrap_or(0);
    onward_core::Engine::close(&engine, CLOSE_WAIT).await?;
    Ok(voided)
}

/// The line in force, of those that hold a manifest.
pub(crate) async fn newest_line(from: &Destination) -> Result<(LineNumber, Holdings)> {
    for line in claim::lines(from).await?.into_iter().rev() {
        let held = Holdings::of(&from.list(&names::line(line)).await?);
        if !held.manifests.is_empty() {
            return Ok((line, held));
        }
    }
    Err(Error::not_found("there is no finished backup")
        .at(from.name())
        .mend("name the destination that `onward backup` or `onward ship` was given"))
}

/// The newest manifest that is not behind the target; the first one, if its log can still be cut there.
async fn choose(from: &Destination, line: LineNumber, held: &Holdings, target: Target) -> Result<Manifest> {
    let mut oldest = None;
    for named in held.manifests.iter().rev() {
        let manifest = Manifest::get(from, line, *named).await?;
        let within = match target {
            Target::End => true,
            Target::Position(position) => manifest.end <= position.0,
            Target::Time(time) => manifest.last_at.is_some_and(|last| last <= time),
        };
        if within {
            return Ok(manifest);
        }
        oldest = Some(manifest);
    }
    oldest.ok_or_else(|| Error::internal("a line without manifests was chosen"))
}

/// What was brought into a folder.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) end: onward_log::Position,
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) left_out: u64,
    pub(crate) bytes: u64,
    pub(crate) segment_bytes: u64,
}

async fn fetch(
    from: &Destination,
    line: LineNumber,
    held: &Holdings,
    manifest: &Manifest,
    target: Target,
    folder: &Folder,
) -> Result<Fetched> {
    if let Some(missing) = manifest.missing(held).first() {
        return Err(names::damaged(missing, "is missing"));
    }
    let mut fetched = Fetched::default();
    if let Some((position, bytes)) = manifest.snapshot {
        fetched.bytes += copy(from, line, held, Copied::Snapshot(position), bytes, folder).await?;
    }
    let begin = manifest.snapshot.map_or(0, |(position, _)| position);
    let first = onward_log::Position(begin).segment();
    for (index, to) in manifest.segments.iter().filter(|(index, _)| *index < first) {
        fetched.bytes += copy(from, line, held, Copied::Segment(*index), *to, folder).await?;
        folder.lengthen(*index)?;
    }
    // Without a snapshot the log begins with the first segment that the manifest names.
    let first = if begin > 0 { first } else { manifest.segments.first().map_or(1, |(index, _)| *index) };
    let until = match target {
        Target::End => Until::End,
        Target::Time(time) => Until::Time(time.as_micros()),
        Target::Position(position) => Until::Position(position.0),
    };
    let mut cut = Cut::new(from, line, held, until);
    let bytes = cut.run(first, folder).await?;
    if cut.end.0 < begin || cut.groups == 0 {
        return Err(Error::not_found("the copies begin later than that")
            .at(from.name())
            .mend(format!("the earliest position that can be restored is {}", Position(begin.max(1)))));
    }
    // What the manifest promised must be there, unless it was not asked for.
    if cut.end.0 < manifest.end && !cut.reached {
        return Err(names::damaged(&format!("{}", cut.end), "the log's groups do not go on"));
    }
    fetched.bytes += bytes;
    fetched.last_at = cut.last_us.map(Timestamp::from_micros).or(manifest.last_at);
    (fetched.end, fetched.left_out, fetched.segment_bytes) = (cut.end, cut.left_out, cut.segment_bytes);
    Ok(fetched)
}

/// Copies the first `to` bytes of a file into the folder, each object checked; answers how many bytes.
pub(crate) async fn copy(
    from: &Destination,
    line: LineNumber,
    held: &Holdings,
    file: Copied,
    to: u64,
    folder: &Folder,
) -> Result<u64> {
    let mut copied = 0;
    for span in held.whole(file).into_iter().take_while(|span| span.from < to) {
        let bytes = object(from, &names::span(line, file, span), span.checksum).await?;
        let wanted = bytes.slice(..bytes.len().min((to - span.from) as usize));
        folder.write(file, span.from, &wanted)?;
        copied += wanted.len() as u64;
    }
    folder.sync(file)?;
    Ok(copied)
}

pub(crate) async fn object(from: &Destination, name: &str, checksum: u64) -> Result<bytes::Bytes> {
    let bytes = from.get(name).await?.ok_or_else(|| names::damaged(name, "is gone"))?;
    names::check(name, &bytes, checksum)?;
    Ok(bytes)
}
