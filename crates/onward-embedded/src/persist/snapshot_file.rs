//! A snapshot's file: checked pieces behind each other, and an end that says that it is whole.
//!
//! ```text
//! file  = magic (8) format (4) piece* end
//! piece = bytes (4, not 0) checksum (4, over the bytes and the place in the file) the bytes
//! end   = 0 (4) checksum (4, over the number of pieces and the place in the file)
//! ```
//! A file that is cut, damaged or unfinished is never taken for whole; it is then as if it were not there, since a
//! snapshot can be made again from the log.

use super::error::io_error;
use onward_core::{Error, Position, Result};
use onward_log::{Disk, DiskFile, Mode};
use std::{io, sync::Arc};

const MAGIC: [u8; 8] = *b"OnwrdSnp";
/// The format of the file around the pieces; what stands in them has the data folder's format.
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 12;
const PIECE_HEADER_BYTES: usize = 8;
/// Largest piece that is read, in bytes; a piece may end with something as large as a record or a result.
const PIECE_BYTES_MAX: usize = 64 << 20;
const SUFFIX: &str = ".snap";
const UNFINISHED: &str = ".snap-new";
/// Writes and reads in a row without progress after which one has failed.
const ATTEMPTS_MAX: u32 = 16;

/// The file's name for a snapshot as of `position`: names sort as positions do.
pub(crate) fn name_of(position: Position) -> String {
    format!("{:020}{SUFFIX}", position.0)
}

/// The snapshots that there are, newest first, and leftovers of unfinished ones.
pub(crate) fn list(disk: &dyn Disk) -> Result<(Vec<Position>, Vec<String>)> {
    let names = disk.list().map_err(|error| io_error("list the folder", "snapshots", &error))?;
    let position = |name: &String| name.strip_suffix(SUFFIX)?.parse().ok().map(Position);
    let mut found: Vec<Position> = names.iter().filter_map(position).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    let unfinished = names.into_iter().filter(|name| name.ends_with(UNFINISHED)).collect();
    Ok((found, unfinished))
}

/// Writes a snapshot so that it is there whole, and durable, or not at all.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    disk: &'a dyn Disk,
    file: Arc<dyn DiskFile>,
    position: Position,
    unfinished: String,
    at: u64,
    pieces: u32,
}

impl<'a> Writer<'a> {
    pub(crate) fn create(disk: &'a dyn Disk, position: Position) -> io::Result<Self> {
        let unfinished = format!("{:020}{UNFINISHED}", position.0);
        if disk.list()?.contains(&unfinished) {
            disk.delete(&unfinished)?;
        }
        let file = disk.create(&unfinished, Mode::Buffered)?;
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..].copy_from_slice(&FORMAT.to_le_bytes());
        write_at(&*file, &header, 0)?;
        Ok(Self { disk, file, position, unfinished, at: HEADER_BYTES as u64, pieces: 0 })
    }

    pub(crate) fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(!bytes.is_empty() && bytes.len() <= PIECE_BYTES_MAX);
        self.header(bytes.len() as u32, bytes)?;
        write_at(&*self.file, bytes, self.at)?;
        self.at += bytes.len() as u64;
        self.pieces += 1;
        Ok(())
    }

    fn header(&mut self, length: u32, checked: &[u8]) -> io::Result<()> {
        let mut header = [0; PIECE_HEADER_BYTES];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&check(self.at, checked).to_le_bytes());
        write_at(&*self.file, &header, self.at)?;
        self.at += PIECE_HEADER_BYTES as u64;
        Ok(())
    }

    /// Makes it durable and gives it its name; answers its size in bytes.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        let pieces = self.pieces.to_le_bytes();
        self.header(0, &pieces)?;
        self.file.sync_data()?;
        self.disk.rename(&self.unfinished, &name_of(self.position))?;
        self.disk.sync_dir()?;
        Ok(self.at)
    }
}

/// Reads a snapshot piece by piece, each checked before it is shown.
#[derive(Debug)]
pub(crate) struct Reader {
    file: Arc<dyn DiskFile>,
    name: String,
    size: u64,
    at: u64,
    pieces: u32,
}

impl Reader {
    /// Opens it and checks its header.
    ///
    /// # Errors
    /// `Unsupported` for a newer format, `Corrupt` for what is no snapshot.
    pub(crate) fn open(disk: &dyn Disk, position: Position) -> Result<Self> {
        let name = name_of(position);
        let failed = |error| io_error("read", &name, &error);
        let file = disk.open(&name, Mode::Read).map_err(failed)?;
        let size = file.size().map_err(failed)?;
        let mut header = [0; HEADER_BYTES];
        let got = read_at(&*file, &mut header, 0).map_err(failed)?;
        if got < HEADER_BYTES || header[..8] != MAGIC {
            return Err(Error::corrupt("is no snapshot").at(name));
        }
        match u32::from_le_bytes([header[8], header[9], header[10], header[11]]) {
            FORMAT => Ok(Self { file, name, size, at: HEADER_BYTES as u64, pieces: 0 }),
            other => {
                Err(Error::unsupported(format!("has format {other}, this version knows {FORMAT}")).at(name))
            }
        }
    }

    /// The next piece; `None` at the end of a whole snapshot.
    ///
    /// # Errors
    /// `Corrupt` when it is cut or damaged.
    pub(crate) fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        let header_at = self.at;
        let header = self.bytes(PIECE_HEADER_BYTES)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let expected = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        if length == 0 {
            let whole = expected == check(header_at, &self.pieces.to_le_bytes());
            return if whole { Ok(None) } else { Err(self.damaged()) };
        }
        let piece = self.bytes(length)?;
        if check(header_at, &piece) != expected {
            return Err(self.damaged());
        }
        self.pieces += 1;
        Ok(Some(piece))
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        if length > PIECE_BYTES_MAX || self.at + length as u64 > self.size {
            return Err(self.damaged());
        }
        let mut bytes = vec![0; length];
        let got = read_at(&*self.file, &mut bytes, self.at)
            .map_err(|error| io_error("read", &self.name, &error))?;
        if got < length {
            return Err(self.damaged());
        }
        self.at += length as u64;
        Ok(bytes)
    }

    /// What is said of a snapshot that can't be read on.
    pub(crate) fn damaged(&self) -> Error {
        Error::corrupt(format!("is cut or damaged at byte {}", self.at)).at(&self.name)
    }
}

fn check(at: u64, bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes) ^ (at as u32).wrapping_mul(0x9E37_79B9) ^ (at >> 32) as u32
}

/// Writes everything, going on after short and interrupted writes.
pub(crate) fn write_at(file: &dyn DiskFile, bytes: &[u8], at: u64) -> io::Result<()> {
    let (mut done, mut stuck) = (0, 0);
    while done < bytes.len() {
        match file.write_at(&bytes[done..], at + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted && stuck < ATTEMPTS_MAX => stuck += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &dyn DiskFile, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let (mut done, mut stuck) = (0, 0);
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted && stuck < ATTEMPTS_MAX => stuck += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
