//! Planning: from an operation and the state to facts, without changing anything.

mod append;
mod append_repeat;
mod bulk;
mod cancel;
mod dead;
mod draft;
mod draw;
mod enqueue;
mod held;
mod lease;
mod limits;
mod process;
mod publish;
mod record;
mod schedule;
mod seek;
mod settle;
mod suspect;
mod tick;
mod topics;
mod topology;

pub use bulk::BULK_STEP_MAX;
pub(crate) use draft::{Answer, Draft};
pub(crate) use draw::{Drawing, draw, may_draw_more};
pub(crate) use held::{deliveries_of, extend, missing, refuse_missing};
pub(crate) use lease::{LeasePlan, Picked, plan as lease, put_back};
pub(crate) use process::release_all;
pub use record::{AUDIT_DAYS, AUDIT_MAX};
pub use schedule::TICK_STEP_MAX;
pub(crate) use schedule::{fire as fire_schedules, revise as revise_schedules};
pub(crate) use tick::{next as next_tick, next_of, plan as tick, queue_is_overdue};
pub(crate) use topology::{declare, declare_default};

use crate::{Marks, State, Stored, engine::ScheduleClock, marks::Marker};
use hashbrown::{HashMap, HashSet};
use onward_core::{Durability, Error, Guarded, Inlet, Message, Name, Op, Timestamp};
use std::sync::Arc;

/// An operation made ready for planning: what can be computed without the state is computed.
#[derive(Debug)]
pub(crate) enum Work {
    Enqueue { inlet: Inlet, message: Arc<Message>, marks: Marks },
    Publish { topic: Name, message: Arc<Message>, marks: Marks },
    Append(Box<append::Append>),
    Other(Box<Op>),
}

impl Work {
    fn inlet(&self) -> Option<&Inlet> {
        match self {
            Self::Enqueue { inlet, .. } => Some(inlet),
            _ => None,
        }
    }

    fn marks(&self) -> Option<&Marks> {
        match self {
            Self::Enqueue { marks, .. } => Some(marks),
            _ => None,
        }
    }

    pub(crate) fn new(op: Op, marker: &Marker) -> Self {
        match op {
            Op::Enqueue { queue, message } => {
                let marks = marker.message(&message);
                Self::Enqueue { inlet: Inlet::Queue(queue), message: Arc::new(*message), marks }
            }
            Op::Publish { topic, message } => {
                let marks = marker.message(&message);
                Self::Publish { topic, message: Arc::new(*message), marks }
            }
            Op::Append { stream, events, expected, condition } => {
                Self::Append(Box::new(append::Append::new(stream, events, expected, condition, marker)))
            }
            other => Self::Other(Box::new(other)),
        }
    }

    /// Its operation's name in messages to people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Enqueue { .. } => "enqueue",
            Self::Publish { .. } => "publish",
            Self::Append(_) => "append",
            Self::Other(op) => op.name(),
        }
    }
}

/// What planning knows beside the state.
pub(crate) struct Context<'a> {
    pub(crate) now: Timestamp,
    /// The clock of schedules.
    pub(crate) scheduled: &'a ScheduleClock,
    /// The engine's clock less the wall clock, in microseconds.
    pub(crate) skew_us: i64,
    /// Only what a fact before this position made ready may be handed out.
    pub(crate) visible: u64,
    pub(crate) strict: bool,
    pub(crate) durability: Durability,
    pub(crate) records_bytes_max: u64,
    pub(crate) random: &'a mut dyn FnMut() -> u64,
    pub(crate) marker: Marker,
    pub(crate) actor: Option<&'a str>,
    /// Bodies that were read because planning asked for them, by position.
    pub(crate) bodies: &'a HashMap<u64, Stored>,
    /// Of bulk operations that select by what only bodies tell: the sequences that match, by the operation's place.
    pub(crate) matches: &'a HashMap<usize, HashSet<u64>>,
}

