//! The state behind a simulated disk: what a process sees, and what would be left after a power cut.

use std::io;

use crate::inode::{Effect, Inode};
use crate::names::{Change, Names, apply};

/// A fault of the disk, planned by the number of the call (counted from 1 over the disk's life).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The write fails with an I/O error and has half an effect.
    FailWrite(u64),
    /// The sync fails with an I/O error; as on Linux, what it should have saved is never saved by a later one.
    FailSync(u64),
    /// The folder's sync fails.
    FailSyncDir(u64),
    /// The write takes only so many bytes, and says so.
    ShortWrite(u64, usize),
    /// The write is interrupted before it begins.
    InterruptWrite(u64),
    /// The read is interrupted before it begins.
    InterruptRead(u64),
}

/// A step that changed the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was done: create, rename, delete, sync-dir, write, sync, allocate.
    pub what: &'static str,
    /// The file's name at that time.
    pub file: String,
    /// Where a write began, and its length.
    pub offset: u64,
    /// Bytes written or allocated.
    pub bytes: u64,
}

/// Whether a step is the one that is waited for.
type IsIt = fn(&Step) -> bool;

/// How many calls a disk has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Writes.
    pub writes: u64,
    /// Reads.
    pub reads: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of the folder.
    pub dir_syncs: u64,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sector: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) steps: Vec<Step>,
    pub(crate) stop_at: Option<u64>,
    /// Names the step, and how many behind it, at which the power goes.
    pub(crate) stop_when: Option<(IsIt, u64)>,
    pub(crate) space: Option<u64>,
    pub(crate) locked: bool,
    inodes: Vec<Inode>,
    names: Names,
    durable_names: Names,
    /// Directory changes since the last sync of the folder.
    changes: Vec<Change>,
    pub(crate) calls: Calls,
    pub(crate) off: bool,
}

fn broken() -> io::Error {
    io::Error::other("simulated input/output error")
}

impl World {
    pub(crate) fn new(sector: usize) -> World {
        World {
            sector,
            faults: Vec::new(),
            steps: Vec::new(),
            stop_at: None,
            stop_when: None,
            space: None,
            locked: false,
            inodes: Vec::new(),
            names: Names::new(),
            durable_names: Names::new(),
            changes: Vec::new(),
            calls: Calls::default(),
            off: false,
        }
    }

