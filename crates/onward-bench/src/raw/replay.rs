//! Reading a bare log from front to back: 1 MiB at a time, every checksum, nothing kept.

use super::{HEADER, Put, RawLog, START};
use anyhow::{Context, Result, ensure};
use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

const READ_BYTES: usize = 1 << 20;
const FILL_GROUP: u64 = 5_000;

/// Fills an empty folder with so many records of `bytes`.
pub(crate) fn fill(dir: &Path, count: u64, bytes: usize) -> Result<()> {
    let mut log = RawLog::open(dir, 0)?;
    let data = vec![7; bytes];
    for from in (0..count).step_by(FILL_GROUP as usize) {
        let numbers = from..(from + FILL_GROUP).min(count);
        let puts: Vec<Put<'_>> = numbers.map(|number| Put::Message { number, data: &data }).collect();
        log.commit(&puts)?;
    }
    Ok(())
}

/// Reads all of it; answers how many messages there are.
pub(crate) fn read(dir: &Path) -> Result<u64> {
    let named = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let mut segments: Vec<PathBuf> = named.collect::<Result<_>>()?;
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "seg"));
    segments.sort();
    segments.iter().map(|path| read_segment(path)).sum()
}

fn read_segment(path: &Path) -> Result<u64> {
    let segment: u32 =
        path.file_stem().and_then(|stem| stem.to_str()).context("a segment's name")?.parse()?;
    let file = File::open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut offset, mut held, mut messages) = (START, 0, 0);
    loop {
        let got = file.read_at(&mut buffer[held..], offset + held as u64)?;
        held += got;
        let mut at = 0;
        while let Some(length) = record_length(&buffer[at..held]) {
            let record = &buffer[at..at + length];
            let tag = u64::from_le_bytes(record[8..16].try_into()?);
            if tag == 0 {
                return Ok(messages);
            }
            ensure!(holds(segment, record), "a record at {} of {}", offset + at as u64, path.display());
            messages += u64::from(tag >> 60 == super::PUT);
            at += length;
        }
        if got == 0 {
            return Ok(messages);
        }
        buffer.copy_within(at..held, 0);
        (offset, held) = (offset + at as u64, held - at);
    }
}

/// The length of the record that begins here, if all of it is here.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(..4)?;
    let length = HEADER + u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    (length <= bytes.len()).then_some(length)
}

fn holds(segment: u32, record: &[u8]) -> bool {
    let head = crc32c::crc32c_append(segment, &record[..4]);
    crc32c::crc32c_append(head, &record[8..]).to_le_bytes() == record[4..8]
}
