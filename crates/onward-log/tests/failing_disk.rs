//! What the log does when the disk fails, fills up, or does half of what it should.

mod common;

use common::{append, append_as, bytes_of, drain, open, try_open};
use onward_log::{LogError, Purpose};
use onward_proves::proves;
use onward_sim::{Fault, Loss, SimDisk};

fn count(disk: &SimDisk, what: &str) -> u64 {
    disk.steps().iter().filter(|step| step.what == what).count() as u64
}

/// A log with `kept` durable, and `lost` appended when the next write or sync fails.
fn fail_with(fault: impl Fn(&SimDisk) -> Fault) -> (SimDisk, common::Opened) {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"kept");
    drain(&opened.log);
    disk.inject(fault(&disk));
    append(&opened.log, b"unknown");
    assert!(opened.log.step().is_err());
    (disk, opened)
}

fn check_poisoned(disk: &SimDisk, opened: &common::Opened) {
    let told = opened.watcher.failures();
    assert!(matches!(told.as_slice(), [LogError::Io { .. }]), "waiters are told once: {told:?}");
    assert!(opened.log.failure().is_some());
    let refused = append_as(&opened.log, Purpose::Essential, 0, &[b"more".to_vec()]);
    assert!(matches!(refused, Err(LogError::Poisoned { .. })), "{refused:?}");
    let steps = disk.steps().len();
    assert!(matches!(opened.log.step(), Err(LogError::Poisoned { .. })));
    assert!(!opened.log.attest());
    assert_eq!(disk.steps().len(), steps, "nothing is written or synced any more");
}

#[test]
#[proves("LOG4")]
fn a_failed_sync_poisons_the_log_and_is_never_tried_again() {
    let (disk, opened) = fail_with(|disk| Fault::FailSync(count(disk, "sync") + 1));
    check_poisoned(&disk, &opened);
}

#[test]
#[proves("LOG4")]
fn a_failed_write_poisons_the_log() {
    let (disk, opened) = fail_with(|disk| Fault::FailWrite(count(disk, "write") + 1));
    check_poisoned(&disk, &opened);
}

#[test]
#[proves("LOG4")]
fn a_failed_sync_of_the_folder_poisons_the_log() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    disk.inject(Fault::FailSyncDir(count(&disk, "sync-dir") + 1));
    while append_as(&opened.log, Purpose::Ordinary, 0, &[vec![1; 4000]]).is_ok() {
        let _ = opened.log.step();
    }
    check_poisoned(&disk, &opened);
}

#[test]
#[proves("LOG4")]
fn a_poisoned_log_still_reads_and_opening_it_again_recovers() {
    let (disk, opened) = fail_with(|disk| Fault::FailSync(count(disk, "sync") + 1));
    assert_eq!(opened.log.read(opened.watcher.progress().synced).ok(), None);
    let mut seen = Vec::new();
    opened
        .log
        .scan(Default::default(), opened.log.end(), &mut |record| {
            seen.push(record.bytes.to_vec());
            Ok(())
        })
        .expect("what is written can be scanned");
    assert_eq!(seen.first().map(Vec::as_slice), Some(&b"kept"[..]));
    let again = open(&disk.crash(Loss::All));
    assert_eq!(bytes_of(&again.seen), [b"kept"]);
    append(&again.log, b"more");
    drain(&again.log);
}

#[test]
#[proves("LOG1", "LOG4")]
fn what_a_failed_sync_left_in_the_page_cache_is_durable_once_the_log_was_opened_again() {
    let (disk, opened) = fail_with(|disk| Fault::FailSync(count(disk, "sync") + 1));
    // The process dies, the system goes on: it still shows what it will never save by itself.
    let disk = disk.crash(Loss::Nothing);
    drop(opened);
    let again = open(&disk);
    assert_eq!(bytes_of(&again.seen), [&b"kept"[..], b"unknown"]);
    append(&again.log, b"more");
    drain(&again.log);
    let last = open(&disk.crash(Loss::All));
    assert_eq!(bytes_of(&last.seen), [&b"kept"[..], b"unknown", b"more"]);
}

#[test]
#[proves("LOG1", "LOG4")]
fn a_segment_made_ahead_whose_sync_failed_is_made_durable_when_the_log_is_opened_again() {
    for nth in 1..=6 {
        let disk = SimDisk::new(512);
        disk.inject(Fault::FailSync(nth));
        let _ = try_open(&disk);
        let disk = disk.crash(Loss::Nothing);
        let again = open(&disk);
        let mut kept = Vec::new();
        for number in 0..12u8 {
            let bytes = vec![number; 4_000];
            while append_as(&again.log, Purpose::Ordinary, 0, std::slice::from_ref(&bytes)).is_err() {
                drain(&again.log);
            }
            kept.push(bytes);
        }
        drain(&again.log);
        assert_eq!(bytes_of(&open(&disk.crash(Loss::All)).seen), kept, "the sync {nth} failed");
    }
}

#[test]
#[proves("LOG4")]
fn a_group_behind_a_failed_one_is_not_reported_durable() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"first");
    let first = opened.log.begin().expect("works").expect("there is a group");
    append(&opened.log, b"second");
    let second = opened.log.begin().expect("works").expect("there is a group");
    let before = opened.log.progress().synced;
    first.write().expect("works");
    second.write().expect("works");
    disk.inject(Fault::FailSync(count(&disk, "sync") + 1));
    assert!(first.sync().is_err());
    second.sync().expect("this one's own sync works");
    assert_eq!(opened.watcher.progress().synced, before);
}

