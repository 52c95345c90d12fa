//! The bytes of an archive file: pure.

use std::ops::Range;

use super::{ARCHIVE_FORMAT, Archived};
use crate::{LogError, Position};

pub(super) const MAGIC: [u8; 8] = *b"OnwrdArc";
pub(super) const HEAD_BYTES: usize = 64;
pub(super) const BLOCK_HEAD_BYTES: usize = 24;
pub(super) const RECORD_HEAD_BYTES: usize = 24;
pub(super) const ENTRY_BYTES: usize = 24;
pub(super) const FOOT_BYTES: usize = 32;
/// A block is closed when it has grown to this; a larger record makes a block of its own.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Largest block that is read, in bytes: as large as a segment can be.
pub(super) const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) log_id: u64,
    pub(super) from: Position,
    pub(super) to: Position,
}

/// A block's entry in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) first: Position,
    pub(super) at: u64,
    pub(super) bytes: u32,
    pub(super) records: u32,
}

/// Where the index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foot {
    pub(super) index_at: u64,
    pub(super) blocks: u32,
    pub(super) checksum: u32,
    pub(super) records: u64,
}

pub(super) fn checksum(log_id: u64, at: u64, bytes: &[u8]) -> u32 {
    crate::frame::checksum(Position(at ^ log_id), bytes)
}

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&ARCHIVE_FORMAT.to_le_bytes());
        out[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.from.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.to.0.to_le_bytes());
        let checksum = checksum(self.log_id, 0, &out[16..]);
        out[12..16].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Nothing where the bytes are no head that holds.
    pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<Option<Head>, LogError> {
        if bytes.len() < HEAD_BYTES || bytes[..8] != MAGIC {
            return Ok(None);
        }
        // The version is looked at first: what follows may be laid out otherwise in a newer format.
        let found = u32_at(bytes, 8);
        if found > ARCHIVE_FORMAT {
            return Err(LogError::NewerFormat { file: file.to_owned(), found, known: ARCHIVE_FORMAT });
        }
        let head = Head {
            log_id: u64_at(bytes, 16),
            from: Position(u64_at(bytes, 24)),
            to: Position(u64_at(bytes, 32)),
        };
        let holds = u32_at(bytes, 12) == checksum(head.log_id, 0, &bytes[16..HEAD_BYTES]);
        Ok((holds && head.from < head.to).then_some(head))
    }
}

/// Closes a block: `block` begins with room for its head.
pub(super) fn seal_block(block: &mut [u8], log_id: u64, at: u64, records: u32, first: Position) {
    let bytes = (block.len() - BLOCK_HEAD_BYTES) as u32;
    block[..4].copy_from_slice(&bytes.to_le_bytes());
    block[4..8].copy_from_slice(&records.to_le_bytes());
    block[8..16].copy_from_slice(&first.0.to_le_bytes());
    block[16..BLOCK_HEAD_BYTES].fill(0);
    let sum = block_checksum(block, log_id, at);
    block[16..20].copy_from_slice(&sum.to_le_bytes());
}

fn block_checksum(block: &[u8], log_id: u64, at: u64) -> u32 {
    // Of the head's counts and of the records, each with its own place.
    checksum(log_id, at, &block[..16]) ^ checksum(log_id, at + 1, &block[BLOCK_HEAD_BYTES..])
}

/// Whether a block is what its entry in the index says.
pub(super) fn block_holds(block: &[u8], log_id: u64, entry: &Entry) -> bool {
    block.len() == entry.bytes as usize
        && block.len() >= BLOCK_HEAD_BYTES
        && u32_at(block, 0) as usize == block.len() - BLOCK_HEAD_BYTES
        && u32_at(block, 4) == entry.records
        && u64_at(block, 8) == entry.first.0
        && u32_at(block, 16) == block_checksum(block, log_id, entry.at)
}

pub(super) fn put_record(out: &mut Vec<u8>, record: &Archived<'_>) {
    out.extend_from_slice(&record.position.0.to_le_bytes());
    out.extend_from_slice(&record.time.to_le_bytes());
    out.extend_from_slice(&(record.bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(&[record.kind, 0, 0, 0]);
    out.extend_from_slice(record.bytes);
}

/// The record that begins `at` bytes into a block, and where the next one does.
pub(super) fn record_at(block: &[u8], at: usize) -> Option<(Archived<'_>, usize)> {
    let head = block.get(at..at.checked_add(RECORD_HEAD_BYTES)?)?;
    let own: Range<usize> =
        at + RECORD_HEAD_BYTES..(at + RECORD_HEAD_BYTES).checked_add(u32_at(head, 16) as usize)?;
    let bytes = block.get(own.clone())?;
    let position = Position(u64_at(head, 0));
    let time = u64_at(head, 8) as i64;
    Some((Archived { position, time, kind: head[20], bytes }, own.end))
}

pub(super) fn put_index(out: &mut Vec<u8>, log_id: u64, at: u64, entries: &[Entry]) {
    let begin = out.len();
    for entry in entries {
        out.extend_from_slice(&entry.first.0.to_le_bytes());
        out.extend_from_slice(&entry.at.to_le_bytes());
        out.extend_from_slice(&entry.bytes.to_le_bytes());
        out.extend_from_slice(&entry.records.to_le_bytes());
    }
    let records: u64 = entries.iter().map(|entry| u64::from(entry.records)).sum();
    let sum = index_checksum(&out[begin..], log_id, at, entries.len() as u32, records);
    out.extend_from_slice(&at.to_le_bytes());
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(&records.to_le_bytes());
    out.extend_from_slice(&MAGIC);
}

pub(super) fn index_checksum(index: &[u8], log_id: u64, at: u64, blocks: u32, records: u64) -> u32 {
    checksum(log_id, at, index)
        ^ checksum(log_id, at + 1, &[blocks.to_le_bytes(), (records as u32).to_le_bytes()].concat())
}

pub(super) fn foot(bytes: &[u8]) -> Option<Foot> {
    let bytes = bytes.get(..FOOT_BYTES).filter(|bytes| bytes[24..] == MAGIC)?;
    Some(Foot {
        index_at: u64_at(bytes, 0),
        blocks: u32_at(bytes, 8),
        checksum: u32_at(bytes, 12),
        records: u64_at(bytes, 16),
    })
}

pub(super) fn entries(index: &[u8]) -> Vec<Entry> {
    let entry = |bytes: &[u8]| Entry {
        first: Position(u64_at(bytes, 0)),
        at: u64_at(bytes, 8),
        bytes: u32_at(bytes, 16),
        records: u32_at(bytes, 20),
    };
    index.chunks_exact(ENTRY_BYTES).map(entry).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
