//! What the log's tests share: small settings, an observer that remembers, a folder's records as a list.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod meddling;

use std::sync::Arc;

use onward_log::{
    Config, Disk, Log, LogError, Observer, Position, Progress, Purpose, RecordRef, RecoveryReport, UnitSize,
};
use onward_sim::SimDisk;
use parking_lot::Mutex;

/// Remembers what it was told.
#[derive(Debug, Default)]
pub struct Watcher {
    pub told: Mutex<Told>,
    pub news: parking_lot::Condvar,
}

#[derive(Debug, Default)]
pub struct Told {
    pub all: Vec<Progress>,
    pub failures: Vec<LogError>,
    pub rooms: u32,
}

impl Watcher {
    pub fn progress(&self) -> Progress {
        self.told.lock().all.last().copied().unwrap_or_default()
    }

    pub fn failures(&self) -> Vec<LogError> {
        self.told.lock().failures.clone()
    }

    /// Waits until everything before `end` is durable.
    pub fn wait_for(&self, end: Position) {
        let mut told = self.told.lock();
        while told.all.last().is_none_or(|progress| progress.synced < end) {
            assert!(told.failures.is_empty(), "the log failed: {:?}", told.failures);
            self.news.wait(&mut told);
        }
    }
}

impl Observer for Watcher {
    fn advanced(&self, progress: Progress) {
        let mut told = self.told.lock();
        if let Some(last) = told.all.last() {
            assert!(last.written <= progress.written && last.synced <= progress.synced, "progress went back");
        }
        assert!(progress.synced <= progress.written, "synced ran ahead of written");
        assert!(told.failures.is_empty(), "progress after a failure");
        told.all.push(progress);
        self.news.notify_all();
    }

    fn failed(&self, error: &LogError) {
        self.told.lock().failures.push(error.clone());
        self.news.notify_all();
    }

    fn room(&self) {
        self.told.lock().rooms += 1;
        self.news.notify_all();
    }
}

/// Segments of 16 KiB, so that a few records fill one.
pub fn small() -> Config {
    Config {
        segment_bytes: 16 << 10,
        unit_bytes_max: 6 << 10,
        group_bytes_max: 8 << 10,
        large_group_bytes: 4 << 10,
        pending_bytes_max: 64 << 10,
        tail_cache_bytes: 8 << 10,
        pool_segments_max: 2,
        log_id: 77,
        ..Config::default()
    }
}

/// A record as it was replayed, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub position: Position,
    pub end: Position,
    pub time: i64,
    pub kind: u8,
    pub bytes: Vec<u8>,
    pub first: bool,
    pub last: bool,
}

impl Seen {
    pub fn of(record: RecordRef<'_>) -> Seen {
        Seen {
            position: record.position,
            end: record.end,
            time: record.time,
            kind: record.kind,
            bytes: record.bytes.to_vec(),
            first: record.first_in_unit,
            last: record.last_in_unit,
        }
    }
}

/// A log that was opened, with all that it replayed and its observer.
#[derive(Debug)]
pub struct Opened {
    pub log: Log,
    pub report: RecoveryReport,
    pub seen: Vec<Seen>,
    pub watcher: Arc<Watcher>,
}

pub fn open_on(disk: Arc<dyn Disk>, config: Config, from: Option<Position>) -> Result<Opened, LogError> {
    let (watcher, mut seen) = (Arc::new(Watcher::default()), Vec::new());
    let (log, report) = Log::open(disk, config, from, watcher.clone(), &mut |record| {
        seen.push(Seen::of(record));
        Ok(())
    })?;
    Ok(Opened { log, report, seen, watcher })
}

pub fn open(disk: &SimDisk) -> Opened {
    try_open(disk).expect("the folder opens")
}

pub fn try_open(disk: &SimDisk) -> Result<Opened, LogError> {
    open_on(Arc::new(disk.clone()), small(), None)
}

/// Appends one unit of the given records; answers where each stands, and where the unit ends.
pub fn append_as(
    log: &Log,
    purpose: Purpose,
    time: i64,
    records: &[Vec<u8>],
) -> Result<(Vec<Position>, Position), LogError> {
    let size = UnitSize { records: records.len(), bytes: records.iter().map(Vec::len).sum() };
    let appended = log.append(purpose, size, time, |unit| {
        records.iter().map(|bytes| unit.record(7, &[bytes])).collect::<Result<Vec<_>, LogError>>()
    })?;
    Ok((appended.value, appended.end))
}

pub fn append(log: &Log, bytes: &[u8]) -> Position {
    append_as(log, Purpose::Ordinary, 1_000, &[bytes.to_vec()]).expect("the append is taken").0[0]
}

/// Writes and syncs until nothing waits.
pub fn drain(log: &Log) {
    while log.step().expect("the disk works") {}
}

/// The bytes of what was replayed.
pub fn bytes_of(seen: &[Seen]) -> Vec<Vec<u8>> {
    seen.iter().map(|record| record.bytes.clone()).collect()
}
