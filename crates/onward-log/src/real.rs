//! A folder on a real disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags};

use crate::disk::{Disk, DiskFile, DiskInfo, DiskLock, LockError, Mode};

/// What groups are padded to where the device does not say more.
const SECTOR_MIN: usize = 4096;

/// A folder on a real disk; writes pass the page cache where the filesystem can.
#[derive(Debug)]
pub struct RealDisk {
    folder: PathBuf,
    opened: File,
    info: DiskInfo,
}

impl RealDisk {
    /// Opens the folder, making it (and its parents) if it is missing, and tries what its filesystem can.
    ///
    /// Errors: the folder can't be made, opened or written.
    pub fn open(folder: &Path) -> io::Result<RealDisk> {
        if !folder.is_dir() {
            std::fs::create_dir_all(folder)?;
            if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent)?.sync_all()?;
            }
        }
        let opened = File::open(folder)?;
        let info = look_at(folder, &opened)?;
        Ok(RealDisk { folder: folder.to_owned(), opened, info })
    }

    /// The same folder without passing the page cache by, for comparison and for filesystems that err.
    pub fn buffered(mut self) -> RealDisk {
        self.info.direct = false;
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn open_with(&self, options: &mut OpenOptions, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        options.read(true).write(mode != Mode::Read);
        if mode == Mode::Direct && self.info.direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        Ok(Arc::new(RealFile { file: options.open(self.path(name))? }))
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        self.open_with(&mut OpenOptions::new(), name, mode)
    }

    fn create(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mode = if mode == Mode::Read { Mode::Buffered } else { mode };
        self.open_with(OpenOptions::new().create_new(true), name, mode)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.opened.sync_all()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>, LockError> {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path(name))
            .map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(LockError::Held(self.holder(name))),
            Err(std::fs::TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        file.set_len(0).and_then(|()| file.write_all(myself().as_bytes())).map_err(LockError::Io)?;
        Ok(Box::new(Locked { _file: file }))
    }

    fn info(&self) -> DiskInfo {
        self.info.clone()
    }
}

impl RealDisk {
    fn holder(&self, name: &str) -> String {
        let said = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        if said.is_empty() { "another process".to_owned() } else { said }
    }
}

/// This process's id and command, for who finds the folder locked.
fn myself() -> String {
    let mut command: Vec<String> = std::env::args().take(6).collect();
    if let Some(program) = command.first_mut() {
        *program =
            Path::new(program).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    }
    format!("process {} ({})", std::process::id(), command.join(" "))
}

/// The lock is the kernel's, on the open file: it ends with the process, however that ends.
#[derive(Debug)]
struct Locked {
    _file: File,
}

impl DiskLock for Locked {}

#[derive(Debug)]
struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                self.file.set_len(bytes).map(|()| false)
            }
            done => Ok(done.map(|()| true)?),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

fn look_at(folder: &Path, opened: &File) -> io::Result<DiskInfo> {
    let kind = rustix::fs::fstatfs(opened)?.f_type as u64;
    let device = opened.metadata()?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    Ok(DiskInfo {
        filesystem: filesystem(kind),
        direct: takes_direct(folder)?,
        sector: physical_block(&device).clamp(SECTOR_MIN, 64 << 10),
        volatile: matches!(kind, TMPFS | RAMFS),
        device,
    })
}

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

fn filesystem(kind: u64) -> String {
    let name = match kind {
        0xEF53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683E => "btrfs",
        0x2FC1_2FC1 => "zfs",
        0x794C_7630 => "overlayfs",
        TMPFS => "tmpfs",
        RAMFS => "ramfs",
        other => return format!("{other:#x}"),
    };
    name.to_owned()
}

/// The device's own unit of writing; a partition asks the disk that it is on.
fn physical_block(device: &str) -> usize {
    ["queue", "../queue"]
        .iter()
        .filter_map(|queue| {
            std::fs::read_to_string(format!("/sys/dev/block/{device}/{queue}/physical_block_size")).ok()
        })
        .find_map(|said| said.trim().parse().ok())
        .filter(|bytes: &usize| bytes.is_power_of_two())
        .unwrap_or(SECTOR_MIN)
}

/// Whether a file here can be opened and written past the page cache.
fn takes_direct(folder: &Path) -> io::Result<bool> {
    let path = folder.join(format!("direct-{}.probe", std::process::id()));
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(&path);
    let direct = opened.is_ok_and(|file| {
        let block = crate::aligned::AlignedBuf::zeroed(SECTOR_MIN);
        file.write_at(&block, 0).is_ok_and(|written| written == block.len())
    });
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(direct),
    }
}
