//! The care of a folder's space and of the next start: snapshots, moving what outlives its segment, releasing segments.
//!
//! What happens in one step, and why a crash within it leaves old or new:
//! - A snapshot appears whole, and only once the log is durable up to its place. Two are kept.
//! - A segment is released once nobody needs a body in it, the facts that say so are durable, and the older of the two
//!   snapshots covers it: a start from either never reads it.
//! - A body that outlives its segment is copied forward as a fact of its own; the old one counts until that is durable.

use super::ballast;
use super::error::{io_error, log_error};
use super::folder::Disks;
use super::live::segment_of;
use super::log_store::LogStore;
use super::mover::move_segment;
use super::snapshot::{Image, StorePart};
use super::snapshot_file;
use crate::{Fact, State};
use onward_core::{Error, Position, Result};
use onward_log::{Mode, SEGMENT_SPAN};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// Snapshots kept.
const SNAPSHOTS_KEPT: usize = 2;
/// A snapshot is due when the log has grown by this many times the last one's size.
const SNAPSHOT_GROWTH: u64 = 4;
/// A segment whose live bodies are no more than one in so many of those written to it is copied forward.
const SPARSE: u64 = 2;
/// Most bytes of bodies copied forward under one hold of the engine's lock.
const MOVE_BYTES_MAX: usize = 256 << 10;

/// Access to the state under the engine's one lock; what runs there must be short.
pub(crate) trait Held: Send + Sync {
    /// A copy of the state as it is now, and what `beside` answers at the same moment.
    fn freeze(&self, beside: &mut dyn FnMut() -> StorePart) -> (State, StorePart);
    /// Appends and applies the facts that `plan` finds right.
    fn write(&self, plan: &mut dyn FnMut(&State) -> Vec<Fact>) -> Result<()>;
}

/// Looks after one open folder.
#[derive(Debug)]
pub(crate) struct Care {
    disks: Disks,
    store: Arc<LogStore>,
    snapshot_bytes_min: u64,
    /// Most bytes copied forward under one hold of the engine's lock.
    move_bytes_max: usize,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// Places of the good snapshots, newest first.
    snapshots: Vec<Position>,
    snapshot_bytes: u64,
    /// How many live bodies each segment had at the last step.
    live_before: BTreeMap<u32, u64>,
    end_before: u64,
}

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CareReport {
    /// A snapshot was written, of so many bytes.
    pub snapshot_bytes: Option<u64>,
    /// Bodies copied forward.
    pub moved: u64,
    /// Segments released.
    pub released: u64,
}

impl Care {
    pub(crate) fn new(
        disks: Disks,
        store: Arc<LogStore>,
        snapshot_bytes_min: u64,
        snapshots: Vec<Position>,
    ) -> Self {
        ballast::keep(&*disks.snapshots, 0);
        let end_before = store.log.end().0;
        let seen = Seen { snapshots, snapshot_bytes: 0, live_before: BTreeMap::new(), end_before };
        // Far less than a unit, since the last body of a batch may be a large one.
        let unit_bytes = store.log.segments().first().map_or(u64::MAX, |segment| segment.bytes / 8);
        let move_bytes_max = MOVE_BYTES_MAX.min(unit_bytes as usize);
        Self { disks, store, snapshot_bytes_min, move_bytes_max, seen: Mutex::new(seen) }
    }

    /// One step of everything that is due.
    ///
    /// # Errors
    /// `Full` and `Unavailable` from the disk: to be tried again. `Poisoned`: the log takes no more writes.
    pub(crate) fn step(&self, held: &dyn Held) -> Result<CareReport> {
        let mut seen = self.seen.lock();
        if let Some(failure) = self.store.relay.failure() {
            return Err(failure);
        }
        self.attest_when_idle(&mut seen);
        // What fails must not keep the others from giving space back: on a full disk each helps the next.
        let moved = self.move_sparse(held, &mut seen);
        let snapshot = if self.snapshot_due(&seen) { self.snapshot(held, &mut seen) } else { Ok(None) };
        let released = self.release(&seen);
        Ok(CareReport { snapshot_bytes: snapshot?, moved: moved?, released: released? })
    }

    /// Takes no more writes once another folder has taken this one's place.
    pub(crate) fn stop_when_superseded(&self) {
        let marked = self.disks.root.open(super::outside::SUPERSEDED, Mode::Read).is_ok();
        if marked && self.store.failure().is_none() {
            self.store
                .log
                .refuse_writes("another folder has taken this one's place; see the file `superseded`");
        }
    }

    /// One step; what went wrong is shown in health until a step goes well.
    pub(crate) fn step_and_tell(&self, held: &dyn Held) {
        let problem = self.step(held).err();
        self.store.relay.care(problem);
    }

    /// Writes a snapshot now, unless nothing has happened since the last one.
    pub(crate) fn snapshot_now(&self, held: &dyn Held) -> Result<Option<u64>> {
        let mut seen = self.seen.lock();
        self.snapshot(held, &mut seen)
    }

    fn attest_when_idle(&self, seen: &mut Seen) {
        let end = self.store.log.end().0;
        if end == seen.end_before {
            self.store.log.attest();
        }
        seen.end_before = end;
    }

    /// Bytes of log between two places: segments are full but for their last bytes.
    fn bytes_between(&self, from: u64, to: u64) -> u64 {
        let segment_bytes = self.store.log.segments().first().map_or(0, |segment| segment.bytes);
        let segments = u64::from(segment_of(to).saturating_sub(segment_of(from)));
        (segments * segment_bytes + to % SEGMENT_SPAN).saturating_sub(from % SEGMENT_SPAN)
    }

