//! Schedules over restarts: what was decided stays decided, and what was missed goes by the schedule's policy.

use super::desk::SECTOR;
use super::sim::{Sim, queue};
use onward_core::{
    CatchUp, Engine, Inlet, MessageState, Op, Overlap, Schedule, ScheduleView, ScheduleWhen, Timestamp,
};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, SimEnv};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn put(sim: &Sim, catch_up: CatchUp) {
    let Inlet::Queue(queue) = queue() else { unreachable!() };
    let now = onward_core::Env::now(&sim.env);
    let when = ScheduleWhen::Every { every_ms: 60_000, first: now.plus(MINUTE) };
    let template = sim.message("template", 10);
    let schedule = Schedule { queue, template, when, catch_up, overlap: Overlap::Allow, until: None };
    let name = "nightly".parse().unwrap();
    sim.commit(vec![Op::PutSchedule { name, schedule: Some(Box::new(schedule)) }]).unwrap();
}

fn shown(sim: &Sim) -> ScheduleView {
    sim.drive(sim.engine.topology()).unwrap().schedules.remove(0)
}

fn ticks(sim: &Sim) -> Vec<Timestamp> {
    sim.views(MessageState::Waiting).iter().map(|view| view.message.timestamp).collect()
}

#[test]
#[proves("T17", "LOG11", "LOG17")]
fn a_power_cut_at_a_tick_gives_it_once_whether_it_was_written_or_not() {
    for (synced, snapshot) in [(false, false), (true, false), (true, true)] {
        let (mut disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let mut sim = Sim::open(&disk, &env).unwrap();
        put(&sim, CatchUp::Skip);
        let first = shown(&sim).next.unwrap();
        let mut expected = Vec::new();
        for round in 0..5 {
            let second = Duration::from_secs(1);
            sim.env.advance(if round == 0 { MINUTE } else { MINUTE - second });
            sim.engine.inner().tick();
            if synced {
                sim.flush();
            }
            if snapshot {
                sim.engine.snapshot().unwrap();
            }
            let env = sim.env.clone();
            drop(sim);
            disk = disk.crash(Loss::All);
            sim = Sim::open(&disk, &env).unwrap();
            sim.pass(second);
            expected.push(first.plus(MINUTE * round));
            assert_eq!(ticks(&sim), expected, "synced {synced}, snapshot {snapshot}");
            assert_eq!(shown(&sim).fired, expected.len() as u64);
        }
    }
}

#[test]
#[proves("T19")]
fn ticks_missed_while_nothing_ran_go_by_the_policy_after_the_restart() {
    // Ten ticks and a half later the last one is in time, and nine were missed.
    for (catch_up, expected) in [(CatchUp::Skip, 1), (CatchUp::Coalesce, 1), (CatchUp::Backfill(4), 5)] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        put(&sim, catch_up);
        let env = sim.env.clone();
        drop(sim);
        env.advance(MINUTE * 10 + MINUTE / 2);
        let sim = Sim::open(&disk.crash(Loss::All), &env).unwrap();
        sim.pass(Duration::ZERO);
        assert_eq!(ticks(&sim).len(), expected, "{catch_up:?}");
        assert_eq!(shown(&sim).missed, 10 - expected as u64, "{catch_up:?}");
    }
}
