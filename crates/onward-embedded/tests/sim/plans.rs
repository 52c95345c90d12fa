//! The schedules of every run.

use std::time::Duration;

use onward_core::{CatchUp, Env, Message, Overlap, SCHEDULE_BACKFILL_MAX, Schedule, ScheduleWhen};
use onward_sim::SimEnv;
use onward_sim::history::{Planned, content_mark};

use super::parts::Part;
use super::queues::inlet;
use super::topics::name;
use super::workload::Workload;

/// Where the messages of all schedules go.
pub(crate) const TICKS: &str = "ticks";
/// One whose every tick gives a message, and one that leaves out what it missed.
const SCHEDULES: [&str; 2] = ["every", "latest"];
/// After the beginning of a run.
const FIRST: Duration = Duration::from_secs(2);

fn every(schedule: &str) -> Duration {
    Duration::from_secs(if schedule == "every" { 20 } else { 7 })
}

/// What puts one of the schedules, with what the checker must know of it.
fn put(schedule: &str, env: &SimEnv) -> Part {
    let template = Message::builder("sim.tick").json(&schedule).build(env).expect("a small message");
    let (first, first_at) = (env.now().plus(FIRST), env.elapsed() + FIRST);
    let planned = Planned {
        name: name(schedule),
        inlet: inlet(TICKS),
        every: every(schedule),
        first,
        first_at,
        content: content_mark(&template),
        complete: schedule == "every",
    };
    let catch_up =
        if planned.complete { CatchUp::Backfill(SCHEDULE_BACKFILL_MAX) } else { CatchUp::Coalesce };
    let when = ScheduleWhen::Every { every_ms: every(schedule).as_millis() as u64, first };
    let (queue, overlap, until) = (name(TICKS), Overlap::Allow, None);
    let schedule = Schedule { queue, template, when, catch_up, overlap, until };
    Part::Plan {
        name: planned.name.clone(),
        schedule: Some(Box::new(schedule)),
        planned: Some(planned.into()),
    }
}

/// What puts all of them.
pub(crate) fn put_all(env: &SimEnv) -> Vec<Part> {
    SCHEDULES.iter().map(|schedule| put(schedule, env)).collect()
}

/// What removes all of them, so that a run comes to an end.
pub(crate) fn remove_all() -> Vec<Part> {
    SCHEDULES.iter().map(|schedule| remove(schedule)).collect()
}

fn remove(schedule: &str) -> Part {
    Part::Plan { name: name(schedule), schedule: None, planned: None }
}

impl Workload {
    /// Removes the one of which nothing is said about missed ticks, or puts it again as it was.
    pub(super) fn change_plan(&mut self) -> Part {
        let latest = self
            .plans
            .iter()
            .find(|plan| matches!(plan, Part::Plan { name, .. } if *name == super::topics::name("latest")));
        match latest {
            Some(Part::Plan { name, schedule, .. }) if !self.random.once_in(3) => {
                Part::Plan { name: name.clone(), schedule: schedule.clone(), planned: None }
            }
            _ => remove("latest"),
        }
    }
}
