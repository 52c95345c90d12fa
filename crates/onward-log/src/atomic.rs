//! Small files that are replaced as a whole, as snapshots are.

use crate::disk::{self, Disk, Mode};
use crate::walk::file_checksum;
use crate::{LogError, Position};

const MAGIC: [u8; 8] = *b"OnwrdFil";
const HEADER_BYTES: usize = 24;

/// Writes a file so that a crash leaves the old one or the new one, whole; durable on return.
///
/// Errors: the disk's. The old file is still there then, or the new one already.
pub fn atomic_write(disk: &dyn Disk, name: &str, parts: &[&[u8]]) -> Result<(), LogError> {
    let temporary = format!("{name}.tmp");
    let _ = disk.delete(&temporary);
    let mut bytes = vec![0; HEADER_BYTES];
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    let length = (bytes.len() - HEADER_BYTES) as u64;
    bytes[0..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&length.to_le_bytes());
    let checksum = file_checksum(&bytes[HEADER_BYTES..]);
    bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
    let failed = |what: &'static str| {
        let temporary = temporary.clone();
        move |error: std::io::Error| LogError::io(what, &temporary, &error)
    };
    let file = disk.create(&temporary, Mode::Buffered).map_err(failed("create"))?;
    disk::write_all(&*file, &bytes, 0, 1).map_err(failed("write"))?;
    disk::sync(&*file, &temporary)?;
    disk.rename(&temporary, name).map_err(failed("rename"))?;
    disk::sync_dir(disk)
}

/// Reads a file written by [`atomic_write`]; nothing if there is none.
///
/// Errors: [`LogError::TooLarge`] before anything is allocated, [`LogError::Corrupt`], the disk's.
pub fn read_file(disk: &dyn Disk, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, LogError> {
    let failed = |error: std::io::Error| LogError::io("read", name, &error);
    let file = match disk.open(name, Mode::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let size = file.size().map_err(failed)?;
    let length = size.saturating_sub(HEADER_BYTES as u64);
    if length > bytes_max {
        return Err(LogError::TooLarge { bytes: length, max: bytes_max });
    }
    let mut bytes = vec![0; size as usize];
    let got = disk::read_full(&*file, &mut bytes, 0).map_err(failed)?;
    bytes.truncate(got);
    match checked(&bytes, length) {
        true => Ok(Some(bytes.split_off(HEADER_BYTES))),
        false => Err(LogError::Corrupt {
            file: name.to_owned(),
            position: Position::ZERO,
            what: "the file's checksum does not match".to_owned(),
        }),
    }
}

fn checked(bytes: &[u8], length: u64) -> bool {
    bytes.len() >= HEADER_BYTES
        && bytes[0..8] == MAGIC
        && bytes[8..16] == length.to_le_bytes()
        && bytes[16..20] == file_checksum(&bytes[HEADER_BYTES..]).to_le_bytes()
}
