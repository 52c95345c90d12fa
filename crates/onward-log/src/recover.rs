//! Opening a folder: find the whole groups, tell a power cut from damage, begin a new epoch.

use std::sync::Arc;

use crate::config::Config;
use crate::disk::{Disk, Mode};
use crate::frame::{FORMAT, GroupHeader};
use crate::keep::{Ends, Found, tidy_up};
use crate::segment::{self, HeaderBlock, SEGMENT_HEADER_BYTES, segment_name};
use crate::stock::Shelf;
use crate::walk::{Apply, Walker, each_record};
use crate::{LogError, Position};

/// What opening a folder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Where the replay began.
    pub from: Position,
    /// Where the log ends; everything before it was kept and is durable now.
    pub end: Position,
    /// Groups and records that were replayed.
    pub groups: u64,
    /// Records that were replayed.
    pub records: u64,
    /// Before this, everything is known to have been durable before; damage there is refused.
    pub synced_through: Position,
    /// What a power cut left behind `end`, if anything that can be recognised.
    pub cut: Option<Cut>,
    /// The number of this opening; higher than that of every earlier one.
    pub epoch: u32,
}

/// Groups that were under way when the power went, and were never reported durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file in which the log was cut.
    pub file: String,
    /// Where it was cut.
    pub position: Position,
    /// Bytes of groups recognised behind, whole or torn.
    pub bytes: u64,
}

/// The state from which a log goes on.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) report: RecoveryReport,
    pub(crate) shelf: Shelf,
    pub(crate) log_id: u64,
}

pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    config: &Config,
    from: Option<Position>,
    apply: &mut Apply<'_>,
) -> Result<Recovered, LogError> {
    let names = disk.list().map_err(|error| LogError::io("list", ".", &error))?;
    let found = read_headers(&**disk, &names)?;
    let log_id = one_log(&found)?.unwrap_or(config.log_id);
    let mut replay = Replay::start(&**disk, &found, from)?;
    replay.run(apply)?;
    let claims = replay.look_behind()?;
    replay.refuse_damage(&claims)?;
    let ends = Ends { end: replay.end, synced_through: replay.synced_through };
    let shelf = tidy_up(disk, config, &names, &found, ends)?;
    let report = RecoveryReport {
        from: replay.from,
        end: replay.end,
        groups: replay.groups,
        records: replay.records,
        synced_through: replay.synced_through,
        cut: (claims.bytes > 0).then(|| Cut {
            file: segment_name(replay.end.segment()),
            position: replay.end,
            bytes: claims.bytes,
        }),
        epoch: replay.epoch + 1,
    };
    Ok(Recovered { report, shelf, log_id })
}

/// Reads the first block of every segment; a newer format is refused before anything else is looked at.
fn read_headers(disk: &dyn Disk, names: &[String]) -> Result<Found, LogError> {
    let mut found = Found::new();
    for index in names.iter().filter_map(|name| segment::segment_index(name)) {
        let header = match segment::read_header(disk, index)? {
            HeaderBlock::Valid(header) => Some(header),
            HeaderBlock::Damaged => None,
            HeaderBlock::Newer(version) => {
                let file = segment_name(index);
                return Err(LogError::NewerFormat { file, found: version, known: FORMAT });
            }
        };
        found.insert(index, header);
    }
    Ok(found)
}

/// The id that all segments carry.
fn one_log(found: &Found) -> Result<Option<u64>, LogError> {
    let mut headers = found.values().flatten();
    let Some(first) = headers.next() else { return Ok(None) };
    match headers.find(|header| header.log_id != first.log_id) {
        Some(other) => Err(LogError::Corrupt {
            file: segment_name(other.index),
            position: Position::at(other.index, 0),
            what: "the segment belongs to another log".to_owned(),
        }),
        None => Ok(Some(first.log_id)),
    }
}

struct Replay<'a> {
    disk: &'a dyn Disk,
    found: &'a Found,
    from: Position,
    /// Behind the last group that holds.
    end: Position,
    /// The epoch of the last group that holds.
    epoch: u32,
    synced_through: Position,
    /// Whether a group was read yet: the first one may follow a segment that was released.
    chained: bool,
    groups: u64,
    records: u64,
}

/// What stands behind the log's end.
#[derive(Default)]
struct Behind {
    synced_through: Position,
    bytes: u64,
}

impl<'a> Replay<'a> {
    fn start(disk: &'a dyn Disk, found: &'a Found, from: Option<Position>) -> Result<Self, LogError> {
        let index = from.map(Position::segment).or(found.keys().next().copied()).unwrap_or(1);
        let begin = Position::at(index, SEGMENT_HEADER_BYTES);
        if from.is_some() && found.get(&index).is_none_or(Option::is_none) {
            return Err(LogError::Corrupt {
                file: segment_name(index),
                position: from.unwrap_or_default(),
                what: "the segment to replay from is missing or its first block is damaged".to_owned(),
            });
        }
        Ok(Replay {
            disk,
            found,
            from: from.unwrap_or(begin),
            end: begin,
            epoch: found.values().flatten().map(|header| header.epoch).max().unwrap_or(0),
            synced_through: Position::ZERO,
            chained: false,
            groups: 0,
            records: 0,
        })
    }

