//! The yardstick: a bare log, an upper bound to measure against. One segment file at a time, prewritten and opened
//! O_DIRECT; records with a checksum; one writer; one write and one sync per group. No recovery worth the name.

pub(crate) mod append;
pub(crate) mod cycle;
pub(crate) mod enqueue;
pub(crate) mod replay;

use anyhow::{Context, Result};
use rustix::fs::{self, Mode, OFlags};
use rustix::{fd::OwnedFd, io};
use std::path::{Path, PathBuf};

const HEADER: usize = 16;
const START: u64 = 4096;
const SECTOR: usize = 512;
const SEGMENT_BYTES: u64 = 64 << 20;
const PUT: u64 = 1;
const ACK: u64 = 3;
const PAD: u64 = 4;

/// Bytes at an address that O_DIRECT takes.
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    shift: usize,
}

impl Aligned {
    pub(crate) fn new(len: usize) -> Self {
        let bytes = vec![0; len + 4096];
        let shift = bytes.as_ptr().align_offset(4096);
        Self { bytes, shift }
    }

    fn slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.shift..]
    }
}

pub(crate) enum Put<'a> {
    Message { number: u64, data: &'a [u8] },
    Ack { number: u64 },
}

pub(crate) struct RawLog {
    dir: PathBuf,
    file: OwnedFd,
    segment: u64,
    offset: u64,
    buffer: Aligned,
    spares: Vec<PathBuf>,
}

impl RawLog {
    /// Opens an empty folder, with so many segments written with zeros beforehand.
    pub(crate) fn open(dir: &Path, spares: usize) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let spares = (0..spares).map(|i| prewrite(dir, i)).collect::<Result<Vec<_>>>()?;
        let file = open_direct(&dir.join("none"), true)?;
        let mut log =
            Self { dir: dir.to_owned(), file, segment: 0, offset: 0, buffer: Aligned::new(16 << 20), spares };
        log.roll()?;
        Ok(log)
    }

    fn roll(&mut self) -> Result<()> {
        self.segment += 1;
        let path = self.dir.join(format!("{:010}.seg", self.segment));
        let spare = match self.spares.pop() {
            Some(spare) => spare,
            None => prewrite(&self.dir, self.segment as usize + 1_000_000)?,
        };
        std::fs::rename(spare, &path)?;
        self.file = open_direct(&path, false)?;
        let header = &mut self.buffer.slice()[..4096];
        header.fill(0);
        header[..8].copy_from_slice(&self.segment.to_le_bytes());
        write_all(&self.file, header, 0)?;
        fs::fsync(&self.file)?;
        std::fs::File::open(&self.dir)?.sync_all()?;
        self.offset = START;
        Ok(())
    }

    /// Writes and syncs one group.
    pub(crate) fn commit(&mut self, puts: &[Put<'_>]) -> Result<()> {
        let size: usize = puts.iter().map(|put| HEADER + put.len()).sum::<usize>() + 2 * SECTOR;
        if self.offset + size as u64 > SEGMENT_BYTES {
            fs::fdatasync(&self.file)?;
            self.roll()?;
        }
        let (segment, buffer) = (self.segment, self.buffer.slice());
        anyhow::ensure!(size <= buffer.len(), "a group of {size} bytes");
        let mut at = 0;
        for put in puts {
            match put {
                Put::Message { number, data } => encode(buffer, &mut at, segment, PUT << 60 | number, data),
                Put::Ack { number } => encode(buffer, &mut at, segment, ACK << 60 | number, &[]),
            }
        }
        let end = (at + HEADER).div_ceil(SECTOR) * SECTOR;
        let pad = [0; SECTOR];
        let rest = end - at - HEADER;
        encode(buffer, &mut at, segment, PAD << 60, &pad[..rest]);
        write_all(&self.file, &buffer[..at], self.offset)?;
        fs::fdatasync(&self.file)?;
        self.offset += at as u64;
        Ok(())
    }
}

impl Put<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Message { data, .. } => data.len(),
            Self::Ack { .. } => 0,
        }
    }
}

/// Segments to prewrite so that none has to be made while measuring: the bare log at its best.
fn spares(span: std::time::Duration, mib_per_second: usize) -> usize {
    (span.as_secs() as usize + 2) * mib_per_second / 64 + 1
}

fn encode(buffer: &mut [u8], at: &mut usize, segment: u64, tag: u64, data: &[u8]) {
    let (start, end) = (*at, *at + HEADER + data.len());
    buffer[start..start + 4].copy_from_slice(&(data.len() as u32).to_le_bytes());
    buffer[start + 8..start + 16].copy_from_slice(&tag.to_le_bytes());
    buffer[start + 16..end].copy_from_slice(data);
    let head = crc32c::crc32c_append(segment as u32, &buffer[start..start + 4]);
    let crc = crc32c::crc32c_append(head, &buffer[start + 8..end]);
    buffer[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    *at = end;
}

fn open_direct(path: &Path, create: bool) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::DIRECT | if create { OFlags::CREATE } else { OFlags::empty() };
    fs::open(path, flags, Mode::from_raw_mode(0o644))
        .with_context(|| format!("{} with O_DIRECT", path.display()))
}

fn prewrite(dir: &Path, index: usize) -> Result<PathBuf> {
    let path = dir.join(format!("spare-{index}"));
    let file = open_direct(&path, true)?;
    fs::fallocate(&file, fs::FallocateFlags::empty(), 0, SEGMENT_BYTES)?;
    let mut zeros = Aligned::new(1 << 20);
    for block in 0..SEGMENT_BYTES >> 20 {
        write_all(&file, &zeros.slice()[..1 << 20], block << 20)?;
    }
    fs::fsync(&file)?;
    Ok(path)
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> Result<()> {
    while !bytes.is_empty() {
        let written = io::pwrite(file, bytes, offset)?;
        anyhow::ensure!(written > 0, "a write of no bytes");
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
