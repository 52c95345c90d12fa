//! The folder of a run: its disk, and the engine that has it open.

use std::sync::Arc;

use onward_core::{Engine, Health, Result};
use onward_embedded::{CareReport, EmbeddedEngine, OpenOptions};
use onward_sim::{Loss, Random, SimDisk, SimEnv, Step};

use super::faults::Faults;

const SECTOR: usize = 512;
/// Openings that fail before a run is given up.
const OPENINGS_MAX: u32 = 20;

/// Small, so that segments fill up and snapshots come during a run.
fn options() -> OpenOptions {
    OpenOptions {
        segment_bytes: 32 << 10,
        reserve_bytes: 32 << 10,
        snapshot_bytes_min: 16 << 10,
        ..OpenOptions::default()
    }
}

/// A folder on a simulated disk.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) disk: SimDisk,
    env: SimEnv,
    /// At the next crash a bit turns over in what was written and not synced; where, the number says.
    pub(crate) flip: Option<u64>,
    /// How often that happened.
    pub(crate) flipped: u64,
    engine: Option<Arc<EmbeddedEngine>>,
}

impl Folder {
    pub(crate) fn new(env: SimEnv) -> Folder {
        Folder { disk: SimDisk::new(SECTOR), env, flip: None, flipped: 0, engine: None }
    }

    pub(crate) fn engine(&self) -> Arc<EmbeddedEngine> {
        self.engine.clone().expect("the folder is open between a run's calls")
    }

    pub(crate) fn health(&self) -> Health {
        self.engine().health()
    }

    /// Opens the folder; cuts the power in the middle of it as often as planned. Answers whether it did.
    pub(crate) fn open(&mut self, faults: &mut Faults, random: &mut Random) -> bool {
        let mut cut = false;
        for _ in 0..OPENINGS_MAX {
            let cuts = faults.cut_openings > 0;
            if cuts {
                faults.cut_openings -= 1;
                self.disk.stop_at(1 + random.below(12));
            }
            match self.open_again() {
                Ok(engine) if !self.disk.is_off() => {
                    self.disk.never_stop();
                    self.engine = Some(Arc::new(engine));
                    return cut;
                }
                Err(error) if !cuts => panic!("the folder can't be opened: {error}"),
                _ => {
                    faults.counters.power_cuts_in_recovery += 1;
                    cut = true;
                    self.disk = self.disk.crash(Loss::Random(random.number()));
                }
            }
        }
        panic!("the folder was never opened");
    }

    /// Opens the folder as another process does.
    pub(crate) fn open_again(&self) -> Result<EmbeddedEngine> {
        EmbeddedEngine::open_by_hand(Arc::new(self.disk.clone()), options(), Arc::new(self.env.restarted()))
    }

    /// The next step of the disk, or of the engine's own clock; answers whether there was one.
    pub(crate) fn step(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.step_disk())
    }

    /// Lets the engine do what is due.
    pub(crate) fn tick(&self) {
        if let Some(engine) = &self.engine {
            engine.tick();
        }
    }

    /// Lets the folder's care do what is due: snapshots, moving, releasing.
    pub(crate) fn care(&self) -> Result<CareReport> {
        self.engine().care()
    }

    /// The process ends here.
    pub(crate) fn crash(&mut self, loss: Loss) {
        let unsynced = unsynced(&self.disk);
        self.disk = self.disk.crash(loss);
        self.engine = None;
        if let (Some(seed), Some(write)) = (self.flip.take(), unsynced) {
            self.disk.flip(&write.file, write.offset + seed % write.bytes, (seed >> 32) as u8 % 8);
            self.flipped += 1;
        }
    }
}

/// The last write to a segment, if nothing was synced behind it.
fn unsynced(disk: &SimDisk) -> Option<Step> {
    let steps = disk.steps();
    // The step at which the power went had no effect, if it was a sync.
    let done = &steps[..steps.len() - usize::from(disk.is_off())];
    let last = done.last().filter(|step| step.what == "write" && step.file.ends_with(".seg"));
    last.filter(|step| step.offset > 0).cloned()
}
