//! A standby: a folder that follows shipped copies, ready to take the original's place.

use crate::{
    backup::millis,
    claim,
    cut::{Cut, Until},
    destination::Destination,
    manifest::Manifest,
    names::{self, Copied, Holdings, LineNumber},
    restore::{copy, newest_line, open_once},
    ship::Head,
    write::Folder,
};
use onward_core::{Env, Error, Position, Result, Timestamp};
use onward_embedded::outside;
use onward_log::DiskLock;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// In a standby's folder: somebody wants it promoted.
const PROMOTE: &str = "promote";
/// How often a promotion by a running standby is looked at, and how long it is waited for.
const PROMOTE_LOOK: Duration = Duration::from_millis(100);
const PROMOTE_LOOKS_MAX: u32 = 600;

/// What a standby's folder says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    source: String,
    line: LineNumber,
}

/// How far a standby is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// Everything before this is in the standby's folder, checked and durable.
    pub position: Position,
    /// When the last unit before it was written.
    pub last_at: Option<Timestamp>,
    /// How long ago the shipper last said that it was there, in milliseconds: what is lost at most if it died then.
    pub lag_ms: Option<u64>,
    /// Bytes fetched by this pass.
    pub bytes: u64,
}

/// What a promotion came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Promoted {
    /// Everything before this is there.
    pub position: Position,
    /// When the last unit before it was written; what was accepted later is lost.
    pub last_at: Option<Timestamp>,
    /// The claim that fences the original.
    pub claim: u32,
    /// Leases of the original that were voided.
    pub leases_voided: u64,
    /// Until the folder could be worked on, in milliseconds.
    pub took_ms: u64,
}

/// A folder that follows.
pub struct Standby {
    from: Destination,
    dir: PathBuf,
    folder: Folder,
    line: LineNumber,
    env: Arc<dyn Env>,
    /// The end of the newest manifest that the folder is built on.
    built_on: u64,
    end: onward_log::Position,
    epoch: u32,
    last_us: Option<i64>,
    segment_bytes: u64,
    lock: Option<Box<dyn DiskLock>>,
}

impl std::fmt::Debug for Standby {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Standby").field("dir", &self.dir).field("end", &self.end).finish_non_exhaustive()
    }
}

impl Standby {
    /// Makes a new standby, or goes on with one that was stopped.
    ///
    /// # Errors
    /// `NotFound` where nothing is shipped yet, `AlreadyExists` for a folder that is something else or that another
    /// process has, `Conflict` for a standby of another source, those of a restore.
    pub async fn open(from: &Destination, dir: &Path, env: Arc<dyn Env>) -> Result<Self> {
        let (line, _) = newest_line(from).await?;
        let wanted = Marker { source: from.name().to_owned(), line };
        let folder = match marker(dir)? {
            Some(found) if found == wanted => Folder::made(dir),
            Some(found) => {
                return Err(Error::conflict(format!("it follows {} (line {})", found.source, found.line))
                    .at(dir.display())
                    .mend("begin a new standby in a new folder"));
            }
            None => {
                let folder = Folder::make(dir)?;
                let text = serde_json::to_vec(&wanted).expect("a name and a number always serialise");
                folder.put(outside::STANDBY, &text)?;
                folder.remove(outside::UNFINISHED)?;
                folder
            }
        };
        let lock = Some(outside::lock(dir)?);
        let end = onward_log::Position::ZERO;
        let (from, dir) = (from.clone(), dir.to_owned());
        let mut standby = Self {
            from,
            dir,
            folder,
            line,
            env,
            built_on: 0,
            end,
            epoch: 0,
            last_us: None,
            segment_bytes: 0,
            lock,
        };
        standby.step().await?;
        Ok(standby)
    }

    /// Fetches what was shipped since the last pass, and makes it durable.
    ///
    /// # Errors
    /// `Conflict` when another claim took over, `Unavailable` to be tried again, `Corrupt` for damaged copies.
    pub async fn step(&mut self) -> Result<Followed> {
        if let Some(theirs) = claim::is_overtaken(&self.from, self.line).await? {
            return Err(Error::conflict(format!("another folder took over at {}", theirs.made_at))
                .at(self.from.name())
                .mend("begin a new standby in a new folder: it follows the new one"));
        }
        let bytes = self.fetch().await?;
        let head = self.head().await?;
        let now = self.env.now();
        Ok(Followed {
            position: Position(self.end.0),
            last_at: self.last_us.map(Timestamp::from_micros),
            lag_ms: head.map(|head| millis(now.since(head.at))),
            bytes,
        })
    }