/// Appends until the log says that there is no room; answers what was taken.
fn fill(opened: &common::Opened, purpose: Purpose) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    for number in 0.. {
        let bytes = vec![number as u8; 3000];
        match append_as(&opened.log, purpose, 0, std::slice::from_ref(&bytes)) {
            Ok(_) => taken.push(bytes),
            Err(LogError::NoSpace) => break,
            Err(LogError::Busy { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        drain(&opened.log);
    }
    taken
}

#[test]
#[proves("LOG5")]
fn a_full_disk_refuses_new_work_keeps_a_reserve_for_settling_and_goes_on_when_space_is_freed() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    disk.limit_space(Some(disk.used()));
    let mut all = fill(&opened, Purpose::Ordinary);
    assert!(!all.is_empty());
    assert!(opened.log.room() < 3020, "room for less than was refused: {}", opened.log.room());
    let settled = fill(&opened, Purpose::Essential);
    assert!(settled.len() as u64 * 3000 > 8 << 10, "the reserve is a segment: {} units", settled.len());
    all.extend(settled);
    assert!(opened.watcher.failures().is_empty(), "a full disk is no failure");

    let again = open(&disk.fork());
    assert_eq!(bytes_of(&again.seen), all, "all that was taken is there, and readable on the full disk");

    assert_eq!(opened.watcher.told.lock().rooms, 0);
    disk.limit_space(None);
    drain(&opened.log);
    assert_eq!(opened.watcher.told.lock().rooms, 1, "whoever was refused is told");
    append(&opened.log, b"new work");
}

#[test]
#[proves("LOG4", "LOG15")]
fn a_sync_that_fails_under_many_threads_is_told_once_and_everything_told_durable_before_is_kept() {
    let mut failed = 0;
    for failing in 1..12 {
        let disk = SimDisk::new(512);
        let opened = open(&disk);
        let threads = opened.log.spawn_io().expect("threads start");
        disk.inject(Fault::FailSync(count(&disk, "sync") + failing));
        let appended = std::thread::scope(|scope| {
            let writers = [1u8, 2, 3].map(|writer| {
                let opened = &opened;
                scope.spawn(move || {
                    let unit = [vec![writer; 50]];
                    std::iter::from_fn(|| append_as(&opened.log, Purpose::Essential, 0, &unit).ok())
                        .inspect(|_| std::thread::yield_now())
                        .take(3000)
                        .count()
                })
            });
            writers.map(|writer| writer.join().expect("it ends")).iter().sum::<usize>()
        });
        drop(threads);
        let failures = opened.watcher.failures();
        assert_eq!(failures.len(), usize::from(opened.log.failure().is_some()));
        failed += failures.len();
        let synced = opened.log.progress().synced;
        let again = open(&disk.crash(Loss::Random(failing)));
        let durable = again.seen.iter().filter(|record| record.end <= synced).count();
        let needed = again.report.end >= synced;
        assert!(needed && durable <= appended, "{durable} of {appended}, up to {synced}");
    }
    assert!(failed >= 6, "the planned failures came about in {failed} of 11 runs only");
}

#[test]
#[proves("LOG6")]
fn a_torn_last_group_leaves_all_before_it_whichever_byte_it_ends_at() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"before");
    drain(&opened.log);
    let units = [vec![b'a'; 700], vec![b'b'; 300]];
    append_as(&opened.log, Purpose::Ordinary, 0, &units).expect("taken");
    let group = opened.log.begin().expect("works").expect("there is a group");
    let range = group.range();
    group.write().expect("works");
    let written = disk.contents("0000000001.seg").expect("the segment is there");
    let (from, to) = (range.start.offset() as usize, range.end.offset() as usize);
    let used = 72 + 2 * 20 + 1000;
    for kept in 0..=to - from {
        let torn = disk.fork();
        torn.overwrite("0000000001.seg", (from + kept) as u64, &vec![0; to - from - kept]);
        let again = open(&torn);
        let whole = kept >= used;
        assert_eq!(again.seen.len(), if whole { 3 } else { 1 }, "{kept} bytes were kept");
        assert_eq!(again.seen[0].bytes, b"before");
        append(&again.log, b"after");
        drain(&again.log);
        assert_eq!(
            open(&torn.crash(Loss::All)).seen.last().map(|r| r.bytes.clone()),
            Some(b"after".to_vec())
        );
    }
    assert_eq!(written[from..from + 4], *b"oGrp");
}

#[test]
#[proves("LOG6")]
fn short_and_interrupted_writes_and_reads_are_gone_on_with() {
    for part in [0usize, 1, 511, 512, 513, 1000, 2048, 5000] {
        let disk = SimDisk::new(512);
        let opened = open(&disk);
        let next = count(&disk, "write") + 1;
        disk.inject(Fault::ShortWrite(next, part.max(1)));
        disk.inject(Fault::InterruptWrite(next + 1));
        (1..40).for_each(|read| disk.inject(Fault::InterruptRead(read)));
        let bytes: Vec<u8> = (0..5500).map(|at| at as u8).collect();
        append(&opened.log, &bytes);
        drain(&opened.log);
        let again = open(&disk.crash(Loss::All));
        assert_eq!(bytes_of(&again.seen), [bytes], "a write of {part} bytes");
    }
}

#[test]
#[proves("LOG13")]
fn a_second_opening_is_refused_by_the_holders_name_until_the_first_is_gone() {
    let disk = SimDisk::new(512);
    let first = open(&disk);
    let steps = disk.steps().len();
    let refused = try_open(&disk).map(|opened| opened.report);
    assert!(
        matches!(&refused, Err(LogError::Locked { holder }) if holder.contains("simulation")),
        "{refused:?}"
    );
    assert_eq!(disk.steps().len(), steps, "nothing was changed");
    drop(first);
    open(&disk);
}
