//! A folder that is only looked at: what is written to it stays in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile, DiskInfo, DiskLock, LockError, Mode};

/// The unit in which written bytes are kept.
const BLOCK: u64 = 4096;

/// A real folder that is read, and never changed: writes, creates, renames and deletes are kept in memory and seen
/// by later reads. For opening a folder to check it.
///
/// Limits: memory for what is written; reserved space costs none.
#[derive(Debug)]
pub struct Overlay {
    folder: PathBuf,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    opened: BTreeMap<String, Arc<Layered>>,
    gone: BTreeSet<String>,
}

impl Overlay {
    /// Looks at a folder. One that is not there is empty.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), files: Mutex::default() }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn below(&self, name: &str) -> io::Result<Layered> {
        Layered::over(File::open(self.folder.join(name))?)
    }

    fn find(&self, files: &mut Files, name: &str) -> io::Result<Arc<Layered>> {
        if let Some(file) = files.opened.get(name) {
            return Ok(file.clone());
        }
        if files.gone.contains(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = Arc::new(self.below(name)?);
        files.opened.insert(name.to_owned(), file.clone());
        Ok(file)
    }
}

impl Disk for Overlay {
    fn open(&self, name: &str, _: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.find(&mut self.files(), name)?)
    }

    fn create(&self, name: &str, _: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.files();
        match self.find(&mut files, name) {
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let file = Arc::new(Layered::default());
        files.opened.insert(name.to_owned(), file.clone());
        files.gone.remove(name);
        Ok(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files();
        let file = self.find(&mut files, from)?;
        files.opened.remove(from);
        files.gone.insert(from.to_owned());
        files.gone.remove(to);
        files.opened.insert(to.to_owned(), file);
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let mut files = self.files();
        self.find(&mut files, name)?;
        files.opened.remove(name);
        files.gone.insert(name.to_owned());
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let files = self.files();
        let mut names: BTreeSet<String> = files.opened.keys().cloned().collect();
        let below = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names.into_iter().collect()),
            below => below?,
        };
        for entry in below {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file() && !files.gone.contains(&name) {
                names.insert(name);
            }
        }
        Ok(names.into_iter().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    /// Refused while another process has the folder; held by nobody else afterwards, since nothing is written.
    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>, LockError> {
        let file = match File::open(self.folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Box::new(Locked { _file: None }));
            }
            file => file.map_err(LockError::Io)?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Box::new(Locked { _file: Some(file) })),
            Err(std::fs::TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
                Err(LockError::Held(if holder.is_empty() { "another process".to_owned() } else { holder }))
            }
            Err(std::fs::TryLockError::Error(error)) => Err(LockError::Io(error)),
        }
    }

    fn info(&self) -> DiskInfo {
        DiskInfo {
            filesystem: "overlay in memory".to_owned(),
            device: "none".to_owned(),
            direct: false,
            sector: BLOCK as usize,
            volatile: true,
        }
    }
}

#[derive(Debug)]
struct Locked {
    _file: Option<File>,
}

impl DiskLock for Locked {}

/// A file of the folder under what was written over it.
#[derive(Debug, Default)]
struct Layered {
    below: Option<File>,
    /// Bytes of the file below; behind them it is zeros.
    below_bytes: u64,
    above: Mutex<Above>,
}

#[derive(Debug, Default)]
struct Above {
    bytes: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Layered {
    fn over(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let above = Mutex::new(Above { bytes, blocks: BTreeMap::new() });
        Ok(Self { below: Some(file), below_bytes: bytes, above })
    }

    fn above(&self) -> MutexGuard<'_, Above> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A whole block of the file below.
    fn block_below(&self, index: u64) -> io::Result<Vec<u8>> {
        let mut block = vec![0; BLOCK as usize];
        let start = index * BLOCK;
        if let Some(file) = self.below.as_ref().filter(|_| start < self.below_bytes) {
            let there = (self.below_bytes - start).min(BLOCK) as usize;
            file.read_exact_at(&mut block[..there], start)?;
        }
        Ok(block)
    }
}

impl DiskFile for Layered {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let above = self.above();
        let there = above.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < there {
            let (index, within) = ((offset + done as u64) / BLOCK, ((offset + done as u64) % BLOCK) as usize);
            let part = (BLOCK as usize - within).min(there - done);
            let target = &mut buffer[done..done + part];
            match above.blocks.get(&index) {
                Some(block) => target.copy_from_slice(&block[within..within + part]),
                None => target.copy_from_slice(&self.block_below(index)?[within..within + part]),
            }
            done += part;
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut above = self.above();
        let mut done = 0;
        while done < bytes.len() {
            let (index, within) = ((offset + done as u64) / BLOCK, ((offset + done as u64) % BLOCK) as usize);
            let part = (BLOCK as usize - within).min(bytes.len() - done);
            if let std::collections::btree_map::Entry::Vacant(missing) = above.blocks.entry(index) {
                missing.insert(self.block_below(index)?);
            }
            if let Some(block) = above.blocks.get_mut(&index) {
                block[within..within + part].copy_from_slice(&bytes[done..done + part]);
            }
            done += part;
        }
        above.bytes = above.bytes.max(offset + bytes.len() as u64);
        Ok(done)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        let mut above = self.above();
        above.bytes = above.bytes.max(bytes);
        Ok(true)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.above().bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(disk: &Overlay, name: &str) -> Vec<u8> {
        let file = disk.open(name, Mode::Read).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    #[test]
    fn what_is_written_is_read_again_and_the_folder_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), b"0123456789").unwrap();
        std::fs::write(dir.path().join("b"), b"bb").unwrap();
        let disk = Overlay::new(dir.path());
        let file = disk.open("a", Mode::Direct).unwrap();
        file.write_at(b"xy", 4).unwrap();
        file.write_at(b"end", 5_000).unwrap();
        let a = read(&disk, "a");
        assert_eq!((&a[..10], a[4_500], &a[5_000..]), (&b"0123xy6789"[..], 0, &b"end"[..]));
        disk.rename("a", "c").unwrap();
        disk.delete("b").unwrap();
        disk.create("d", Mode::Buffered).unwrap();
        assert_eq!(disk.list().unwrap(), ["c", "d"]);
        assert!(disk.open("a", Mode::Read).is_err() && disk.open("b", Mode::Read).is_err());
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"0123456789");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
