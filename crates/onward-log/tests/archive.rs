//! Archive files: in order, by position, at every point where the power may fail.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

use onward_log::archive::{Archived, Archives};
use onward_log::{Disk, LogError, Position};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk};
use std::collections::BTreeMap;
use std::sync::Arc;

const LOG: u64 = 7;
const SECTOR: usize = 512;

type Records = BTreeMap<u64, Vec<u8>>;

/// Records at every third position of a range, of sizes from nothing to several blocks.
fn records(from: u64, to: u64) -> Records {
    let bytes = |at: u64| vec![at as u8; if at.is_multiple_of(97) { 150_000 } else { (at % 1_000) as usize }];
    (from..to).step_by(3).map(|at| (at, bytes(at))).collect()
}

fn open(disk: &SimDisk) -> Result<Archives, LogError> {
    Archives::open(Arc::new(disk.clone()), LOG)
}

fn add(archives: &mut Archives, from: u64, to: u64, records: &Records) -> Result<u64, LogError> {
    archives.add(Position(from), Position(to), &mut |put| {
        let record = |(at, bytes): (&u64, &Vec<u8>)| {
            put(Archived { position: Position(*at), time: *at as i64, kind: *at as u8, bytes })
        };
        records.range(from..to).try_for_each(record)
    })
}

/// Everything that is there, read from front to back.
fn all(archives: &Archives) -> Records {
    let mut found = Records::new();
    let mut each = |record: Archived<'_>| {
        assert_eq!((record.time, record.kind), (record.position.0 as i64, record.position.0 as u8));
        assert!(found.insert(record.position.0, record.bytes.to_vec()).is_none(), "shown twice");
        Ok(())
    };
    let shown = archives.scan(Position::ZERO, Position(u64::MAX), &mut each).unwrap();
    assert_eq!(shown, found.len() as u64);
    found
}

#[test]
fn what_is_archived_is_read_by_its_position_and_in_order_over_any_range() {
    let (disk, expected) = (SimDisk::new(SECTOR), records(10, 3_000));
    let mut archives = open(&disk).unwrap();
    assert_eq!(add(&mut archives, 10, 1_000, &expected).unwrap(), 330);
    add(&mut archives, 1_000, 3_000, &expected).unwrap();
    drop(archives);
    let archives = open(&disk).unwrap();
    assert_eq!((archives.files().len(), archives.end()), (2, Position(3_000)));
    assert_eq!(all(&archives), expected);
    for (at, bytes) in &expected {
        let record = archives.read(Position(*at)).unwrap().unwrap();
        assert_eq!((&record.bytes[..], record.kind), (&bytes[..], *at as u8));
    }
    for nothing in [0, 9, 11, 2_999, 3_000, u64::MAX] {
        assert!(archives.read(Position(nothing)).unwrap().is_none(), "{nothing}");
    }
    for (from, to) in [(500, 1_500), (0, 11), (1_000, 1_001), (2_998, 9_000), (700, 700)] {
        let mut found = Vec::new();
        let mut each = |record: Archived<'_>| {
            found.push(record.position.0);
            Ok(())
        };
        archives.scan(Position(from), Position(to), &mut each).unwrap();
        assert_eq!(found, expected.range(from..to).map(|(at, _)| *at).collect::<Vec<_>>(), "{from}..{to}");
    }
}

#[test]
fn what_is_out_of_order_or_out_of_its_range_is_refused_and_nothing_has_changed() {
    let disk = SimDisk::new(SECTOR);
    let mut archives = open(&disk).unwrap();
    let expected = records(10, 100);
    add(&mut archives, 10, 100, &expected).unwrap();
    for (from, to, at) in [(50, 200, 60), (100, 100, 100), (100, 200, 99), (100, 200, 200)] {
        let one = |put: &mut dyn FnMut(Archived<'_>) -> Result<(), LogError>| {
            put(Archived { position: Position(at), time: 0, kind: 0, bytes: b"x" })
        };
        let refused = archives.add(Position(from), Position(to), &mut { one }).unwrap_err();
        assert!(matches!(refused, LogError::Invalid(_)), "{refused}");
    }
    assert_eq!(all(&open(&disk).unwrap()), expected);
}