    fn walker(&self, index: u32) -> Result<Option<Walker>, LogError> {
        let Some(header) = self.found.get(&index).copied().flatten() else { return Ok(None) };
        let name = segment_name(index);
        let file = self.disk.open(&name, Mode::Read).map_err(|error| LogError::io("open", &name, &error))?;
        Ok(Some(Walker::new(file, header)))
    }

    fn run(&mut self, apply: &mut Apply<'_>) -> Result<(), LogError> {
        // The segments' own epochs are only a floor for the next one; groups of older epochs are read.
        let floor = std::mem::take(&mut self.epoch);
        let mut index = self.end.segment();
        while let Some(mut walker) = self.walker(index)? {
            let mut at = Position::at(index, SEGMENT_HEADER_BYTES);
            if !self.goes_on_at(&mut walker, at)? {
                break;
            }
            while self.group(&mut walker, at, apply)? {
                at = self.end;
            }
            if !self.chained {
                break;
            }
            index += 1;
        }
        self.epoch = self.epoch.max(floor);
        Ok(())
    }

    /// Whether a segment's first group follows the log so far.
    fn goes_on_at(&self, walker: &mut Walker, at: Position) -> Result<bool, LogError> {
        Ok(!self.chained || walker.header(at)?.is_some_and(|header| self.follows(&header)))
    }

    fn follows(&self, header: &GroupHeader) -> bool {
        header.epoch >= self.epoch && (!self.chained || header.follows == self.end)
    }

    /// Replays the group at `at`; answers whether there was one that holds.
    fn group(&mut self, walker: &mut Walker, at: Position, apply: &mut Apply<'_>) -> Result<bool, LogError> {
        let sector = u64::from(walker.header.sector);
        let Some((header, bytes)) = walker.group(at)? else { return Ok(false) };
        if !self.follows(&header) {
            return Ok(false);
        }
        self.records += each_record(&header, bytes, self.from, Position(u64::MAX), apply)?;
        self.groups += 1;
        self.chained = true;
        self.epoch = header.epoch;
        self.synced_through = self.synced_through.max(header.synced_through);
        self.end = at.plus(header.disk_bytes(sector));
        Ok(true)
    }

    /// Looks through all that stands behind the end, for what claims to have been written after it.
    fn look_behind(&self) -> Result<Behind, LogError> {
        let mut behind = Behind::default();
        for (index, header) in self.found.range(self.end.segment()..) {
            let name = segment_name(*index);
            let failed = |error| LogError::io("open", &name, &error);
            let file = self.disk.open(&name, Mode::Read).map_err(failed)?;
            let bytes = file.size().map_err(failed)?;
            let from = self.end.max(Position::at(*index, SEGMENT_HEADER_BYTES));
            let mut walker = match header {
                Some(header) => Walker::new(file, *header),
                // A damaged first block is no end: the groups may show that it once was whole.
                None => Walker::of_any_log(file, *index, bytes),
            };
            self.look_through(&mut walker, from, &mut behind)?;
        }
        Ok(behind)
    }

    fn look_through(&self, walker: &mut Walker, from: Position, behind: &mut Behind) -> Result<(), LogError> {
        let mut at = from;
        while let Some(header) = walker.find_header(at)? {
            behind.synced_through = behind.synced_through.max(header.synced_through);
            // Left over from before an earlier cut, if the epoch is older: no part of this one.
            if header.epoch >= self.epoch {
                behind.bytes += header.disk_bytes(u64::from(walker.header.sector));
            }
            at = header.position.plus(u64::from(walker.header.sector));
        }
        Ok(())
    }

    /// Refuses a folder in which something is gone that was durable once.
    fn refuse_damage(&mut self, behind: &Behind) -> Result<(), LogError> {
        self.synced_through = self.synced_through.max(behind.synced_through);
        let needed = self.synced_through.max(self.from);
        let damaged = |index: u32| self.found.get(&index) == Some(&None);
        let last = self.end.segment();
        let unreadable = self.found.keys().copied().find(|index| damaged(*index) && *index < last);
        if needed <= self.end && unreadable.is_none() {
            return Ok(());
        }
        let first_block = unreadable.or([last, last + 1].into_iter().find(|index| damaged(*index)));
        Err(match first_block {
            Some(index) => LogError::Corrupt {
                file: segment_name(index),
                position: Position::at(index, 0),
                what: "the segment's first block does not hold".to_owned(),
            },
            None => LogError::Corrupt {
                file: segment_name(last),
                position: self.end,
                what: format!("everything before {needed} was durable, but no whole group follows here"),
            },
        })
    }
}
