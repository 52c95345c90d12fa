//! A segment's file: its name, its header block, and how a spare one is made.

use crate::aligned::AlignedBuf;
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::frame::{FORMAT, checksum};
use crate::{LogError, Position};

/// The block before a segment's first group.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 4096;
const HEADER_USED: usize = 48;
const MAGIC: [u8; 8] = *b"OnwrdLog";
/// How the name of a spare ends that is still being made.
pub(crate) const UNFINISHED: &str = ".making";
/// Small enough that a group's sync does not wait long for them.
const ZEROS_AT_ONCE: u64 = 256 << 10;

/// What a segment's file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) index: u32,
    /// The epoch in which the segment was made ready.
    pub(crate) epoch: u32,
    pub(crate) log_id: u64,
    pub(crate) bytes: u64,
    /// What groups are padded to.
    pub(crate) sector: u32,
}

/// What a segment's first block turned out to be.
#[derive(Debug)]
pub(crate) enum HeaderBlock {
    Valid(SegmentHeader),
    Newer(u32),
    Damaged,
}

impl SegmentHeader {
    fn encode(&self, out: &mut [u8]) {
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..20].copy_from_slice(&self.index.to_le_bytes());
        out[20..24].copy_from_slice(&self.epoch.to_le_bytes());
        out[24..32].copy_from_slice(&self.log_id.to_le_bytes());
        out[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        out[40..44].copy_from_slice(&self.sector.to_le_bytes());
        let checksum = checksum(Position::at(self.index, 0), &out[16..HEADER_USED]);
        out[12..16].copy_from_slice(&checksum.to_le_bytes());
    }

    fn decode(index: u32, bytes: &[u8]) -> HeaderBlock {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let wide = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if bytes.len() < HEADER_USED || bytes[..8] != MAGIC {
            return HeaderBlock::Damaged;
        }
        // The version is looked at first: what follows it may be laid out otherwise in a newer format.
        if number(8) > FORMAT {
            return HeaderBlock::Newer(number(8));
        }
        let holds = number(12) == checksum(Position::at(index, 0), &bytes[16..HEADER_USED]);
        let header = SegmentHeader {
            index: number(16),
            epoch: number(20),
            log_id: wide(24),
            bytes: wide(32),
            sector: number(40),
        };
        let sound = header.sector.is_power_of_two() && header.bytes > SEGMENT_HEADER_BYTES;
        if holds && sound && header.index == index && number(8) == FORMAT {
            HeaderBlock::Valid(header)
        } else {
            HeaderBlock::Damaged
        }
    }

    /// Where the segment's groups end at the latest.
    pub(crate) fn end(&self) -> Position {
        Position::at(self.index, self.bytes)
    }
}

/// The file's name of a segment.
pub fn segment_name(index: u32) -> String {
    format!("{index:010}.seg")
}

/// The index in a segment's name; nothing if it is another file's.
pub fn segment_index(name: &str) -> Option<u32> {
    name.strip_suffix(".seg").filter(|digits| digits.len() == 10)?.parse().ok()
}

/// The file's name of a spare; `number` only tells spares apart.
pub(crate) fn spare_name(number: u32) -> String {
    format!("{number:010}.spare")
}

pub(crate) fn spare_number(name: &str) -> Option<u32> {
    name.strip_suffix(".spare").filter(|digits| digits.len() == 10)?.parse().ok()
}

/// The number of a spare, finished or not.
pub(crate) fn any_spare_number(name: &str) -> Option<u32> {
    spare_number(name).or_else(|| name.strip_suffix(UNFINISHED)?.parse().ok())
}

pub(crate) fn read_header(disk: &dyn Disk, index: u32) -> Result<HeaderBlock, LogError> {
    let name = segment_name(index);
    let file = disk.open(&name, Mode::Read).map_err(|error| LogError::io("open", &name, &error))?;
    read_header_of(&*file, index)
}

/// The same of a file that is open.
pub(crate) fn read_header_of(file: &dyn DiskFile, index: u32) -> Result<HeaderBlock, LogError> {
    let mut block = vec![0; HEADER_USED];
    let got = disk::read_full(file, &mut block, 0)
        .map_err(|error| LogError::io("read", &segment_name(index), &error))?;
    Ok(SegmentHeader::decode(index, &block[..got]))
}

/// Writes the first block of a segment whose file already has its name, and makes both durable.
pub(crate) fn begin_segment(disk: &dyn Disk, header: &SegmentHeader) -> Result<(), LogError> {
    let name = segment_name(header.index);
    let file = disk.open(&name, Mode::Direct).map_err(|error| LogError::io("open", &name, &error))?;
    let mut block = AlignedBuf::zeroed(SEGMENT_HEADER_BYTES as usize);
    header.encode(&mut block);
    disk::write_all(&*file, &block, 0, header.sector as usize)
        .map_err(|error| LogError::io("write", &name, &error))?;
    disk::sync(&*file, &name)?;
    disk::sync_dir(disk)
}

/// How a new segment's space is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Written with zeros, so that later syncs carry no metadata: what small groups need.
    Written,
    /// Only reserved: half the writing. Each sync carries metadata, which is little beside a large group.
    Reserved,
}

/// Makes a spare. It gets its name when it is whole.
pub(crate) fn make_spare(
    disk: &dyn Disk,
    number: u32,
    bytes: u64,
    sector: usize,
    space: Space,
) -> Result<(), LogError> {
    let making = format!("{number:010}{UNFINISHED}");
    let made = fill_spare(disk, &making, bytes, sector, space).and_then(|()| {
        let renamed = disk.rename(&making, &spare_name(number));
        renamed.map_err(|error| LogError::io("rename", &making, &error))
    });
    if made.is_err() {
        // Best effort: the next opening deletes it too.
        let _ = disk.delete(&making);
    }
    made?;
    disk::sync_dir(disk)
}

fn fill_spare(disk: &dyn Disk, name: &str, bytes: u64, sector: usize, space: Space) -> Result<(), LogError> {
    let file = disk.create(name, Mode::Direct).map_err(|error| LogError::io("create", name, &error))?;
    let reserved = file.allocate(bytes).map_err(|error| LogError::io("allocate", name, &error))?;
    if reserved && space == Space::Reserved {
        return disk::sync(&*file, name);
    }
    let zeros = AlignedBuf::zeroed(bytes.min(ZEROS_AT_ONCE) as usize);
    let mut offset = 0;
    while offset < bytes {
        let part = &zeros[..(bytes - offset).min(ZEROS_AT_ONCE) as usize];
        disk::write_all(&*file, part, offset, sector).map_err(|error| LogError::io("write", name, &error))?;
        offset += part.len() as u64;
    }
    disk::sync(&*file, name)
}
