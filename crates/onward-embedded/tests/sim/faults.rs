//! What breaks, when, and how often each thing broke.

use std::time::Duration;

use onward_core::{Engine, Error, ErrorKind};
use onward_sim::{Fault, Loss, Random};

use super::counters::Counters;
use super::run::{CALLS, Run};

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The process is killed; what the operating system has, it keeps.
    Kill,
    /// The engine is closed in good order.
    Close,
    /// The power goes: everything unsynced is lost.
    PowerCut,
    /// The power goes: of what is unsynced, something is kept, lost or torn.
    TornPowerCut,
    /// The power goes in the middle of one of the next steps of the disk.
    PowerCutAtStep,
    /// The power goes while the folder is being opened, several times over.
    PowerCutInRecovery,
    FailWrite,
    FailSync,
    /// A write that takes only a part, and one that is interrupted.
    ShortWrite,
    DiskFull,
    ClockForward,
    ClockBack,
    ClockStall,
    /// Somebody else opens the folder.
    SecondOpening,
    /// The power goes, and bits above what was synced are turned over.
    FlipUnsynced,
}

const KINDS: [Kind; 15] = [
    Kind::Kill,
    Kind::Close,
    Kind::PowerCut,
    Kind::TornPowerCut,
    Kind::PowerCutAtStep,
    Kind::PowerCutInRecovery,
    Kind::FailWrite,
    Kind::FailSync,
    Kind::ShortWrite,
    Kind::DiskFull,
    Kind::ClockForward,
    Kind::ClockBack,
    Kind::ClockStall,
    Kind::SecondOpening,
    Kind::FlipUnsynced,
];

const HOUR: i64 = 3_600_000_000;
/// Turns within which the engine notices free space.
const NOTICED_WITHIN_TURNS: u64 = 40;
/// Faults of one run, at least and at most.
const FAULTS: (u64, u64) = (2, 6);

/// The faults of one run, and what is broken now.
#[derive(Debug)]
pub(crate) struct Faults {
    /// With the number of calls after which each strikes, soonest last.
    planned: Vec<(u64, Kind)>,
    pub(crate) counters: Counters,
    /// The disk is full until so many calls were made.
    full_until: Option<u64>,
    /// By then the engine has noticed that there is space again.
    noticed_by: u64,
    /// The power goes at a step of the disk that was named.
    power_goes: bool,
    /// A write or a sync was made to fail.
    pub(crate) breaks: bool,
    /// The engine is being closed.
    pub(crate) closing: bool,
    /// So many openings are cut short.
    pub(crate) cut_openings: u64,
    turns: u64,
}

impl Faults {
    pub(crate) fn plan(random: &mut Random) -> Faults {
        let count = FAULTS.0 + random.below(FAULTS.1 - FAULTS.0 + 1);
        let mut planned: Vec<(u64, Kind)> = (0..count)
            .map(|_| (5 + random.below(CALLS - 10), KINDS[random.below(KINDS.len() as u64) as usize]))
            .collect();
        planned.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let counters = Counters::default();
        Faults {
            planned,
            counters,
            full_until: None,
            noticed_by: 0,
            power_goes: false,
            breaks: false,
            closing: false,
            cut_openings: 0,
            turns: 0,
        }
    }

    pub(crate) fn touch_the_clock(&self) -> bool {
        let clock = [Kind::ClockForward, Kind::ClockBack, Kind::ClockStall];
        self.planned.iter().any(|(_, kind)| clock.contains(kind))
    }

    pub(crate) fn is_due(&self, calls: u64) -> bool {
        self.planned.last().is_some_and(|(at, _)| *at <= calls)
    }

