//! Records that are asked for one behind the other, of a log that was opened anew.

mod common;

use common::{Opened, append, drain, open};
use onward_log::{LogError, Position, Record, segment_name};
use onward_sim::SimDisk;

const RECORDS: u32 = 200;

fn content(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(10)
}

/// A log of records, opened anew so that none of them is in memory, and where they stand.
fn reopened() -> (SimDisk, Opened, Vec<Position>) {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let positions = (0..RECORDS).map(|number| append_alone(&opened, number)).collect();
    drop(opened);
    (disk.clone(), open(&disk), positions)
}

fn append_alone(opened: &Opened, number: u32) -> Position {
    let position = append(&opened.log, &content(number));
    drain(&opened.log);
    position
}

fn reads(disk: &SimDisk, during: impl FnOnce()) -> u64 {
    let before = disk.calls().reads;
    during();
    disk.calls().reads - before
}

fn check(read: Result<Record, LogError>, number: u32) {
    assert_eq!(read.expect("it is there").bytes, content(number));
}

#[test]
fn records_asked_for_one_behind_the_other_come_from_few_large_reads() {
    let (disk, opened, positions) = reopened();
    let read = reads(&disk, || {
        for (number, position) in (0..).zip(&positions) {
            check(opened.log.read(*position), number);
        }
    });
    assert!(read < u64::from(RECORDS) / 4, "{read} reads for {RECORDS} records");
}

#[test]
fn records_asked_for_backwards_are_read_one_by_one() {
    let (disk, opened, positions) = reopened();
    let read = reads(&disk, || {
        for (number, position) in (0..RECORDS).zip(&positions).rev() {
            check(opened.log.read(*position), number);
        }
    });
    assert_eq!(read, u64::from(RECORDS));
}

#[test]
fn damage_among_records_that_are_read_ahead_is_told_of_that_record_alone() {
    let (disk, opened, positions) = reopened();
    let damaged = positions[20];
    disk.flip(&segment_name(damaged.segment()), damaged.offset() + 30, 3);
    for (number, position) in (0..).zip(&positions) {
        match opened.log.read(*position) {
            Err(LogError::Corrupt { position: told, .. }) => {
                assert_eq!((told, *position), (damaged, damaged))
            }
            read => {
                assert_ne!(*position, damaged);
                check(read, number);
            }
        }
    }
}

#[test]
fn what_was_written_after_it_was_read_ahead_is_read_from_the_disk() {
    let (_, opened, positions) = reopened();
    let (last, before) = (positions[positions.len() - 1], positions[positions.len() - 2]);
    check(opened.log.read(before), RECORDS - 2);
    check(opened.log.read(last), RECORDS - 1);
    let later: Vec<Position> = (RECORDS..RECORDS * 3).map(|number| append_alone(&opened, number)).collect();
    for (number, position) in (RECORDS..).zip(later) {
        check(opened.log.read(position), number);
    }
}

#[test]
fn what_was_read_ahead_is_gone_when_its_segment_is_released() {
    let (_, opened, positions) = reopened();
    let first = positions[0].segment();
    let within: Vec<Position> = positions.into_iter().filter(|p| p.segment() == first).collect();
    for (number, position) in (0..).zip(&within[..10]) {
        check(opened.log.read(*position), number);
    }
    opened.log.release(first).expect("it is complete");
    let gone = opened.log.read(within[5]);
    assert!(matches!(gone, Err(LogError::OutOfRange { .. })), "{gone:?}");
}
