//! The embedded engine on a data folder: opened, cared for, closed.

use super::care::{Care, CareReport, Held};
use super::config::log_config;
use super::folder::Disks;
use super::keeper::Keeper;
use super::log_store::{Last, LogStore};
use super::outside;
use super::recover::{OpenReport, Recovered, recover};
use super::snapshot::StorePart;
use crate::{Embedded, Fact, Options, State};
use onward_core::{AtomicScope, Durability, Env, Error, Result};
use onward_log::Disk;
use parking_lot::Mutex;
use std::{
    path::Path,
    sync::{Arc, Weak},
    time::Duration,
};

/// How a data folder is opened. The default suits work that matters on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// What a receipt means: [`Durability::Fsync`], or [`Durability::OsBuffer`] (written at once and synced soon after,
    /// but not waited for: survives the process, a power cut may lose the last moments).
    pub durability: Durability,
    /// Size of the log's segments, in bytes; a multiple of 4096, 16 KiB to 1 GiB. Folders may hold several sizes.
    pub segment_bytes: u64,
    /// Space kept for ending work on a full disk, in bytes; at least one segment.
    pub reserve_bytes: u64,
    /// No snapshot before the log has grown by so many bytes, unless it gives space back.
    pub snapshot_bytes_min: u64,
    /// How often snapshots, moving and releasing are looked at.
    pub care_every: Duration,
    /// How the engine behaves.
    pub engine: Options,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            segment_bytes: 64 << 20,
            reserve_bytes: 64 << 20,
            snapshot_bytes_min: 256 << 20,
            care_every: Duration::from_secs(1),
            engine: Options::default(),
        }
    }
}

pub(super) type OnLog = Embedded<Arc<LogStore>>;

/// The embedded engine on a data folder.
///
/// Guarantees: what [`onward_core::Engine`] says, durable as [`OpenOptions::durability`] says; one process has the folder at a time.
/// Dropping it writes and syncs what was appended, and frees the folder; closing it first also leaves a snapshot, so that
/// the next start is short.
#[derive(Debug)]
pub struct EmbeddedEngine {
    /// First, so that its thread has ended before the rest goes.
    pub(super) keeper: Mutex<Option<Keeper>>,
    pub(super) engine: Arc<OnLog>,
    care: Arc<Care>,
    report: OpenReport,
}

impl Held for OnLog {
    fn freeze(&self, beside: &mut dyn FnMut() -> StorePart) -> (State, StorePart) {
        self.frozen(beside)
    }

    fn write(&self, plan: &mut dyn FnMut(&State) -> Vec<Fact>) -> Result<()> {
        self.maintain(plan)
    }
}

impl EmbeddedEngine {
    /// Opens the data folder `dir`, made if missing. Blocks until everything is brought back and durable.
    ///
    /// # Errors
    /// `AlreadyExists` when another process has it, naming that one; `Unsupported` for a folder of a newer version;
    /// `Corrupt` for damage to what was durable; nothing was changed then. `Full` and `Unavailable` from the disk.
    pub fn open(dir: &Path, options: OpenOptions, env: Arc<dyn Env>) -> Result<Self> {
        let at = |error: Error| match error.place() {
            Some(_) => error,
            None => error.at(dir.display()),
        };
        let disks = Disks::real(dir).map_err(at)?;
        Self::on(disks, options, env, false).map_err(at)
    }

    /// Opens `dir` for looking only: it is brought back as by [`EmbeddedEngine::open`], but whatever is written, by the
    /// opening too, stays in memory. The folder is not changed.
    ///
    /// # Errors
    /// `NotFound` where no data folder is; else as [`EmbeddedEngine::open`].
    pub fn look_at(dir: &Path, env: Arc<dyn Env>) -> Result<Self> {
        let at = |error: Error| match error.place() {
            Some(_) => error,
            None => error.at(dir.display()),
        };
        let disks = Disks::looked_at(dir).map_err(at)?;
        Self::on(disks, OpenOptions::default(), env, false).map_err(at)
    }

    /// Opens what lies on `disk`, on which folders are one, without threads and without a clock task: nothing is
    /// written before [`EmbeddedEngine::step_disk`] is called, and nothing becomes due before
    /// [`EmbeddedEngine::tick`]. For simulations, which decide what happens when.
    ///
    /// # Errors
    /// As [`EmbeddedEngine::open`].
    pub fn open_by_hand(disk: Arc<dyn Disk>, mut options: OpenOptions, env: Arc<dyn Env>) -> Result<Self> {
        options.engine.manual_clock = true;
        Self::on(Disks::one(disk), options, env, true)
    }

