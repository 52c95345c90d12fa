//! Groups and records that lie about themselves.

use std::io;

use onward_proves::proves;

use super::*;
use crate::segment::SEGMENT_HEADER_BYTES;

#[derive(Debug)]
struct InMemory(Vec<u8>);

impl DiskFile for InMemory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = &self.0[(offset as usize).min(self.0.len())..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64) -> io::Result<bool> {
        Ok(true)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

const SEGMENT: SegmentHeader = SegmentHeader { index: 1, epoch: 1, log_id: 5, bytes: 64 << 10, sector: 512 };
const AT: Position = Position::at(1, SEGMENT_HEADER_BYTES);

fn group_of(body_bytes: u32) -> GroupHeader {
    GroupHeader {
        flags: 0,
        log_id: 5,
        position: AT,
        follows: AT,
        synced_through: AT,
        time: 0,
        epoch: 1,
        body_bytes,
        records: 1,
    }
}

#[test]
#[proves("LOG9")]
fn a_group_longer_than_its_segment_is_refused_before_room_is_made_for_it() {
    let mut bytes = vec![0; SEGMENT.bytes as usize];
    group_of(u32::MAX).encode(&mut bytes[4096..]);
    let mut walker = Walker::new(Arc::new(InMemory(bytes)), SEGMENT);
    assert_eq!(walker.header(AT).expect("it can be read"), Some(group_of(u32::MAX)));
    assert!(walker.group(AT).expect("it can be read").is_none());
    assert!(walker.buffer.capacity() <= SEGMENT.bytes as usize);
}

#[test]
#[proves("LOG9")]
fn a_record_longer_than_its_segment_is_refused_before_room_is_made_for_it() {
    let mut bytes = vec![0; SEGMENT.bytes as usize];
    bytes[4096 + 4..4096 + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read_record(&InMemory(bytes), &SEGMENT, AT).expect_err("it is refused");
    assert!(error.to_string().contains("length leads out of its segment"), "{error}");
}

#[test]
#[proves("LOG21")]
fn a_group_with_a_flag_of_a_newer_format_is_refused_as_such() {
    let mut bytes = vec![0; SEGMENT.bytes as usize];
    GroupHeader { flags: 1 << 9, ..group_of(0) }.encode(&mut bytes[4096..]);
    let error = Walker::new(Arc::new(InMemory(bytes)), SEGMENT).group(AT).map(|group| group.is_some());
    assert!(matches!(error, Err(LogError::NewerFormat { known: FORMAT, .. })), "{error:?}");
}
