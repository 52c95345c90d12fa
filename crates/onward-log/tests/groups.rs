//! Appending, grouping, reading back, releasing, on a disk that works.

mod common;

use std::sync::Arc;

use common::{append, append_as, bytes_of, drain, open, open_on, small};
use onward_log::{Log, LogError, Position, Purpose, UnitSize};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, Step};

fn syncs(disk: &SimDisk) -> usize {
    disk.steps().iter().filter(|step| step.what == "sync").count()
}

#[test]
#[proves("LOG15")]
fn what_is_ready_together_is_written_once_and_synced_once() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    opened.log.maintain().expect("segments are made ahead");
    let before = syncs(&disk);
    let units: Vec<Vec<u8>> = (0..50u8).map(|number| vec![number; 20]).collect();
    for unit in &units {
        append(&opened.log, unit);
    }
    drain(&opened.log);
    assert_eq!(syncs(&disk) - before, 1);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), units);
}

#[test]
#[proves("LOG15")]
fn groups_that_finish_out_of_order_are_reported_in_log_order() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let groups: Vec<_> = (0..3u8)
        .map(|number| {
            append(&opened.log, &[number]);
            opened.log.begin().expect("works").expect("there is a group")
        })
        .collect();
    let ends: Vec<Position> = groups.iter().map(|group| group.range().end).collect();
    let progress = || opened.log.progress();
    let start = progress().synced;
    let [first, second, third] = groups.try_into().expect("there are three");
    third.write().expect("works");
    assert_eq!(progress().written, start);
    first.write().expect("works");
    assert_eq!(
        (progress().written, progress().synced),
        (ends[0], start),
        "written is told before it is synced"
    );
    second.write().expect("works");
    assert_eq!(progress().written, ends[2]);
    third.sync().expect("works");
    second.sync().expect("works");
    assert_eq!(progress().synced, start);
    first.sync().expect("works");
    assert_eq!(progress().synced, ends[2]);
    assert_eq!(opened.watcher.progress(), progress());
}

#[test]
#[proves("LOG22")]
fn a_unit_whose_closure_fails_or_panics_leaves_nothing() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let size = UnitSize { records: 2, bytes: 20 };
    let failed = opened.log.append(Purpose::Ordinary, size, 0, |unit| {
        unit.record(1, &[b"half"])?;
        Err::<(), _>(LogError::Closed)
    });
    assert!(matches!(failed, Err(LogError::Closed)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        opened.log.append(Purpose::Ordinary, size, 0, |unit| -> Result<(), LogError> {
            unit.record(1, &[b"half"])?;
            panic!("the caller's own fault");
        })
    }));
    assert!(panicked.is_err());
    append(&opened.log, b"whole");
    drain(&opened.log);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), [b"whole"]);
}

#[test]
#[proves("LOG9")]
fn a_unit_over_the_limit_or_over_its_announced_size_is_refused_and_leaves_nothing() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let huge = UnitSize { records: 1, bytes: usize::MAX / 2 };
    let refused = opened.log.append(Purpose::Ordinary, huge, 0, |_| Ok::<_, LogError>(()));
    assert!(matches!(refused, Err(LogError::TooLarge { max: 6144, .. })), "{refused:?}");
    let refused = append_as(&opened.log, Purpose::Essential, 0, &[vec![0; 6125]]);
    assert!(matches!(refused, Err(LogError::TooLarge { bytes: 6145, max: 6144 })), "{refused:?}");
    let small = UnitSize { records: 1, bytes: 3 };
    let refused = opened.log.append(Purpose::Ordinary, small, 0, |unit| unit.record(0, &[b"four"]));
    assert!(matches!(refused, Err(LogError::TooLarge { bytes: 24, max: 23 })), "{refused:?}");
    assert!(!opened.log.step().expect("works"), "there is nothing to write");
}

