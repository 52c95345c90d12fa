//! What is written at once, by the thread that appended it.

mod common;

use common::{append, append_as, bytes_of, drain, open};
use onward_log::{LogError, Purpose};
use onward_proves::proves;
use onward_sim::{Fault, Loss, SimDisk};

fn count(disk: &SimDisk, what: &str) -> usize {
    disk.steps().iter().filter(|step| step.what == what).count()
}

fn check_poisoned(opened: &common::Opened) {
    assert_eq!(opened.watcher.failures().len(), 1, "waiters are told once");
    let refused = append_as(&opened.log, Purpose::Essential, 0, &[b"more".to_vec()]);
    assert!(matches!(refused, Err(LogError::Poisoned { .. })), "{refused:?}");
}

#[test]
fn what_is_written_in_a_hurry_outlives_the_process_but_not_a_power_cut() {
    for (loss, kept) in [(Loss::Nothing, 1), (Loss::All, 0)] {
        let disk = SimDisk::new(512);
        let opened = open(&disk);
        append(&opened.log, b"hurried");
        let end = opened.log.end();
        opened.log.hurry();
        let progress = opened.log.progress();
        assert!(progress.written >= end && progress.synced < end, "{progress:?}");
        assert_eq!(open(&disk.crash(loss)).seen.len(), kept);
    }
}

#[test]
fn what_was_written_in_a_hurry_is_synced_by_the_next_step() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    opened.log.maintain().expect("segments are made ahead");
    append(&opened.log, b"hurried");
    let end = opened.log.end();
    opened.log.hurry();
    append(&opened.log, b"behind");
    let before = count(&disk, "sync");
    assert!(opened.log.step().expect("works"));
    assert_eq!(count(&disk, "sync") - before, 1);
    assert!(opened.log.progress().synced >= end);
    drain(&opened.log);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), [b"hurried".as_slice(), b"behind"]);
}

#[test]
fn nothing_is_written_in_a_hurry_beside_a_group_that_is_under_way() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"first");
    let under_way = opened.log.begin().expect("works").expect("there is a group");
    append(&opened.log, b"second");
    let written = opened.log.progress().written;
    opened.log.hurry();
    assert_eq!(opened.log.progress().written, written);
    under_way.write().expect("works");
    opened.log.hurry();
    assert_eq!(opened.log.progress().written, under_way.range().end);
    under_way.sync().expect("works");
    opened.log.hurry();
    assert!(opened.log.progress().written > written);
    drain(&opened.log);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), [b"first".as_slice(), b"second"]);
}

#[test]
#[proves("LOG4")]
fn a_failed_write_in_a_hurry_poisons_the_log() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"unknown");
    disk.inject(Fault::FailWrite(count(&disk, "write") as u64 + 1));
    opened.log.hurry();
    check_poisoned(&opened);
}

#[test]
#[proves("LOG4")]
fn a_failed_sync_of_what_was_written_in_a_hurry_poisons_the_log() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"unknown");
    opened.log.hurry();
    disk.inject(Fault::FailSync(count(&disk, "sync") as u64 + 1));
    assert!(opened.log.step().is_err());
    check_poisoned(&opened);
}

#[test]
fn what_its_appender_writes_by_itself_is_durable_when_it_comes_back() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"alone");
    let end = opened.log.end();
    let before = (count(&disk, "write"), count(&disk, "sync"));
    opened.log.write_here();
    assert_eq!((count(&disk, "write") - before.0, count(&disk, "sync") - before.1), (1, 1));
    assert!(opened.log.progress().synced >= end);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), [b"alone".as_slice()]);
}

#[test]
fn an_appender_leaves_to_the_threads_what_comes_beside_a_group_that_is_under_way() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"first");
    let under_way = opened.log.begin().expect("works").expect("there is a group");
    append(&opened.log, b"second");
    let (before, end) = (opened.log.progress(), opened.log.end());
    opened.log.write_here();
    assert_eq!(opened.log.progress(), before, "its own thread did nothing");
    under_way.write().expect("works");
    under_way.sync().expect("works");
    opened.log.write_here();
    assert!(opened.log.progress().synced >= end);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), [b"first".as_slice(), b"second"]);
}

#[test]
fn an_appender_leaves_to_the_threads_what_lies_behind_a_hurried_group() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"hurried");
    opened.log.hurry();
    append(&opened.log, b"behind");
    let before = count(&disk, "sync");
    opened.log.write_here();
    assert_eq!(count(&disk, "sync"), before, "its own thread did nothing");
    drain(&opened.log);
    assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), [b"hurried".as_slice(), b"behind"]);
}

#[test]
#[proves("LOG4")]
fn a_failure_of_what_its_appender_writes_by_itself_poisons_the_log() {
    for sync in [false, true] {
        let disk = SimDisk::new(512);
        let opened = open(&disk);
        append(&opened.log, b"unknown");
        disk.inject(if sync {
            Fault::FailSync(count(&disk, "sync") as u64 + 1)
        } else {
            Fault::FailWrite(count(&disk, "write") as u64 + 1)
        });
        opened.log.write_here();
        check_poisoned(&opened);
    }
}
