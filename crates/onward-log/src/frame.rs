//! The bytes of a group and of a record, format version 1 (`docs/adr/0002-log-format.md` has the table).
//!
//! To change the layout: raise [`FORMAT`], keep the old decoder beside the new one, and add a folder of the
//! old format to `tests/fixtures`. A group's flag that is not known here is refused as a newer format.

use crate::Position;

/// The newest format that this code reads, and the one it writes.
pub const FORMAT: u32 = 1;

/// Bytes before a group's first record.
pub(crate) const GROUP_HEADER_BYTES: usize = 72;
/// Bytes before a record's own bytes.
pub(crate) const RECORD_HEADER_BYTES: usize = 20;

const GROUP_MAGIC: u32 = u32::from_le_bytes(*b"oGrp");
const STARTS_UNIT: u8 = 1;

/// What a group says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// What this version does not know; not zero in a group of a newer format.
    pub(crate) flags: u32,
    pub(crate) log_id: u64,
    /// Where the group begins.
    pub(crate) position: Position,
    /// Where the group before it ends, so that none can be missing between.
    pub(crate) follows: Position,
    /// Everything before this was durable when the group was closed.
    pub(crate) synced_through: Position,
    /// The caller's wall time of the first unit, in microseconds.
    pub(crate) time: i64,
    /// Counts the openings of the log; never falls along it.
    pub(crate) epoch: u32,
    /// Bytes of records behind the header, without the padding.
    pub(crate) body_bytes: u32,
    /// How many; each has a checksum of its own, so that it can also be read alone.
    pub(crate) records: u32,
}

impl GroupHeader {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&GROUP_MAGIC.to_le_bytes());
        out[8..12].copy_from_slice(&self.flags.to_le_bytes());
        out[12..16].copy_from_slice(&self.epoch.to_le_bytes());
        out[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.position.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.follows.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.synced_through.0.to_le_bytes());
        out[48..56].copy_from_slice(&self.time.to_le_bytes());
        out[56..60].copy_from_slice(&self.body_bytes.to_le_bytes());
        out[60..64].copy_from_slice(&self.records.to_le_bytes());
        out[64..72].fill(0); // room to grow
        let checksum = checksum(self.position, &out[8..GROUP_HEADER_BYTES]);
        out[4..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The header at `position`, if these bytes are one that was written there.
    pub(crate) fn decode(position: Position, bytes: &[u8]) -> Option<GroupHeader> {
        let bytes = bytes.get(..GROUP_HEADER_BYTES)?;
        if u32_at(bytes, 0) != GROUP_MAGIC || u32_at(bytes, 4) != checksum(position, &bytes[8..]) {
            return None;
        }
        let header = GroupHeader {
            flags: u32_at(bytes, 8),
            epoch: u32_at(bytes, 12),
            log_id: u64_at(bytes, 16),
            position: Position(u64_at(bytes, 24)),
            follows: Position(u64_at(bytes, 32)),
            synced_through: Position(u64_at(bytes, 40)),
            time: u64_at(bytes, 48) as i64,
            body_bytes: u32_at(bytes, 56),
            records: u32_at(bytes, 60),
        };
        (header.position == position).then_some(header)
    }

    /// Bytes on the disk, with the padding to whole sectors.
    pub(crate) fn disk_bytes(&self, sector: u64) -> u64 {
        (GROUP_HEADER_BYTES as u64 + u64::from(self.body_bytes)).next_multiple_of(sector)
    }
}

/// What a record says of itself; its bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) bytes: u32,
    pub(crate) epoch: u32,
    /// Microseconds from the group's time to the unit's.
    pub(crate) time_offset: i32,
    pub(crate) kind: u8,
    pub(crate) starts_unit: bool,
}

impl RecordHeader {
    /// Fills the first bytes of `record` (header room and bytes) with the header and its checksum.
    pub(crate) fn encode(&self, position: Position, record: &mut [u8]) {
        record[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        record[8..12].copy_from_slice(&self.epoch.to_le_bytes());
        record[12..16].copy_from_slice(&self.time_offset.to_le_bytes());
        record[16] = self.kind;
        record[17] = if self.starts_unit { STARTS_UNIT } else { 0 };
        record[18..20].fill(0); // room to grow
        let checksum = checksum(position, &record[4..]);
        record[0..4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the header without checking anything but its presence.
    pub(crate) fn peek(bytes: &[u8]) -> Option<RecordHeader> {
        let bytes = bytes.get(..RECORD_HEADER_BYTES)?;
        Some(RecordHeader {
            bytes: u32_at(bytes, 4),
            epoch: u32_at(bytes, 8),
            time_offset: u32_at(bytes, 12) as i32,
            kind: bytes[16],
            starts_unit: bytes[17] & STARTS_UNIT != 0,
        })
    }

    /// Bytes of the whole record.
    pub(crate) fn record_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.bytes as usize
    }
}

/// The record that begins at `from`, header included, with its mark, if all of it is there.
pub(crate) fn whole_record(bytes: &[u8], from: usize) -> Option<(u8, &[u8])> {
    let rest = bytes.get(from..)?;
    let header = RecordHeader::peek(rest)?;
    Some((header.kind, rest.get(..header.record_bytes())?))
}

/// Whether `record`, header and bytes, is what was written at `position`.
pub(crate) fn record_holds(position: Position, record: &[u8]) -> bool {
    record.len() >= RECORD_HEADER_BYTES && u32_at(record, 0) == checksum(position, &record[4..])
}

/// CRC-32C that also depends on where the bytes stand, so that bytes left over from elsewhere do not pass.
pub(crate) fn checksum(position: Position, bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes) ^ spread(position)
}

fn spread(position: Position) -> u32 {
    (position.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
