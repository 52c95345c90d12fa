//! A disk that does something at one moment: just before a file is opened for reading, or read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onward_log::{Disk, DiskFile, DiskInfo, DiskLock, LockError, Mode};
use onward_sim::SimDisk;
use parking_lot::Mutex;

/// The moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the file is opened for reading.
    Open,
    /// Before it is read.
    Read,
}

type Deed = Box<dyn FnOnce() + Send>;

/// What is to be done, and what was seen.
#[derive(Default)]
pub struct Meddler {
    waiting: Mutex<Option<(When, String, Deed)>>,
    reads: AtomicU64,
}

impl std::fmt::Debug for Meddler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meddler")
    }
}

impl Meddler {
    /// Has `deed` done once, the next time that the moment comes.
    pub fn meddle(&self, when: When, file: &str, deed: impl FnOnce() + Send + 'static) {
        *self.waiting.lock() = Some((when, file.to_owned(), Box::new(deed)));
    }

    /// Whether nothing waits any more.
    pub fn is_done(&self) -> bool {
        self.waiting.lock().is_none()
    }

    /// Reads of files so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn at(&self, when: When, file: &str) {
        let due = self.waiting.lock().take_if(|(moment, name, _)| *moment == when && name == file);
        if let Some((_, _, deed)) = due {
            deed();
        }
    }
}

/// A simulated disk with a meddler.
#[derive(Debug)]
pub struct MeddlingDisk {
    disk: SimDisk,
    meddler: Arc<Meddler>,
}

impl MeddlingDisk {
    pub fn over(disk: SimDisk) -> (Arc<MeddlingDisk>, Arc<Meddler>) {
        let meddler = Arc::new(Meddler::default());
        (Arc::new(MeddlingDisk { disk, meddler: meddler.clone() }), meddler)
    }

    fn file(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(MeddlingFile { name: name.to_owned(), file, meddler: self.meddler.clone() })
    }
}

impl Disk for MeddlingDisk {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        if mode == Mode::Read {
            self.meddler.at(When::Open, name);
        }
        self.disk.open(name, mode).map(|file| self.file(name, file))
    }

    fn create(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(name, mode).map(|file| self.file(name, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.disk.delete(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>, LockError> {
        self.disk.lock(name)
    }

    fn info(&self) -> DiskInfo {
        self.disk.info()
    }
}

#[derive(Debug)]
struct MeddlingFile {
    name: String,
    file: Arc<dyn DiskFile>,
    meddler: Arc<Meddler>,
}

impl DiskFile for MeddlingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.meddler.at(When::Read, &self.name);
        self.meddler.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.file.allocate(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}
