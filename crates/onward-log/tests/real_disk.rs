//! The log on a real disk: threads that write, the lock between processes, the format's old files.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use common::{Opened, append_as, bytes_of, open_on, small};
use onward_log::{Config, LogError, Position, Purpose, RealDisk};
use onward_proves::proves;

fn open(folder: &Path, config: Config) -> Result<Opened, LogError> {
    open_on(Arc::new(RealDisk::open(folder).expect("the folder is usable")), config, None)
}

fn folder() -> tempfile::TempDir {
    // In the build's own folder: the system's temporary one may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made")
}

/// Segments of 32 KiB: the smallest that hold a few groups of a disk with sectors of 4096 bytes.
fn few() -> Config {
    Config { segment_bytes: 32 << 10, ..small() }
}

fn medium() -> Config {
    Config { segment_bytes: 256 << 10, unit_bytes_max: 64 << 10, group_bytes_max: 64 << 10, ..small() }
}

/// Appends, waiting where the log says that it is busy.
fn append_patiently(opened: &Opened, bytes: &[u8]) -> Position {
    loop {
        match append_as(&opened.log, Purpose::Ordinary, 0, &[bytes.to_vec()]) {
            Ok((_, end)) => return end,
            Err(LogError::Busy { .. }) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Eight threads append 200 units each, every one waits until its unit is durable.
fn write_from_many_threads(opened: &Opened) {
    std::thread::scope(|scope| {
        for writer in 0..8u8 {
            scope.spawn(move || {
                for number in 0..200u8 {
                    let end = append_patiently(opened, &[writer, number].repeat(100));
                    opened.watcher.wait_for(end);
                }
            });
        }
    });
}

#[test]
#[proves("LOG1")]
fn what_is_written_in_a_hurry_stands_beside_what_passed_the_page_cache() {
    let folder = folder();
    let opened = open(folder.path(), medium()).expect("it opens");
    let threads = opened.log.spawn_io().expect("threads start");
    std::thread::scope(|scope| {
        for writer in 0..4u8 {
            let opened = &opened;
            scope.spawn(move || {
                for number in 0..100u8 {
                    let end = append_patiently(opened, &[writer, number].repeat(50));
                    if writer % 2 == 0 {
                        opened.log.hurry();
                    }
                    if number % 4 == 0 {
                        opened.watcher.wait_for(end);
                    }
                }
            });
        }
    });
    drop((threads, opened));
    let again = open(folder.path(), medium()).expect("it opens again");
    let mut next = [0u8; 4];
    for record in &again.seen {
        let (writer, number) = (record.bytes[0], record.bytes[1]);
        assert_eq!(record.bytes, [writer, number].repeat(50));
        assert_eq!(number, next[usize::from(writer)], "writer {writer}");
        next[usize::from(writer)] += 1;
    }
    assert_eq!(next, [100; 4]);
}

#[test]
#[proves("LOG15", "LOG1")]
fn many_threads_append_and_each_ones_units_come_back_in_its_order_with_far_fewer_syncs() {
    let folder = folder();
    for buffered in [false, true] {
        let folder = folder.path().join(buffered.to_string());
        let disk = RealDisk::open(&folder).expect("the folder is usable");
        let disk = if buffered { disk.buffered() } else { disk };
        let opened = open_on(Arc::new(disk), medium(), None).expect("it opens");
        let threads = opened.log.spawn_io().expect("threads start");
        write_from_many_threads(&opened);
        let reports = opened.watcher.told.lock().all.len();
        drop(threads);
        drop(opened);
        let again = open(&folder, medium()).expect("it opens again");
        let mut next = [0u8; 8];
        for record in &again.seen {
            let (writer, number) = (record.bytes[0], record.bytes[1]);
            assert_eq!(number, next[usize::from(writer)], "writer {writer}");
            assert_eq!(record.bytes, [writer, number].repeat(100));
            next[usize::from(writer)] += 1;
        }
        assert_eq!(next, [200; 8]);
        assert!(again.report.groups < 1600, "{} groups, {reports} reports", again.report.groups);
        let attest = again.log.disk_info().sector as u64;
        assert_eq!(
            again.report.synced_through.0 + attest,
            again.report.end.0,
            "closing attests what is durable"
        );
    }
}

#[test]
#[proves("LOG14")]
fn the_disk_says_what_it_is_for_every_report() {
    let folder = folder();
    let opened = open(folder.path(), few()).expect("it opens");
    let info = opened.log.disk_info();
    assert!(info.sector >= 512 && info.sector.is_power_of_two());
    assert!(!info.filesystem.is_empty() && info.device.contains(':'));
    assert_eq!(info.volatile, info.filesystem == "tmpfs" || info.filesystem == "ramfs");
}

/// Where a test works that was started as another one's child process.
const CHILD_FOLDER: &str = "LOG_TEST_FOLDER";

/// Runs a test of this file again as a process of its own; answers when it says that it is ready.
fn child(test: &str, folder: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("the test's own program"))
        .args([test, "--exact", "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it has an output"));
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("it can be read") > 0, "the child ended early");
    }
    (child, lines)
}