/// Why nothing was planned.
#[derive(Debug)]
pub(crate) enum Refusal {
    Error(Error),
    /// Read the body at this position, then plan again.
    NeedsBody(u64),
    /// Read the bodies at these positions, then plan again.
    NeedsBodies(Vec<u64>),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(crate) type Planned = Result<Answer, Refusal>;

/// Plans one operation of a commit; later ones see it through the draft.
/// Before many messages are planned one by one: see [`Queue::fetch`](crate::state::Queue::fetch).
pub(crate) fn fetch(state: &State, works: &[Work]) {
    const FEW: usize = 8;
    if works.len() < FEW {
        return;
    }
    for run in works.chunk_by(|one, next| one.inlet().is_some() && one.inlet() == next.inlet()) {
        let queue = run[0].inlet().and_then(|inlet| state.find(inlet));
        if let Some(queue) = queue {
            queue.fetch(run.iter().filter_map(Work::marks));
        }
    }
}

pub(crate) fn work(
    state: &State,
    draft: &mut Draft,
    work: &Work,
    at: usize,
    ctx: &mut Context<'_>,
) -> Planned {
    match work {
        Work::Enqueue { inlet, message, marks } => enqueue::plan(state, draft, inlet, message, marks, ctx),
        Work::Publish { topic, message, marks } => publish::plan(state, draft, topic, message, marks, ctx),
        Work::Append(append) => append::plan(state, draft, append, ctx),
        Work::Other(op) => other(state, draft, op, at, ctx),
    }
}

fn other(state: &State, draft: &mut Draft, op: &Op, at: usize, ctx: &mut Context<'_>) -> Planned {
    match op {
        Op::Settle { token, outcome } => settle::plan(state, draft, token, outcome, ctx),
        Op::Progress { token, detail } => settle::progress(state, draft, token, detail, ctx),
        Op::Guard(Guarded::Lease { token }) => settle::guard(state, draft, token, ctx),
        Op::EndProcess { process, died } => process::plan(state, draft, process, *died, ctx),
        Op::Cancel { inlet, id } => cancel::plan(state, draft, inlet, id, ctx),
        Op::Reschedule { inlet, id, due } => cancel::reschedule(state, draft, inlet, id, *due, ctx),
        Op::PutRecord { key, value, expect, ttl } => {
            record::put(state, draft, key, value, *expect, *ttl, ctx)
        }
        Op::DeleteRecord { key, expect } => record::delete(state, draft, key, *expect, ctx),
        Op::Guard(Guarded::Record { key, expect }) => record::guard(state, draft, key, *expect, ctx),
        Op::PutSchedule { name, schedule } => schedule::put(state, draft, name, schedule.as_deref(), ctx),
        Op::Guard(Guarded::Stream { stream, expected }) => append::guard(state, draft, stream, *expected),
        Op::Truncate { stream, before } => append::truncate(state, draft, stream, *before),
        Op::Pause { inlet } => topology::pause(state, draft, inlet, true, ctx),
        Op::Resume { inlet } => topology::pause(state, draft, inlet, false, ctx),
        Op::Seek { inlet, to, mode } => seek::plan(state, draft, inlet, *to, *mode, ctx),
        Op::EditDead { inlet, id, edit } => dead::edit(state, draft, inlet, id, edit, ctx),
        Op::Redrive { inlet, selection, spacing, bulk, dry_run } => {
            let ask = bulk::Bulk { inlet, selection, id: *bulk, dry_run: *dry_run, at };
            bulk::redrive(state, draft, &ask, *spacing, ctx)
        }
        Op::Purge { inlet, what, selection, bulk, dry_run } => {
            let ask = bulk::Bulk { inlet, selection, id: *bulk, dry_run: *dry_run, at };
            bulk::purge(state, draft, &ask, *what, ctx)
        }
        Op::Enqueue { .. } | Op::Publish { .. } | Op::Append { .. } => {
            Err(Error::unsupported(format!("{} is not in this release", op.name())).into())
        }
    }
}

/// The inlet does not exist.
pub(crate) fn no_inlet(inlet: &Inlet) -> Error {
    let what = format!("no such {}", topology::kind_of(inlet));
    Error::not_found(what).at(format!("`{inlet}`")).mend("declare it, or correct the name")
}

/// The topic does not exist.
pub(crate) fn no_topic(name: &Name) -> Error {
    Error::not_found("no such topic").at(format!("`{name}`")).mend("declare it, or correct the name")
}