    fn snapshot_due(&self, seen: &Seen) -> bool {
        let last = seen.snapshots.first().map_or(0, |position| position.0);
        let grown = self.bytes_between(last, self.store.use_of.lock().end);
        grown > self.snapshot_bytes_min.max(SNAPSHOT_GROWTH * seen.snapshot_bytes)
            || self.held_back(seen) > self.worth_releasing(seen)
    }

    /// Dead segments are worth a snapshot when they take more than two; on a full disk always.
    fn worth_releasing(&self, seen: &Seen) -> u64 {
        if self.store.relay.is_full() { 0 } else { seen.snapshot_bytes.saturating_mul(2) }
    }

    /// Whether the disk is full, so that space should be found sooner.
    pub(crate) fn is_urgent(&self) -> bool {
        self.store.relay.is_full()
    }

    /// Bytes of segments that could go if only snapshots covered them.
    fn held_back(&self, seen: &Seen) -> u64 {
        let covered = covered(seen);
        let used = self.store.use_of.lock();
        let complete = self.store.log.segments().into_iter().filter(|segment| segment.complete);
        let dead = complete.filter(|s| s.index >= covered && used.live.of(s.index).live == 0);
        dead.map(|segment| segment.bytes).sum()
    }

    fn snapshot(&self, held: &dyn Held, seen: &mut Seen) -> Result<Option<u64>> {
        let last = seen.snapshots.first().map_or(0, |position| position.0);
        if self.place() <= last {
            return Ok(None);
        }
        let (state, part) = held.freeze(&mut || self.store_part());
        let image = Image::new(state, part);
        // A snapshot must never be ahead of what the log surely holds.
        if !self.store.wait_synced(image.position().0) {
            return Err(self.store.relay.failure().unwrap_or_else(|| Error::closed("the store is closed")));
        }
        let bytes = ballast::write(&*self.disks.snapshots, &image)
            .map_err(|error| io_error("write a snapshot", "snapshots", &error))?;
        seen.snapshots.insert(0, image.position());
        drop(image);
        seen.snapshot_bytes = bytes;
        self.prune(seen)?;
        ballast::keep(&*self.disks.snapshots, bytes);
        Ok(Some(bytes))
    }

    fn store_part(&self) -> StorePart {
        let written = self.store.use_of.lock().live.written_counts();
        StorePart { log_id: self.store.log.log_id(), position: self.place(), written }
    }

    /// Where a replay would go on from here: behind the last unit, or behind what attests that it is durable, so that
    /// an idle store can be covered twice.
    fn place(&self) -> u64 {
        self.store.use_of.lock().end.max(self.store.log.progress().synced.0)
    }

    /// Deletes what is neither of the kept snapshots: older ones, damaged ones, unfinished ones.
    fn prune(&self, seen: &mut Seen) -> Result<()> {
        seen.snapshots.truncate(SNAPSHOTS_KEPT);
        let disk = &*self.disks.snapshots;
        let (there, unfinished) = snapshot_file::list(disk)?;
        let old = there.into_iter().filter(|position| !seen.snapshots.contains(position));
        for name in old.map(snapshot_file::name_of).chain(unfinished) {
            disk.delete(&name).map_err(|error| io_error("delete", &name, &error))?;
        }
        disk.sync_dir().map_err(|error| io_error("sync the folder", "snapshots", &error))
    }

    /// Releases what nobody needs; answers how many segments.
    fn release(&self, seen: &Seen) -> Result<u64> {
        let covered = covered(seen);
        let synced = self.store.log.progress().synced.0;
        let mut released = 0;
        for segment in self.store.log.segments() {
            let used = self.store.use_of.lock().live.of(segment.index);
            let dead = segment.complete && used.live == 0 && used.dead_since <= synced;
            if dead && segment.index < covered {
                self.store.log.release(segment.index).map_err(log_error)?;
                self.store.use_of.lock().live.forget(segment.index);
                released += 1;
            }
        }
        Ok(released)
    }

    /// Copies what lives in sparse, quiet segments forward; answers how many bodies.
    fn move_sparse(&self, held: &dyn Held, seen: &mut Seen) -> Result<u64> {
        let mut moved = 0;
        let complete = self.store.log.segments().into_iter().filter(|segment| segment.complete);
        for segment in complete.collect::<Vec<_>>() {
            let used = self.store.use_of.lock().live.of(segment.index);
            let quiet = seen.live_before.insert(segment.index, used.live) == Some(used.live);
            // On a full disk one at a time, so that the reserve is not used up before anything is given back.
            if self.is_urgent() && moved > 0 {
                continue;
            }
            if quiet && used.live > 0 && used.live * SPARSE <= used.bodies {
                moved += move_segment(&self.store, held, segment.index, self.move_bytes_max)?;
            }
        }
        let there: Vec<u32> = self.store.log.segments().iter().map(|segment| segment.index).collect();
        seen.live_before.retain(|index, _| there.contains(index));
        Ok(moved)
    }
}

/// Segments before this one are not read by a start from either of two snapshots.
fn covered(seen: &Seen) -> u32 {
    seen.snapshots.get(SNAPSHOTS_KEPT - 1).map_or(0, |position| segment_of(position.0))
}
