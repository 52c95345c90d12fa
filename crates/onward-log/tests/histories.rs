//! Random histories of appends, writes, crashes and reopenings, each checked against a plain list.

mod common;

use std::sync::Arc;

use common::{Opened, append_as, open_on, small};
use onward_log::{InFlight, LogError, Position, Purpose};
use onward_proves::proves;
use onward_sim::{Loss, Random, SimDisk, Step, each_seed};

/// A unit as it was appended.
#[derive(Clone, Debug)]
struct Unit {
    positions: Vec<Position>,
    end: Position,
    time: i64,
    records: Vec<Vec<u8>>,
}

struct History {
    random: Random,
    disk: SimDisk,
    now: Opened,
    /// What was appended and may still come back, oldest first.
    units: Vec<Unit>,
    /// Where a replay begins.
    from: Option<Position>,
    under_way: Vec<(InFlight, bool)>,
    appended: u64,
    /// The disk's steps up to the last crash.
    trace: Vec<Step>,
}

impl History {
    fn new(seed: u64) -> History {
        let disk = SimDisk::new(512);
        let now = open_on(Arc::new(disk.clone()), small(), None).expect("a new folder opens");
        let random = Random::new(seed);
        History {
            random,
            disk,
            now,
            units: Vec::new(),
            from: None,
            under_way: Vec::new(),
            appended: 0,
            trace: Vec::new(),
        }
    }

    fn append(&mut self) {
        let records: Vec<Vec<u8>> = (0..1 + self.random.below(4))
            .map(|_| {
                self.appended += 1;
                let length = if self.random.once_in(4) { 1400 } else { 60 };
                let mut bytes = self.appended.to_le_bytes().to_vec();
                bytes.resize(8 + self.random.below(length) as usize, self.appended as u8);
                bytes
            })
            .collect();
        let purpose = if self.random.once_in(2) { Purpose::Ordinary } else { Purpose::Essential };
        let time = self.random.number() as i64 >> self.random.below(60);
        match append_as(&self.now.log, purpose, time, &records) {
            Ok((positions, end)) => self.units.push(Unit { positions, end, time, records }),
            Err(LogError::Busy { .. } | LogError::NoSpace | LogError::Poisoned { .. }) => {}
            Err(other) => panic!("an append fails: {other}"),
        }
    }

    fn begin(&mut self) {
        if self.under_way.len() < 3
            && let Ok(Some(group)) = self.now.log.begin()
        {
            self.under_way.push((group, false));
        }
    }

    /// Writes or syncs one of the groups under way, whichever comes.
    fn go_on(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let at = self.random.below(self.under_way.len() as u64) as usize;
        let (group, written) = self.under_way.remove(at);
        if written {
            let _ = group.sync();
        } else if group.write().is_ok() {
            self.under_way.insert(at, (group, true));
        }
    }

    fn read_some(&mut self) {
        let Some(unit) = self.units.get(self.random.below(self.units.len() as u64) as usize) else { return };
        let at = self.random.below(unit.positions.len() as u64) as usize;
        let read = self.now.log.read(unit.positions[at]);
        if self.now.watcher.failures().is_empty() {
            assert_eq!(read.expect("an appended record is read").bytes, unit.records[at]);
        }
    }

    /// Takes a snapshot's position, and gives back what lies before it.
    fn release(&mut self) {
        let synced = self.now.watcher.progress().synced;
        let Some(unit) = self.units.iter().rfind(|unit| unit.end <= synced) else { return };
        self.from = Some(unit.end);
        for segment in self.now.log.segments() {
            if segment.complete && segment.index < unit.end.segment() {
                let _ = self.now.log.release(segment.index);
            }
        }
        let from = self.from;
        self.units.retain(|unit| Some(unit.end) > from);
    }

    fn crash(&mut self) {
        let loss = match self.random.below(6) {
            0 => Loss::Nothing,
            1 => Loss::All,
            _ => Loss::Random(self.random.number()),
        };
        let promised = self.now.watcher.progress();
        self.under_way.clear();
        self.trace.extend(self.disk.steps());
        self.disk = self.disk.crash(loss);
        self.reopen_at_last(loss == Loss::Nothing);
        let kept = if loss == Loss::Nothing { promised.written } else { promised.synced };
        self.check(kept);
    }

    /// Opens, and loses power again while doing so, a few times.
    fn reopen_at_last(&mut self, only_kill: bool) {
        let rounds = self.random.below(4);
        for _ in 0..rounds {
            self.disk.stop_at(1 + self.random.below(12));
            // It may get through before the power goes.
            let _ = open_on(Arc::new(self.disk.clone()), small(), self.from);
            let seed = self.random.number();
            self.disk = self.disk.crash(if only_kill { Loss::Nothing } else { Loss::Random(seed) });
        }
        self.now = open_on(Arc::new(self.disk.clone()), small(), self.from).expect("what a crash left opens");
    }

    /// The replay is a prefix of what was appended, in whole units, and holds all before `kept`.
    fn check(&mut self, kept: Position) {
        let mut seen = self.now.seen.iter();
        let mut whole = 0;
        for unit in &self.units {
            let Some(first) = seen.next() else { break };
            let rest = seen.by_ref().take(unit.records.len() - 1);
            for (at, record) in std::iter::once(first).chain(rest).enumerate() {
                assert_eq!(record.position, unit.positions[at]);
                assert_eq!(record.bytes, unit.records[at]);
                assert_eq!((record.time, record.kind), (unit.time, 7));
                assert_eq!((record.first, record.last), (at == 0, at + 1 == unit.records.len()));
                whole += usize::from(record.last);
            }
        }
        assert!(seen.next().is_none(), "the replay holds what was never appended");
        let needed = self.units.iter().filter(|unit| unit.end <= kept).count();
        assert!(whole >= needed, "{needed} units were durable, {whole} came back");
        self.units.truncate(whole);
    }

    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.random.below(100) {
                0..40 => self.append(),
                40..55 => self.begin(),
                55..76 => self.go_on(),
                76..80 => self.now.log.hurry(),
                80..88 => self.read_some(),
                88..91 => drop(self.now.log.maintain()),
                91..93 => drop(self.now.log.attest()),
                93..95 => self.release(),
                95..97 => self.disk.stop_at(self.disk.steps().len() as u64 + 1 + self.random.below(30)),
                _ => self.crash(),
            }
        }
        self.crash();
    }
}

#[test]
#[proves("LOG1", "LOG2", "LOG3", "LOG6", "LOG10", "LOG12")]
fn whatever_the_history_a_crash_leaves_a_prefix_in_whole_units_with_all_that_was_durable() {
    each_seed(600, "cargo test -p onward-log --test histories", |seed| History::new(seed).run(120));
}

#[test]
#[proves("LOG20")]
fn the_same_seed_gives_the_same_steps_on_the_disk() {
    let steps = |seed| {
        let mut history = History::new(seed);
        history.run(200);
        history.trace
    };
    assert!(steps(5).len() > 50);
    assert_eq!(steps(5), steps(5));
    assert_ne!(steps(5), steps(6));
}