    /// Whether some are to come.
    pub(crate) fn left(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Whether something that is broken explains an error.
    pub(crate) fn explain(&self, error: &Error) -> bool {
        match error.kind() {
            // The engine notices free space the next time that it asks for some.
            ErrorKind::Full => self.full_until.is_some() || self.turns < self.noticed_by,
            ErrorKind::Unavailable => self.breaks || self.power_goes || self.full_until.is_some(),
            ErrorKind::Poisoned => self.breaks || self.power_goes,
            ErrorKind::Closed => self.closing,
            _ => false,
        }
    }

    /// Nothing is broken from now on.
    pub(crate) fn over(&mut self) {
        self.planned.clear();
        (self.full_until, self.power_goes, self.breaks, self.cut_openings) = (None, false, false, 0);
    }
}

/// Lets the fault that is due happen.
pub(crate) fn strike(run: &mut Run) {
    let Some((_, kind)) = run.faults.planned.pop() else { return };
    run.trace.note(format_args!("{:?} fault {kind:?}", run.env.elapsed()));
    let seed = run.faults_random();
    let disk = run.folder.disk.clone();
    match kind {
        Kind::Kill => run.crash_counted(Loss::Nothing, |counters| counters.kills += 1),
        Kind::Close => run.close(),
        Kind::PowerCut => run.crash_counted(Loss::All, |counters| counters.power_cuts += 1),
        Kind::TornPowerCut => {
            run.crash_counted(Loss::Random(seed), |counters| counters.torn_power_cuts += 1);
        }
        Kind::PowerCutAtStep => {
            disk.stop_at(disk.step_count() + 1 + seed % 6);
            run.faults.power_goes = true;
        }
        Kind::PowerCutInRecovery => {
            run.faults.cut_openings = 1 + seed % 3;
            run.crash(Loss::Random(seed));
        }
        Kind::FailWrite => {
            disk.inject(Fault::FailWrite(disk.calls().writes + 1 + seed % 3));
            run.faults.breaks = true;
        }
        Kind::FailSync => {
            disk.inject(Fault::FailSync(disk.calls().syncs + 1 + seed % 3));
            run.faults.breaks = true;
        }
        Kind::ShortWrite => {
            let next = disk.calls().writes + 1;
            disk.inject(Fault::InterruptWrite(next));
            disk.inject(Fault::ShortWrite(next + 1, (seed % 5_000) as usize));
            run.faults.counters.short_writes += 1;
        }
        Kind::DiskFull => {
            disk.limit_space(Some(disk.used() + seed % 4_096));
            run.faults.full_until = Some(run.faults.turns + 60 + seed % 200);
            run.workload.large = true;
            run.faults.counters.full_disks += 1;
        }
        Kind::ClockForward | Kind::ClockBack => {
            // What is on its way to the engine has told its times by the old clock.
            run.run_some(1_000);
            run.env.step_wall(if kind == Kind::ClockBack { -HOUR } else { HOUR });
            run.faults.counters.clock_steps += 1;
        }
        Kind::ClockStall => {
            run.env.stall_wall();
            run.faults.counters.clock_stalls += 1;
        }
        Kind::SecondOpening => run.open_twice(),
        Kind::FlipUnsynced => {
            // At the second step from now a group is written, mostly, and not synced.
            disk.stop_at(disk.step_count() + 2);
            run.folder.flip = Some(seed);
            run.faults.power_goes = true;
        }
    }
}

/// Ends what does not last, and opens the folder again where its process can't go on.
pub(crate) fn look_after(run: &mut Run) {
    run.faults.turns += 1;
    if run.faults.full_until.is_some_and(|until| run.faults.turns >= until) {
        run.folder.disk.limit_space(None);
        run.faults.full_until = None;
        run.faults.noticed_by = run.faults.turns + NOTICED_WITHIN_TURNS;
        run.workload.large = false;
    }
    if run.faults.power_goes && run.folder.disk.is_off() {
        run.faults.power_goes = false;
        let loss = Loss::Random(run.faults_random());
        run.crash_counted(loss, |counters| counters.power_cuts_at_step += 1);
        run.faults.counters.flips += std::mem::take(&mut run.folder.flipped);
    }
    if run.faults.breaks && !run.folder.health().writable {
        run.poisoned();
    }
}

impl Run {
    fn faults_random(&mut self) -> u64 {
        self.workload.random.number()
    }

    fn crash_counted(&mut self, loss: Loss, count: fn(&mut Counters)) {
        count(&mut self.faults.counters);
        self.crash(loss);
    }

    /// A write or sync failed: it shows, nothing is written any more, reading goes on; reopening mends it.
    fn poisoned(&mut self) {
        let failed = self.folder.disk.calls();
        let health = self.folder.health();
        if health.problems.is_empty() || !health.readable {
            self.surprise(format!("a poisoned engine shows {health:?}"));
        }
        self.run_some(500);
        let engine = self.folder.engine();
        let counted = self.complete(async move { engine.stats(Vec::new()).await });
        if !matches!(counted, Some(Ok(_))) {
            self.surprise(format!("a poisoned engine can't be read: {counted:?}"));
        }
        let engine = self.folder.engine();
        let key = super::queues::record_key(0);
        let put = onward_core::Op::PutRecord {
            key,
            value: vec![1].into(),
            expect: onward_core::RecordExpect::Any,
            ttl: None,
        };
        let prepared = engine.prepare(vec![put]).expect("a plain write");
        let written = self.complete(async move { engine.commit(prepared).await });
        if !matches!(&written, Some(Err(error)) if error.kind() == ErrorKind::Poisoned) {
            self.surprise(format!("a poisoned engine answers a write with {written:?}"));
        }
        if self.folder.disk.calls().syncs > failed.syncs {
            self.surprise("a failed log was synced again".to_owned());
        }
        self.faults.breaks = false;
        let syncs_failed = health.problems.iter().any(|problem| problem.what.contains("sync"));
        let counters = &mut self.faults.counters;
        if syncs_failed {
            counters.failed_syncs += 1
        } else {
            counters.failed_writes += 1
        }
        self.crash(Loss::Nothing);
    }

    /// Closes in good order and opens again.
    fn close(&mut self) {
        self.faults.counters.closes += 1;
        self.faults.closing = true;
        let engine = self.folder.engine();
        let closed = self.complete(async move { engine.close(Duration::from_secs(5)).await });
        if !matches!(closed, Some(Ok(()))) && !self.faults.breaks && !self.faults.power_goes {
            self.surprise(format!("closing answers {closed:?}"));
        }
        self.crash(Loss::Nothing);
        self.faults.closing = false;
    }

    /// Somebody else opens the folder: refused, without harm.
    fn open_twice(&mut self) {
        if self.folder.disk.is_off() {
            return;
        }
        self.faults.counters.second_openings += 1;
        let before = self.folder.disk.step_count();
        match self.folder.open_again() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => self.surprise(format!("a second opening answers {other:?}")),
        }
        if self.folder.disk.step_count() > before {
            self.surprise("a second opening changed the folder".to_owned());
        }
    }
}