#[test]
#[proves("I4")]
fn bytes_that_wait_for_the_disk_are_bounded_and_the_next_append_is_told_so() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let mut taken = 0u64;
    let refused = loop {
        match append_as(&opened.log, Purpose::Essential, 0, &[vec![1; 5000]]) {
            Ok(_) => taken += 5020,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, LogError::Busy { pending_bytes } if pending_bytes == taken), "{refused}");
    assert!(taken <= 64 << 10);
    drain(&opened.log);
    append(&opened.log, b"goes on");
}

#[test]
#[proves("LOG2")]
fn units_of_any_size_and_time_come_back_as_they_were_from_several_segments() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let mut all = Vec::new();
    for (number, time) in [0, i64::MAX, i64::MIN, -1, 1_700_000_000_000_000, 5].into_iter().enumerate() {
        let records = vec![vec![number as u8; 5000 * (number % 2)], vec![], vec![9; 100]];
        let (positions, end) = append_as(&opened.log, Purpose::Essential, time, &records).expect("taken");
        drain(&opened.log);
        all.extend(positions.into_iter().zip(records).map(|(at, bytes)| (at, time, bytes, end)));
    }
    let again = open(&disk.crash(Loss::All));
    let seen = again.seen.iter().map(|r| (r.position, r.time, r.bytes.clone()));
    assert!(seen.eq(all.iter().map(|(at, time, bytes, _)| (*at, *time, bytes.clone()))));
    let bounds: Vec<_> = again.seen.iter().map(|record| (record.first, record.last)).collect();
    assert_eq!(bounds.chunks(3).next(), Some(&[(true, false), (false, false), (false, true)][..]));
    assert_eq!(again.seen[2].end, all[2].3);
    assert!(again.report.end.segment() > 1, "the log goes over more than one segment");
}

/// A log of 40 records over several segments, the older ones out of the tail cache.
fn long_log(disk: &SimDisk) -> (common::Opened, Vec<(Position, Vec<u8>)>) {
    let opened = open(disk);
    let records = (0..40u8).map(|number| {
        let bytes = vec![number; 1500];
        let position = append(&opened.log, &bytes);
        drain(&opened.log);
        (position, bytes)
    });
    let records = records.collect();
    (opened, records)
}

fn scanned(log: &Log, from: Position, to: Position) -> Vec<(Position, Vec<u8>)> {
    let mut seen = Vec::new();
    let shown = log.scan(from, to, &mut |record| {
        seen.push((record.position, record.bytes.to_vec()));
        Ok(())
    });
    assert_eq!(shown.expect("the log is whole"), seen.len() as u64);
    seen
}

#[test]
#[proves("LOG2")]
fn any_record_is_read_by_its_position_and_any_stretch_is_scanned() {
    let disk = SimDisk::new(512);
    let (opened, records) = long_log(&disk);
    let waiting = append(&opened.log, b"not yet written");
    assert_eq!(opened.log.read(waiting).expect("read from the open group").bytes, b"not yet written"[..]);
    let under_way = opened.log.begin().expect("works").expect("there is a group");
    assert_eq!(opened.log.read(waiting).expect("read on its way").bytes, b"not yet written"[..]);
    drop(under_way);
    for (position, bytes) in &records {
        let record = opened.log.read(*position).expect("it is there");
        assert_eq!((record.kind, &record.bytes[..]), (7, &bytes[..]));
    }
    assert_eq!(scanned(&opened.log, Position::ZERO, opened.log.end()), records);
    assert_eq!(scanned(&opened.log, records[7].0, records[30].0), records[7..30]);
    assert_eq!(scanned(&opened.log, records[39].0, Position(u64::MAX)), records[39..]);
}