fn child_folder() -> Option<PathBuf> {
    std::env::var_os(CHILD_FOLDER).map(PathBuf::from)
}

fn hold(folder: &Path) {
    let _opened = open(folder, few()).expect("it opens");
    println!("ready");
    // Ends when the parent goes away, if it is not killed before.
    let _ = std::io::stdin().lines().next();
}

#[test]
#[proves("LOG13")]
fn a_second_process_is_refused_by_the_holders_id_and_killing_the_holder_frees_the_folder() {
    if let Some(folder) = child_folder() {
        return hold(&folder);
    }
    let folder = folder();
    let own = "a_second_process_is_refused_by_the_holders_id_and_killing_the_holder_frees_the_folder";
    let (mut holder, _lines) = child(own, folder.path());
    let refused = open(folder.path(), few()).map(|opened| opened.report);
    let Err(LogError::Locked { holder: named }) = refused else { panic!("{refused:?}") };
    assert!(named.contains(&format!("process {}", holder.id())), "{named}");
    assert!(named.contains("a_second_process"), "the command is named: {named}");
    holder.kill().expect("SIGKILL is sent");
    holder.wait().expect("it ended");
    open(folder.path(), few()).expect("the folder is free");
}

fn append_until_killed(folder: &Path) {
    let opened = open(folder, medium()).expect("it opens");
    let _threads = opened.log.spawn_io().expect("threads start");
    println!("ready");
    for number in opened.seen.len() as u64.. {
        let end = append_patiently(&opened, &number.to_le_bytes().repeat(1 + number as usize % 60));
        opened.watcher.wait_for(end);
        println!("durable {number}");
        let _ = std::io::stdout().flush();
    }
}

#[test]
#[proves("LOG2", "LOG6")]
fn what_a_killed_process_reported_durable_is_there_and_nothing_else_than_what_it_appended() {
    if let Some(folder) = child_folder() {
        return append_until_killed(&folder);
    }
    let folder = folder();
    let own = "what_a_killed_process_reported_durable_is_there_and_nothing_else_than_what_it_appended";
    let mut durable = None;
    for round in 0..4u64 {
        let (mut writer, lines) = child(own, folder.path());
        for line in lines.lines().take(30 + 25 * round as usize) {
            let line = line.expect("it can be read");
            durable = line.strip_prefix("durable ").and_then(|number| number.parse::<u64>().ok()).or(durable);
        }
        writer.kill().expect("SIGKILL is sent");
        writer.wait().expect("it ended");
        let opened = open(folder.path(), medium()).expect("it opens");
        let expected = (0..opened.seen.len() as u64).map(|n| n.to_le_bytes().repeat(1 + n as usize % 60));
        assert!(bytes_of(&opened.seen).into_iter().eq(expected), "round {round}");
        assert!(opened.seen.len() as u64 > durable.expect("some were durable"), "round {round}");
    }
}

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/format-1");

fn fixture_records() -> Vec<Vec<Vec<u8>>> {
    (0..12u8)
        .map(|unit| (0..=unit % 3).map(|at| vec![unit * 16 + at; 900 * usize::from(unit % 2) + 7]).collect())
        .collect()
}

/// Writes the fixture: for a new format, into a folder of that format's name, with `LOG_WRITE_FIXTURE` set.
fn write_the_fixture() {
    let opened = open(Path::new(FIXTURE), few()).expect("it opens");
    for (unit, records) in fixture_records().iter().enumerate() {
        append_as(&opened.log, Purpose::Ordinary, unit as i64 * 1_000_000, records).expect("taken");
        common::drain(&opened.log);
    }
    assert!(opened.log.attest());
    common::drain(&opened.log);
}

#[test]
#[proves("LOG21")]
fn a_folder_of_format_1_opens_with_all_its_records_and_takes_more() {
    if std::env::var_os("LOG_WRITE_FIXTURE").is_some() {
        write_the_fixture();
    }
    let folder = folder();
    for entry in std::fs::read_dir(FIXTURE).expect("the fixture is there") {
        let entry = entry.expect("it can be read");
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("it can be copied");
    }
    let opened = open(folder.path(), few()).expect("an old folder opens");
    let units = fixture_records();
    assert_eq!(bytes_of(&opened.seen), units.concat());
    let times: Vec<i64> = opened.seen.iter().filter(|r| r.first).map(|record| record.time).collect();
    assert_eq!(times, (0..12).map(|unit| unit * 1_000_000).collect::<Vec<i64>>());
    assert_eq!((opened.report.epoch, opened.log.log_id()), (2, 77));
    append_as(&opened.log, Purpose::Ordinary, 0, &[b"more".to_vec()]).expect("taken");
    common::drain(&opened.log);
    drop(opened);
    assert_eq!(open(folder.path(), few()).expect("it opens").seen.len(), units.concat().len() + 1);
}
