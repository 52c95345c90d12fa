//! Letting a fault happen, and opening the folder again where its process can't go on.

use std::time::Duration;

use onward_core::{Engine, ErrorKind};
use onward_sim::{Fault, Loss};

use super::counters::Counters;
use super::faults::{CARE_STEPS, HOUR, Kind, NOTICED_WITHIN_TURNS};
use super::run::Run;

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
            // One that takes nothing is a failed one.
            disk.inject(Fault::ShortWrite(next + 1, 1 + (seed % 5_000) as usize));
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
            run.note_the_clock();
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
        Kind::PowerCutInCare => run.faults.care_cut = Some(seed % CARE_STEPS),
        Kind::PowerCutInRelease => run.faults.release_cut = Some(seed % 3),
        Kind::PowerCutInForwarding => run.faults.forwarding_cut = Some(seed % 3),
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
        let forwarding = std::mem::take(&mut run.faults.forwarding);
        run.crash_counted(loss, |counters| match forwarding {
            true => counters.power_cuts_in_forwarding += 1,
            false => counters.power_cuts_at_step += 1,
        });
        run.faults.counters.flips += std::mem::take(&mut run.folder.flipped);
    }
    if run.faults.breaks && !run.folder.health().writable {
        run.poisoned();
    }
}

impl Run {
    /// The power went within the folder's care: at which of its works, what was planned tells.
    pub(super) fn cut_in_care(&mut self) {
        let in_release = self.faults.care_cut.take().is_none();
        if in_release {
            self.faults.release_cut = None;
        }
        let loss = Loss::Random(self.faults_random());
        self.crash_counted(loss, |counters| match in_release {
            true => counters.power_cuts_in_release += 1,
            false => counters.power_cuts_in_care += 1,
        });
    }

    fn faults_random(&mut self) -> u64 {
        self.workload.random.number()
    }

    fn crash_counted(&mut self, loss: Loss, count: impl FnOnce(&mut Counters)) {
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