    async fn head(&self) -> Result<Option<Head>> {
        let bytes = self.from.get(&names::head(self.line)).await?;
        // Only for showing: what can't be read is as if it were not there.
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    async fn fetch(&mut self) -> Result<u64> {
        let held = Holdings::of(&self.from.list(&names::line(self.line)).await?);
        let mut bytes = 0;
        if let Some(named) = held.manifests.last().filter(|(end, _)| *end > self.built_on) {
            let manifest = Manifest::get(&self.from, self.line, *named).await?;
            bytes += self.build_on(&held, &manifest).await?;
        }
        Ok(bytes + self.follow(&held).await?)
    }

    /// Brings what a manifest names and the folder lacks, then deletes what it does not name any more.
    async fn build_on(&mut self, held: &Holdings, manifest: &Manifest) -> Result<u64> {
        let mut bytes = 0;
        if let Some((position, size)) = manifest.snapshot {
            bytes += self.bring(held, Copied::Snapshot(position), size).await?;
        }
        let first = manifest.snapshot.map_or(0, |(position, _)| onward_log::Position(position).segment());
        for (index, to) in manifest.segments.iter().filter(|(index, _)| *index < first) {
            bytes += self.bring(held, Copied::Segment(*index), *to).await?;
            self.folder.lengthen(*index)?;
        }
        let begin =
            first.max(manifest.segments.first().map_or(1, |(index, _)| (*index).min(first.max(*index))));
        // A gap in what was shipped, or the beginning: the log goes on from the snapshot.
        if self.end.segment() < begin {
            (self.end, self.epoch) = (onward_log::Position::at(begin, 0), 0);
        }
        self.forget_unnamed(manifest)?;
        self.built_on = manifest.end;
        Ok(bytes)
    }

    async fn bring(&self, held: &Holdings, file: Copied, to: u64) -> Result<u64> {
        let there = std::fs::metadata(self.folder.path(file)).map_or(0, |file| file.len());
        // One that was followed to its end is longer than its groups; one that grew on is as long as what is there of it.
        if there >= to { Ok(0) } else { copy(&self.from, self.line, held, file, to, &self.folder).await }
    }

    /// Deletes segments and snapshots that the manifest does not need; what it needs is durable.
    fn forget_unnamed(&self, manifest: &Manifest) -> Result<()> {
        let named: BTreeSet<PathBuf> = manifest
            .segments
            .iter()
            .map(|(index, _)| self.folder.path(Copied::Segment(*index)))
            .chain(manifest.snapshot.map(|(at, _)| self.folder.path(Copied::Snapshot(at))))
            .collect();
        for place in ["log", "snapshots"] {
            let entries = std::fs::read_dir(self.dir.join(place));
            for entry in entries.into_iter().flatten().flatten() {
                let path = entry.path();
                let later = place == "log" && path >= self.folder.path(Copied::Segment(self.end.segment()));
                if !later && !named.contains(&path) {
                    std::fs::remove_file(&path).map_err(|error| self.folder.failed("delete", &error))?;
                }
            }
        }
        Ok(())
    }

    /// Takes the groups behind the end, checked, into the folder.
    async fn follow(&mut self, held: &Holdings) -> Result<u64> {
        let mut cut = Cut::new(&self.from, self.line, held, Until::End).behind(self.end, self.epoch);
        let bytes = cut.run_on(&self.folder).await?;
        (self.end, self.epoch) = (cut.end, cut.epoch);
        self.last_us = cut.last_us.or(self.last_us);
        self.segment_bytes = if cut.segment_bytes > 0 { cut.segment_bytes } else { self.segment_bytes };
        Ok(bytes)
    }

    /// Whether somebody has asked for the promotion of this standby.
    pub fn is_called(&self) -> bool {
        self.dir.join(PROMOTE).exists()
    }

    /// Takes the original's place: fences it, fetches the last of what it shipped, and begins a new epoch.
    ///
    /// # Errors
    /// `Conflict` when another one was promoted, those of a restore. Until the claim is made nothing has changed.
    pub async fn promote(mut self) -> Result<Promoted> {
        let begun = self.env.monotonic();
        let claim = claim::make(&self.from, &self.dir, self.line, &*self.env).await?;
        self.fetch().await?;
        self.folder.lengthen(self.end.segment())?;
        self.folder.finish(&[outside::RESTORED])?;
        self.folder.remove(PROMOTE)?;
        // The folder's lock is free before the marker is gone: whoever waits for that may open it at once.
        drop(self.lock.take());
        self.folder.remove(outside::STANDBY)?;
        let leases_voided = open_once(&self.dir, self.segment_bytes, self.env.clone()).await?;
        Ok(Promoted {
            position: Position(self.end.0),
            last_at: self.last_us.map(Timestamp::from_micros),
            claim: claim.line,
            leases_voided,
            took_ms: millis(self.env.monotonic().saturating_sub(begun)),
        })
    }
}

/// What a folder says that it follows.
fn marker(dir: &Path) -> Result<Option<Marker>> {
    match std::fs::read(dir.join(outside::STANDBY)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Error::corrupt(format!("can't be read: {error}"))
                .at(dir.join(outside::STANDBY).display())
                .mend("begin a new standby in a new folder")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::unavailable(format!("can't be read: {error}")).at(dir.display())),
    }
}

/// Promotes a standby's folder, by the process that follows with it if there is one.
///
/// Answers what it came to; nothing but that it is done when the other process did it.
///
/// # Errors
/// `NotFound` for a folder that is no standby, those of [`Standby::promote`].
pub async fn promote(dir: &Path, env: Arc<dyn Env>) -> Result<Option<Promoted>> {
    let Some(found) = marker(dir)? else {
        return Err(Error::not_found("is no standby")
            .at(dir.display())
            .mend("name the folder of `onward standby` with --data-dir"));
    };
    let from = Destination::existing(&found.source)?;
    match Standby::open(&from, dir, env.clone()).await {
        Ok(standby) => return standby.promote().await.map(Some),
        Err(error) if error.kind() == onward_core::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Folder::made(dir).put(PROMOTE, b"\n")?;
    for _ in 0..PROMOTE_LOOKS_MAX {
        if marker(dir)?.is_none() {
            return Ok(None);
        }
        env.sleep(PROMOTE_LOOK).await;
    }
    Err(Error::unavailable("the process that follows did not promote it in time")
        .at(dir.display())
        .mend("stop that process, then promote again"))
}
