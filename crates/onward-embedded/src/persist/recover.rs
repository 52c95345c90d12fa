//! Opening a folder: the newest good snapshot, the log's tail behind it, and nothing written before both are right.

use super::ahead::ahead;
use super::error::log_error;
use super::folder::Disks;
use super::live::Live;
use super::log_store::{LogStore, unreadable};
use super::relay::Relay;
use super::snapshot::{self, Restored, StorePart};
use super::snapshot_file;
use crate::codec::decode;
use crate::{Fact, State};
use bytes::Bytes;
use onward_core::{Durability, Env, Error, Position, Result, Timestamp};
use onward_log::{Config, Log, LogError, RecordRef, RecoveryReport};
use std::sync::Arc;

/// A folder that was opened, before anything new is written to it.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) state: State,
    pub(crate) store: LogStore,
    pub(crate) report: OpenReport,
    /// The good snapshots that there are, newest first.
    pub(crate) snapshots: Vec<Position>,
}

/// What opening a data folder found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenReport {
    /// The place of the snapshot that was used; `None` when everything was replayed.
    pub snapshot: Option<Position>,
    /// Snapshots that were passed over, and why.
    pub passed_over: Vec<String>,
    /// Facts replayed behind it.
    pub facts: u64,
    /// What a power cut left that was never reported durable: where the log was cut, and how many bytes.
    pub cut: Option<(String, u64)>,
    /// How many leases were voided because the folder is a restored copy; `None` where it is not.
    pub voided: Option<u64>,
}

/// Opens the folder on `disks` and brings back its state.
///
/// # Errors
/// `AlreadyExists` when another process has it, `Unsupported` for a newer format, `Corrupt` for damage to what was
/// durable: nothing was changed then. `Full` and `Unavailable` from the disk.
pub(crate) fn recover(
    disks: &Disks,
    config: Config,
    durability: Durability,
    env: &Arc<dyn Env>,
    by_hand: bool,
) -> Result<Recovered> {
    let lock = disks.take()?;
    let mut passed_over = Vec::new();
    let threads = !by_hand;
    let (snapshots, restored) = newest_good(disks, &mut passed_over, threads)?;
    let relay = Arc::new(Relay::new(env.clone(), durability));
    let mut replay = Replay::after(restored);
    let from = replay.from();
    let mut check = Check { founded: from.is_some(), problem: None };
    // A fact that can't be read ends the walk before anything was changed; applying one never fails.
    let read = |give: &mut dyn FnMut(Replayed)| {
        let mut record = |record: RecordRef<'_>| check.record(record).map(&mut *give);
        Log::open(disks.log.clone(), config, from, relay.clone(), &mut record)
    };
    let opened = ahead(threads, FACTS_AHEAD, read, |fact| replay.apply(fact))?;
    let (log, found) = match (opened, check.problem.take()) {
        (_, Some(problem)) => return Err(problem),
        (Err(error), None) => return Err(log_error(error)),
        (Ok(opened), None) => opened,
    };
    replay.belongs_to(&log)?;
    let report = report(replay.snapshot, passed_over, &found);
    let store = LogStore::start(log, relay, replay.live, by_hand, lock)?;
    Ok(Recovered { state: replay.state, store, report, snapshots })
}

fn report(snapshot: Option<Position>, passed_over: Vec<String>, found: &RecoveryReport) -> OpenReport {
    let cut = found.cut.as_ref().map(|cut| (format!("{} at {}", cut.file, cut.position), cut.bytes));
    OpenReport { snapshot, passed_over, facts: found.records, cut, voided: None }
}

/// The newest snapshot that can be read, and the places of it and all older ones; what can't be read is passed over.
fn newest_good(
    disks: &Disks,
    passed_over: &mut Vec<String>,
    threads: bool,
) -> Result<(Vec<Position>, Option<Restored>)> {
    let (mut positions, _) = snapshot_file::list(&*disks.snapshots)?;
    while let Some(newest) = positions.first().copied() {
        match snapshot::restore(&*disks.snapshots, newest, threads) {
            Ok(restored) => return Ok((positions, Some(restored))),
            Err(error) => {
                passed_over.push(error.to_string());
                positions.remove(0);
            }
        }
    }
    Ok((positions, None))
}

/// The state being brought back from the log's records.
struct Replay {
    state: State,
    live: Live,
    snapshot: Option<Position>,
    log_id: Option<u64>,
}

/// Facts that are handed on together from the log's reader to where they are applied.
const FACTS_AHEAD: usize = 256;

/// A fact of the log, on its way to the state.
struct Replayed {
    fact: Fact,
    position: u64,
    time: Timestamp,
}

/// What a record must be for the log to be this folder's.
struct Check {
    founded: bool,
    problem: Option<Error>,
}

impl Replay {
    fn after(restored: Option<Restored>) -> Self {
        let Some(restored) = restored else {
            return Self { state: State::new(), live: Live::default(), snapshot: None, log_id: None };
        };
        let live = snapshot::live_of(&restored);
        let StorePart { log_id, position, .. } = restored.part;
        Self { state: restored.state, live, snapshot: Some(Position(position)), log_id: Some(log_id) }
    }

    fn from(&self) -> Option<onward_log::Position> {
        self.snapshot.map(|position| onward_log::Position(position.0))
    }

    fn apply(&mut self, Replayed { fact, position, time }: Replayed) {
        self.state.apply(&fact, position, time);
        if fact.body().is_some() {
            self.live.written(position);
        }
        self.live.released(&self.state.take_freed(), 0);
    }

    fn belongs_to(&self, log: &Log) -> Result<()> {
        match self.log_id {
            Some(id) if id != log.log_id() => Err(Error::corrupt("the snapshots belong to another log")
                .at("the data folder")
                .mend("put back the snapshots of this folder, or its own log")),
            _ => Ok(()),
        }
    }
}

impl Check {
    /// Reads one record. The log's walk is ended by an error of its own kind; ours is kept beside it.
    fn record(&mut self, record: RecordRef<'_>) -> Result<Replayed, LogError> {
        self.read(record).map_err(|problem| {
            let text = problem.to_string();
            self.problem = Some(problem);
            LogError::Invalid(text)
        })
    }

    fn read(&mut self, record: RecordRef<'_>) -> Result<Replayed> {
        let fact = decode(record.kind, &Bytes::copy_from_slice(record.bytes))
            .map_err(|malformed| unreadable(record.position, malformed.0))?;
        self.begins_right(&fact)?;
        Ok(Replayed { fact, position: record.position.0, time: Timestamp::from_micros(record.time) })
    }

    /// A replay without snapshot needs the log from its first fact on.
    fn begins_right(&mut self, fact: &Fact) -> Result<()> {
        if self.founded || matches!(fact, Fact::Founded { .. }) {
            self.founded = true;
            return Ok(());
        }
        Err(Error::corrupt("no snapshot can be read, and the log's early segments were released")
            .at("the data folder")
            .mend("restore the folder's snapshots from a backup; nothing was changed"))
    }
}
