//! Shipping: copying a folder's log to a destination over and over, a moment behind the work.

use crate::{
    claim,
    copy::{Copier, Stand, Watch},
    destination::Destination,
    names::{self, Copied},
    retain::Retention,
};
use onward_core::{Env, ErrorKind, Position, Result, Timestamp};
use serde::{Deserialize, Serialize};
use std::{path::Path, sync::Arc, time::Duration};

/// How often an idle shipper says that it is there.
const IDLE_HEAD: Duration = Duration::from_secs(5);

/// How a folder is shipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipOptions {
    /// How long it waits from one pass to the next: about what is lost at most when the machine is lost.
    pub every: Duration,
    /// How far back a moment can be restored; older copies are deleted.
    pub keep: Duration,
    /// Begin a line of this folder's own where another folder's claim is in force; that one is stopped.
    pub take_over: bool,
}

impl Default for ShipOptions {
    fn default() -> Self {
        Self { every: Duration::from_secs(1), keep: Duration::from_secs(7 * 24 * 3600), take_over: false }
    }
}

/// How far shipping has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shipped {
    /// Everything before this is at the destination.
    pub position: Position,
    /// When the last unit before it was written.
    pub last_at: Option<Timestamp>,
    /// Bytes sent by this pass.
    pub bytes: u64,
    /// How long this pass took, in milliseconds.
    pub took_ms: u64,
    /// Segments were released before they were shipped: a moment between the last position and this one can't be
    /// restored.
    pub gap: bool,
}

/// At the destination: how far shipping has come, for whoever follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) end: u64,
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) at: Timestamp,
}

/// Ships one folder.
pub struct Shipper {
    copier: Copier,
    stand: Stand,
    retention: Retention,
    env: Arc<dyn Env>,
    head_at: Option<Duration>,
}

impl std::fmt::Debug for Shipper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shipper").field("stand", &self.stand).finish_non_exhaustive()
    }
}

impl Shipper {
    /// Copies the whole folder, so that what follows can be shipped.
    ///
    /// # Errors
    /// Those of [`crate::backup()`].
    pub async fn start(
        dir: &Path,
        to: &Destination,
        options: &ShipOptions,
        watch: Watch,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let mut copier = Copier::enter(dir, to, options.take_over, watch, env.clone()).await?;
        let stand = copier.base().await?;
        let manifest = copier.manifest(&stand).await?;
        let mut retention = Retention::of(&copier, options.keep).await?;
        retention.made(manifest, copier.held.manifests.last().map_or(0, |(_, checksum)| *checksum));
        let mut shipper = Self { copier, stand, retention, env, head_at: None };
        shipper.head().await?;
        Ok(shipper)
    }

    /// Copies what came since the last pass.
    ///
    /// # Errors
    /// `Conflict` once another folder took over: this folder is marked, and takes no more writes. `Unavailable` from the
    /// destination: to be tried again, nothing is skipped. `Corrupt` for damage in the folder.
    pub async fn step(&mut self) -> Result<Shipped> {
        let (begun, before) = (self.env.monotonic(), self.copier.progress.bytes);
        if let Some(theirs) = claim::is_overtaken(&self.copier.to, self.copier.claim.line).await? {
            return Err(claim::supersede(&self.copier.source.dir, &self.copier.to, &theirs));
        }
        let there = self.copier.read(|source| source.segments()).await?;
        let followed = self.copier.follow(self.stand.cursor).await?;
        let gap = followed.is_none();
        let from = self.stand.cursor.segment;
        match followed {
            Some(cursor) => self.stand.cursor = cursor,
            None => self.stand = self.copier.base().await?,
        }
        let end = self.stand.cursor.position().0;
        let snapshot = self.copier.read(move |source| source.snapshot(end)).await?;
        if gap || snapshot != self.stand.snapshot || from != self.stand.cursor.segment {
            self.stand_on(snapshot, &there, gap).await?;
            self.tidy(from).await?;
        }
        if self.copier.progress.bytes > before || self.head_is_old() {
            self.head().await?;
        }
        Ok(Shipped {
            position: Position(end),
            last_at: self.copier.last_us.map(Timestamp::from_micros),
            bytes: self.copier.progress.bytes - before,
            took_ms: crate::backup::millis(self.env.monotonic().saturating_sub(begun)),
            gap,
        })
    }

    /// Makes a manifest of what is there now, on a newer snapshot if there is one.
    async fn stand_on(&mut self, snapshot: Option<Position>, there: &[u32], gap: bool) -> Result<()> {
        if let Some(position) = snapshot.filter(|_| !gap)
            && self.copier.snapshot(position).await?
        {
            self.stand.snapshot = Some(position);
        }
        if !gap {
            let first = self.stand.snapshot.map_or(0, |at| onward_log::Position(at.0).segment());
            let last = self.stand.cursor.segment;
            let held = |index: &u32| self.copier.held.covered(Copied::Segment(*index)) > 0;
            // What the snapshot's segments hold still counts, and so does everything behind.
            let older = there.iter().copied().filter(|index| *index < first.max(1));
            let chain = (first.max(1)..=last).filter(|index| first > 0 || there.contains(index));
            self.stand.segments = older.chain(chain).filter(held).collect();
        }
        let manifest = self.copier.manifest(&self.stand).await?;
        let checksum = self.copier.held.manifests.last().map_or(0, |(_, checksum)| *checksum);
        self.retention.made(manifest, checksum);
        Ok(())
    }

    /// Joins the small objects of segments that are complete, and deletes what is older than is kept.
    async fn tidy(&mut self, from: u32) -> Result<()> {
        for index in from..self.stand.cursor.segment {
            self.copier.join(index).await?;
        }
        self.retention.apply(&mut self.copier).await
    }

    fn head_is_old(&self) -> bool {
        self.head_at.is_none_or(|at| self.env.monotonic().saturating_sub(at) >= IDLE_HEAD)
    }

    async fn head(&mut self) -> Result<()> {
        let head = Head {
            end: self.stand.cursor.position().0,
            last_at: self.copier.last_us.map(Timestamp::from_micros),
            at: self.env.now(),
        };
        let text = serde_json::to_vec(&head).expect("numbers and times always serialise");
        self.copier.to.put(&names::head(self.copier.claim.line), text.into()).await?;
        self.head_at = Some(self.env.monotonic());
        Ok(())
    }
}

/// Ships a folder until `go_on` says no; `told` hears of each pass and of what went wrong and is tried again.
///
/// # Errors
/// Those of [`Shipper::start`] and [`Shipper::step`] that trying again does not mend.
pub async fn ship(
    dir: &Path,
    to: &Destination,
    options: ShipOptions,
    env: Arc<dyn Env>,
    told: &(dyn Fn(Result<Shipped>) + Send + Sync),
    go_on: &(dyn Fn() -> bool + Send + Sync),
) -> Result<()> {
    let quiet: Watch = Arc::new(|_| {});
    let mut shipper = None;
    while go_on() {
        let passed = match &mut shipper {
            None => match Shipper::start(dir, to, &options, quiet.clone(), env.clone()).await {
                Ok(mut started) => {
                    let mut passed = started.step().await;
                    // What the whole folder took counts as the first pass.
                    if let Ok(passed) = &mut passed {
                        passed.bytes = started.copier.progress.bytes;
                    }
                    shipper = Some(started);
                    passed
                }
                Err(error) => Err(error),
            },
            Some(started) => started.step().await,
        };
        match passed {
            Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error),
            passed => told(passed),
        }
        env.sleep(options.every).await;
    }
    Ok(())
}