/// Adds two ranges, then rewrites: the second alone, then both as one.
fn work(disk: &SimDisk, expected: &Records, reached: &mut u32) -> Result<(), LogError> {
    let mut archives = open(disk)?;
    add(&mut archives, 10, 400, expected)?;
    *reached = 1;
    add(&mut archives, 400, 800, expected)?;
    *reached = 2;
    archives.rewrite(1, 1, &mut |at| at.0 % 2 == 0)?;
    *reached = 3;
    let done = archives.rewrite(0, 1, &mut |at| at.0 % 2 == 0 && at.0 > 200)?;
    assert!(done.freed_bytes > 0 && done.dropped > 0 && done.kept > 0, "{done:?}");
    *reached = 4;
    Ok(())
}

/// What is there after so many of those steps.
fn after(step: u32, expected: &Records) -> Records {
    let kept = |at: u64| match step {
        0 => false,
        1 => at < 400,
        2 => true,
        3 => at < 400 || at.is_multiple_of(2),
        _ => at.is_multiple_of(2) && at > 200,
    };
    expected.iter().filter(|(at, _)| kept(**at)).map(|(at, bytes)| (*at, bytes.clone())).collect()
}

#[test]
#[proves("LOG16", "LOG3")]
fn at_every_step_of_archiving_and_rewriting_a_power_cut_leaves_old_or_new_and_never_neither() {
    let expected = records(10, 800);
    let whole = SimDisk::new(SECTOR);
    work(&whole, &expected, &mut 0).unwrap();
    let steps = whole.step_count();
    assert!(steps > 20, "{steps}");
    for stop in 1..=steps {
        for loss in [Loss::All, Loss::Nothing, Loss::Random(stop)] {
            let disk = SimDisk::new(SECTOR);
            disk.stop_at(stop);
            let mut reached = 0;
            let done = work(&disk, &expected, &mut reached);
            assert!(done.is_err() || stop == steps, "step {stop} did not stop the work");
            let disk = disk.crash(loss);
            let archives = open(&disk).unwrap_or_else(|error| panic!("step {stop}, {loss:?}: {error}"));
            let found = all(&archives);
            let (old, new) = (after(reached, &expected), after(reached + 1, &expected));
            assert!(found == old || found == new, "step {stop}, {loss:?}: {} records", found.len());
            let left: Vec<String> = disk.list().unwrap();
            assert_eq!(left.len(), archives.files().len(), "step {stop}: left over in {left:?}");
        }
    }
}

#[test]
#[proves("LOG8", "LOG9")]
fn a_flipped_bit_anywhere_in_an_archive_file_is_found_and_never_a_wrong_record() {
    let expected = records(10, 300);
    let disk = SimDisk::new(SECTOR);
    add(&mut open(&disk).unwrap(), 10, 300, &expected).unwrap();
    let name = disk.list().unwrap().remove(0);
    let size = disk.contents(&name).unwrap().len() as u64;
    let mut unseen = 0;
    for offset in (0..size).step_by(61).chain(0..64).chain(size - 200..size) {
        let damaged = disk.fork();
        damaged.flip(&name, offset, (offset % 8) as u8);
        let found = open(&damaged).and_then(|archives| {
            let mut found = Records::new();
            let mut each = |record: Archived<'_>| {
                found.insert(record.position.0, record.bytes.to_vec());
                Ok(())
            };
            archives.scan(Position::ZERO, Position(u64::MAX), &mut each)?;
            Ok(found)
        });
        match found {
            Err(LogError::Corrupt { .. } | LogError::NewerFormat { .. }) => {}
            Ok(found) => {
                assert_eq!(found, expected, "offset {offset}: wrong records");
                unseen += 1;
            }
            Err(other) => panic!("offset {offset}: {other}"),
        }
    }
    // The rest of a block's head carries nothing.
    assert!(unseen <= 8, "{unseen} flipped bits were not noticed");
}

#[test]
#[proves("LOG21")]
fn a_file_of_a_newer_format_or_of_another_log_is_refused_without_a_change() {
    let disk = SimDisk::new(SECTOR);
    add(&mut open(&disk).unwrap(), 10, 100, &records(10, 100)).unwrap();
    let name = disk.list().unwrap().remove(0);
    let (newer, before) = (disk.fork(), disk.contents(&name).unwrap());
    newer.overwrite(&name, 8, &2u32.to_le_bytes());
    let steps = newer.step_count();
    assert!(matches!(open(&newer), Err(LogError::NewerFormat { found: 2, known: 1, .. })));
    assert_eq!(newer.step_count(), steps, "something was written");
    let other = Archives::open(Arc::new(disk.clone()), LOG + 1).unwrap_err();
    assert!(matches!(other, LogError::Corrupt { .. }), "{other}");
    assert_eq!(disk.contents(&name).unwrap(), before);
}