    fn powered(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other("the simulated power is off")) } else { Ok(()) }
    }

    /// Notes a step; answers whether the power stays on during it.
    fn step(&mut self, what: &'static str, file: &str, offset: u64, bytes: u64) -> io::Result<bool> {
        self.powered()?;
        let step = Step { what, file: file.to_owned(), offset, bytes };
        if let Some((_, behind)) = self.stop_when.take_if(|(is_it, _)| is_it(&step)) {
            self.stop_at = Some(self.steps.len() as u64 + 1 + behind);
        }
        self.steps.push(step);
        self.off = self.stop_at.is_some_and(|stop| self.steps.len() as u64 >= stop);
        Ok(!self.off)
    }

    fn has_fault(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub(crate) fn find(&self, name: &str) -> io::Result<usize> {
        self.powered()?;
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn list(&self) -> io::Result<Vec<String>> {
        self.powered()?;
        Ok(self.names.keys().cloned().collect())
    }

    pub(crate) fn create(&mut self, name: &str) -> io::Result<usize> {
        if self.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.step("create", name, 0, 0)?;
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.change(Change::Create(name.to_owned(), inode));
        self.powered().map(|()| inode)
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.find(from)?;
        self.step("rename", from, 0, 0)?;
        self.change(Change::Rename(from.to_owned(), to.to_owned()));
        self.powered()
    }

    pub(crate) fn delete(&mut self, name: &str) -> io::Result<()> {
        self.find(name)?;
        self.step("delete", name, 0, 0)?;
        self.change(Change::Delete(name.to_owned()));
        self.powered()
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }

    pub(crate) fn sync_dir(&mut self) -> io::Result<()> {
        if !self.step("sync-dir", ".", 0, 0)? {
            return self.powered();
        }
        self.calls.dir_syncs += 1;
        if self.has_fault(Fault::FailSyncDir(self.calls.dir_syncs)) {
            return Err(broken());
        }
        self.durable_names = self.names.clone();
        self.changes.clear();
        Ok(())
    }

    /// Takes the lock unless it is held.
    pub(crate) fn take_lock(&mut self) -> io::Result<bool> {
        self.powered()?;
        Ok(!std::mem::replace(&mut self.locked, true))
    }

    fn name_of(&self, inode: usize) -> String {
        let name = self.names.iter().find(|(_, i)| **i == inode);
        name.map_or_else(|| "(deleted)".to_owned(), |(name, _)| name.clone())
    }

    pub(crate) fn read(&mut self, inode: usize, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.powered()?;
        self.calls.reads += 1;
        if self.has_fault(Fault::InterruptRead(self.calls.reads)) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let bytes = &self.inodes[inode].bytes;
        let from = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - from);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    pub(crate) fn write(&mut self, inode: usize, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.powered()?;
        self.calls.writes += 1;
        let number = self.calls.writes;
        if self.has_fault(Fault::InterruptWrite(number)) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let end = offset as usize + bytes.len();
        self.take_space(inode, end)?;
        self.step("write", &self.name_of(inode), offset, bytes.len() as u64)?;
        let short = self.faults.iter().find_map(|fault| match fault {
            Fault::ShortWrite(at, count) if *at == number => Some((*count).min(bytes.len())),
            Fault::FailWrite(at) if *at == number => Some(bytes.len() / 2),
            _ => None,
        });
        let count = short.unwrap_or(bytes.len());
        self.inodes[inode].put(self.sector, &bytes[..count], offset as usize);
        if self.has_fault(Fault::FailWrite(number)) {
            return Err(broken());
        }
        self.powered().map(|()| count)
    }

    fn take_space(&self, inode: usize, end: usize) -> io::Result<()> {
        let more = end.saturating_sub(self.inodes[inode].bytes.len()) as u64;
        match self.space {
            Some(space) if more > 0 && self.used() + more > space => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[*inode].bytes.len() as u64).sum()
    }

    pub(crate) fn sync(&mut self, inode: usize) -> io::Result<()> {
        if !self.step("sync", &self.name_of(inode), 0, 0)? {
            return self.powered();
        }
        self.calls.syncs += 1;
        let failed = self.has_fault(Fault::FailSync(self.calls.syncs));
        let file = &mut self.inodes[inode];
        let unsynced = std::mem::take(&mut file.unsynced);
        if failed {
            file.given_up.extend(unsynced);
            return Err(broken());
        }
        file.durable_length = file.bytes.len();
        Ok(())
    }

    pub(crate) fn allocate(&mut self, inode: usize, bytes: u64) -> io::Result<()> {
        self.powered()?;
        self.take_space(inode, bytes as usize)?;
        self.step("allocate", &self.name_of(inode), 0, bytes)?;
        let file = &mut self.inodes[inode];
        if file.bytes.len() < bytes as usize {
            file.bytes.resize(bytes as usize, 0);
        }
        self.powered()
    }

    pub(crate) fn size(&self, inode: usize) -> io::Result<u64> {
        self.powered()?;
        Ok(self.inodes[inode].bytes.len() as u64)
    }

    pub(crate) fn contents(&self, name: &str) -> Option<Vec<u8>> {
        self.names.get(name).map(|inode| self.inodes[*inode].bytes.clone())
    }

    pub(crate) fn flip(&mut self, name: &str, offset: u64, bit: u8) {
        if let Some(inode) = self.names.get(name) {
            self.inodes[*inode].bytes[offset as usize] ^= 1 << bit;
        }
    }

    pub(crate) fn overwrite(&mut self, name: &str, offset: u64, bytes: &[u8]) {
        if let Some(inode) = self.names.get(name) {
            let from = offset as usize;
            self.inodes[*inode].bytes[from..from + bytes.len()].copy_from_slice(bytes);
        }
    }

    pub(crate) fn fork(&self) -> World {
        World {
            inodes: self.inodes.clone(),
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            changes: self.changes.clone(),
            ..World::new(self.sector)
        }
    }

    /// The disk after a power cut; `fate` is asked for each unsynced thing, in a fixed order.
    pub(crate) fn after_crash(&self, mut fate: impl FnMut() -> Effect) -> World {
        let mut names = self.durable_names.clone();
        for change in &self.changes {
            if matches!(fate(), Effect::Kept) {
                apply(&mut names, change);
            }
        }
        let mut inodes = self.inodes.clone();
        inodes.iter_mut().for_each(|inode| inode.settle(self.sector, &mut fate));
        World { inodes, durable_names: names.clone(), names, ..World::new(self.sector) }
    }
}