#[test]
#[proves("LOG16")]
fn a_released_segment_is_given_back_and_the_rest_stays_whatever_step_a_crash_hits() {
    for step in 1..8 {
        let disk = SimDisk::new(512);
        let (opened, records) = long_log(&disk);
        let [first, second, ..] = opened.log.segments()[..] else { panic!("there are more") };
        let current = opened.log.segments().last().expect("there is one").index;
        assert!(matches!(opened.log.release(current), Err(LogError::Invalid(_))), "it is still written");
        disk.stop_at(disk.steps().len() as u64 + step);
        let released = opened.log.release(first.index).and_then(|()| opened.log.release(second.index));
        if released.is_ok() {
            let gone = opened.log.read(records[0].0);
            assert!(matches!(gone, Err(LogError::OutOfRange { .. })), "{gone:?}");
            opened.log.release(first.index).expect("twice is no error");
        }
        let from = records.iter().find(|record| record.0.segment() > second.index).expect("there is one").0;
        let disk = disk.crash(Loss::Random(step));
        let again = open_on(Arc::new(disk), small(), Some(from)).expect("it opens");
        let kept = scanned(&again.log, from, again.log.end());
        assert_eq!(kept, records[records.len() - kept.len()..]);
        assert_eq!(kept[0].0, from);
    }
}

#[test]
#[proves("LOG16")]
fn a_log_that_is_released_behind_its_end_takes_a_bounded_part_of_the_disk() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let mut largest = 0;
    for number in 0..400u32 {
        append(&opened.log, &number.to_le_bytes().repeat(600));
        drain(&opened.log);
        for segment in opened.log.segments().iter().filter(|segment| segment.complete) {
            opened.log.release(segment.index).expect("works");
        }
        largest = largest.max(disk.used());
    }
    // The current one, two ready ahead, two in the pool, and one being made or released.
    assert!(largest <= 6 * (16 << 10), "{largest} bytes were used");
}

#[test]
#[proves("LOG3")]
fn no_group_is_written_to_a_segment_whose_name_or_first_block_is_not_durable() {
    let disk = SimDisk::new(512);
    long_log(&disk);
    let steps = disk.steps();
    let begun: Vec<&Step> = steps.iter().filter(|s| s.what == "write" && s.offset == 4096).collect();
    let groups = begun.iter().filter(|step| step.bytes < 4096 && step.file.ends_with(".seg"));
    let mut checked = 0;
    for group in groups {
        let at = steps.iter().position(|step| std::ptr::eq(step, *group)).expect("it is one of them");
        let block =
            steps.iter().position(|s| s.what == "write" && s.file == group.file).expect("the first block");
        let between: Vec<&str> = steps[block..at].iter().map(|step| step.what).collect();
        assert!(between.contains(&"sync") && between.contains(&"sync-dir"), "{}: {between:?}", group.file);
        checked += 1;
    }
    assert!(checked >= 3, "several segments were begun: {checked}");
}

#[test]
#[proves("T60")]
fn every_crash_point_has_a_name_and_the_power_goes_at_just_that_one() {
    let whole = SimDisk::new(512);
    long_log(&whole);
    let names = whole.steps();
    for kind in ["create", "allocate", "write", "sync", "rename", "sync-dir"] {
        assert!(names.iter().any(|step| step.what == kind), "no step is called {kind}");
    }
    for stop in (1..=names.len() as u64).step_by(7) {
        let disk = SimDisk::new(512);
        disk.stop_at(stop);
        // The work ends in an error, or the test's own expectation, at the point where the power goes.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| long_log(&disk)));
        assert_eq!(disk.steps(), names[..stop as usize], "the last step is the one named");
    }
}

#[test]
#[proves("LOG7", "LOG12")]
fn each_opening_is_a_new_epoch_also_when_the_one_before_was_cut_off() {
    let mut disk = SimDisk::new(512);
    let mut last = open(&disk).log.epoch();
    for seed in 0..20 {
        disk = disk.crash(Loss::Random(seed));
        disk.stop_at(1 + seed % 5);
        let cut_off = common::try_open(&disk).map(|opened| opened.log.epoch());
        disk = disk.crash(Loss::Random(seed));
        let epoch = open(&disk).log.epoch();
        let higher_than = cut_off.unwrap_or(last);
        assert!(higher_than >= last && epoch > higher_than, "{last}, {higher_than}, then {epoch}");
        last = epoch;
    }
}
