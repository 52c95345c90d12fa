//! A disk in memory that forgets, tears, fills up and fails as told.

use std::io;
use std::sync::Arc;

use onward_log::{Disk, DiskFile, DiskInfo, DiskLock, LockError, Mode};
use parking_lot::Mutex;

use crate::Random;
use crate::inode::Effect;
use crate::world::{Calls, Fault, Step, World};

/// What a power cut does to what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing is lost: only the process died. What was not synced can still be lost by a later crash.
    Nothing,
    /// Everything not synced is lost.
    All,
    /// Each sector is kept, lost or torn, each directory change kept or lost, as the seed says.
    Random(u64),
}

/// A simulated folder: the same calls give the same results, and every step that changes it has a number.
///
/// Clones are the same disk; [`SimDisk::crash`] and [`SimDisk::fork`] give another one.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

impl SimDisk {
    /// An empty disk whose power cuts tear in units of `sector` bytes.
    pub fn new(sector: usize) -> SimDisk {
        SimDisk::of(World::new(sector))
    }

    fn of(world: World) -> SimDisk {
        SimDisk { world: Arc::new(Mutex::new(world)) }
    }

    /// What is there after the power went and came back. This disk is dead from now on.
    pub fn crash(&self, loss: Loss) -> SimDisk {
        let mut world = self.world.lock();
        world.off = true;
        let mut random = match loss {
            Loss::Nothing => return SimDisk::of(world.fork()),
            Loss::All => None,
            Loss::Random(seed) => Some(Random::new(seed)),
        };
        SimDisk::of(world.after_crash(|| match &mut random {
            None => Effect::Lost,
            Some(random) => match random.below(5) {
                0 | 1 => Effect::Kept,
                2 | 3 => Effect::Lost,
                _ => Effect::Torn(random.number()),
            },
        }))
    }

    /// A copy of the disk as it is, unsynced state and all, unlocked and without faults.
    pub fn fork(&self) -> SimDisk {
        SimDisk::of(self.world.lock().fork())
    }

    /// Turns the power off at the step of this number (counted from 1): that one may still have half an effect,
    /// every later one fails.
    pub fn stop_at(&self, step: u64) {
        self.world.lock().stop_at = Some(step);
    }

    /// Turns the power off `behind` steps after the next one that `is_it` takes, as [`SimDisk::stop_at`] does.
    pub fn stop_when(&self, is_it: fn(&Step) -> bool, behind: u64) {
        self.world.lock().stop_when = Some((is_it, behind));
    }

    /// Lets the power stay on, whatever was planned.
    pub fn never_stop(&self) {
        let mut world = self.world.lock();
        (world.stop_at, world.stop_when) = (None, None);
    }

    /// Plans a fault.
    pub fn inject(&self, fault: Fault) {
        self.world.lock().faults.push(fault);
    }

    /// Limits the bytes of all files together; `None` lifts the limit.
    pub fn limit_space(&self, bytes: Option<u64>) {
        self.world.lock().space = bytes;
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.world.lock().used()
    }

    /// Turns one bit of a file over, as a failing disk does: in what is durable too.
    pub fn flip(&self, name: &str, offset: u64, bit: u8) {
        self.world.lock().flip(name, offset, bit);
    }

    /// Puts other bytes into a file, durably and unnoticed, as a failing disk or a foreign program does.
    pub fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) {
        self.world.lock().overwrite(name, offset, bytes);
    }

    /// The steps so far that changed the disk, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.world.lock().steps.clone()
    }

    /// How many calls of each kind there were: the next fault can be planned from there.
    pub fn calls(&self) -> Calls {
        self.world.lock().calls
    }

    /// How many steps there were that changed the disk.
    pub fn step_count(&self) -> u64 {
        self.world.lock().steps.len() as u64
    }

    /// Whether the power went off at the step that [`SimDisk::stop_at`] named, or in a crash.
    pub fn is_off(&self) -> bool {
        self.world.lock().off
    }

    /// A file's bytes as a process sees them.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        self.world.lock().contents(name)
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str, _: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world.lock().find(name)?;
        Ok(Arc::new(SimFile { world: self.world.clone(), inode }))
    }

    fn create(&self, name: &str, _: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world.lock().create(name)?;
        Ok(Arc::new(SimFile { world: self.world.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.world.lock().rename(from, to)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.world.lock().delete(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.world.lock().list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.world.lock().sync_dir()
    }

    fn lock(&self, _: &str) -> Result<Box<dyn DiskLock>, LockError> {
        if !self.world.lock().take_lock().map_err(LockError::Io)? {
            return Err(LockError::Held("the process of this simulation".to_owned()));
        }
        Ok(Box::new(SimLock { world: self.world.clone() }))
    }

    fn info(&self) -> DiskInfo {
        DiskInfo {
            filesystem: "simulated".to_owned(),
            device: "memory".to_owned(),
            direct: true,
            sector: self.world.lock().sector,
            volatile: true,
        }
    }
}

#[derive(Debug)]
struct SimLock {
    world: Arc<Mutex<World>>,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.world.lock().locked = false;
    }
}

#[derive(Debug)]
struct SimFile {
    world: Arc<Mutex<World>>,
    inode: usize,
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.world.lock().read(self.inode, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.world.lock().write(self.inode, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.world.lock().sync(self.inode)
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.world.lock().allocate(self.inode, bytes).map(|()| true)
    }

    fn size(&self) -> io::Result<u64> {
        self.world.lock().size(self.inode)
    }
}