    /// Of an engine opened by hand: writes and syncs the next group; answers whether there was one.
    ///
    /// A failure is told to those who wait, and shown in health.
    pub fn step_disk(&self) -> bool {
        self.engine.store().log.step().unwrap_or(false)
    }

    /// Of an engine opened by hand: does everything that is due now; answers when to call again.
    pub fn tick(&self) -> Option<Duration> {
        self.engine.tick()
    }

    /// Opens what lies on `disks`; `by_hand` runs no threads, so that a simulation decides what happens when.
    pub(crate) fn on(disks: Disks, options: OpenOptions, env: Arc<dyn Env>, by_hand: bool) -> Result<Self> {
        if !matches!(options.durability, Durability::Fsync | Durability::OsBuffer) {
            return Err(Error::unsupported(format!("can't be {}", options.durability))
                .at("`durability`")
                .mend("use `fsync` or `os-buffer`"));
        }
        let config = log_config(options.segment_bytes, options.reserve_bytes, env.random());
        let found = recover(&disks, config, options.durability, &env, by_hand)?;
        let Recovered { mut state, store, mut report, snapshots } = found;
        let restored = outside::is_restored(&*disks.root)?;
        if restored {
            state.skip_epochs(outside::EPOCHS_SKIPPED);
        }
        let store = Arc::new(store);
        let root = disks.root.clone();
        let care = Care::new(disks, store.clone(), options.snapshot_bytes_min, snapshots);
        let engine =
            Embedded::open(env, store.clone(), state, options.engine, "embedded", AtomicScope::Store)?;
        // Tokens of this opening must never be taken for those of a later one.
        if !store.wait_synced(store.end()) {
            return Err(store
                .failure()
                .unwrap_or_else(|| Error::unavailable("the opening can't be written")));
        }
        if restored {
            report.voided = Some(void(&engine, &*root)?);
        }
        let (engine, care) = (Arc::new(engine), Arc::new(care));
        let held: Weak<dyn Held> = Arc::downgrade(&engine) as Weak<dyn Held>;
        store.before_close(last_snapshot(&care, held.clone()));
        let keeper = if by_hand { None } else { Some(Keeper::start(care.clone(), held, options.care_every)) };
        let keeper = keeper.transpose().map_err(|error| {
            super::error::io_error("start the thread that takes care of it", "the data folder", &error)
        })?;
        Ok(Self { keeper: Mutex::new(keeper), engine, care, report })
    }

    /// What opening found: the snapshot used, how much was replayed, what a power cut left.
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Does now what the folder's care would do in time: moves, snapshots, releases.
    ///
    /// # Errors
    /// `Full` and `Unavailable` from the disk, `Poisoned` when the log takes no more writes.
    pub fn care(&self) -> Result<CareReport> {
        self.care.step(&*self.engine)
    }

    /// Writes a snapshot now, so that the next start is short; answers its size in bytes, or nothing when there is
    /// nothing new.
    ///
    /// # Errors
    /// As [`EmbeddedEngine::care`].
    pub fn snapshot(&self) -> Result<Option<u64>> {
        self.care.snapshot_now(&*self.engine)
    }

    /// The engine without the folder's care.
    #[cfg(test)]
    pub(crate) fn inner(&self) -> &OnLog {
        &self.engine
    }
}

/// Ends every lease of the original, durably, and forgets that this is a copy; answers how many there were.
fn void(engine: &OnLog, root: &dyn Disk) -> Result<u64> {
    let voided = engine.void_leases()?;
    let store = engine.store();
    if !store.wait_synced(store.end()) {
        return Err(store.failure().unwrap_or_else(|| Error::unavailable("the opening can't be written")));
    }
    outside::forget_restored(root)?;
    Ok(voided)
}

/// A snapshot at the end, unless the engine or its care is gone; without it the next start only takes longer.
fn last_snapshot(care: &Arc<Care>, held: Weak<dyn Held>) -> Last {
    let care = Arc::downgrade(care);
    Last(Box::new(move || {
        if let (Some(care), Some(held)) = (care.upgrade(), held.upgrade()) {
            let _ = care.snapshot_now(&*held);
        }
    }))
}
