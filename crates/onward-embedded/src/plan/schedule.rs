//! Schedules: putting them, and firing their ticks.

use super::{Answer, Context, Draft, Planned, Refusal, enqueue, record::audit, topology::declare_default};
use crate::{
    Fact, State,
    state::{ScheduleImage, Status, schedule_size},
};
use onward_core::{
    CatchUp, Error, Inlet, Name, Overlap, Receipt, Result, RetryHint, SCHEDULE_LATE_SECS_MAX,
    SCHEDULES_BYTES_MAX, SCHEDULES_MAX, Schedule, Ticks, Timestamp, tick_id,
};
use std::{sync::Arc, time::Duration};

/// Most ticks of one step of the clock; the next step follows at once.
pub const TICK_STEP_MAX: usize = 1_000;
/// Most bytes of the messages of one step.
const TICK_STEP_BYTES: usize = 4 << 20;
/// Missed ticks are counted up to so many at once.
const MISSED_COUNT_MAX: u64 = 1_000;

/// Plans putting or removing a schedule.
pub(super) fn put(
    state: &State,
    draft: &mut Draft,
    name: &Name,
    schedule: Option<&Schedule>,
    ctx: &mut Context<'_>,
) -> Planned {
    if !draft.schedules.insert(name.clone()) {
        return Err(Error::invalid("an earlier operation of this commit puts the same schedule")
            .at(format!("schedule `{name}`"))
            .into());
    }
    let before = state.schedules.get(name);
    match (schedule, before) {
        (None, None) => {}
        (None, Some(before)) => {
            draft.drain(Fact::ScheduleRemoved { name: name.clone() });
            let inlet = Inlet::Queue(before.schedule.queue.clone());
            audit(state, draft, "remove schedule", &inlet, name.full(), ctx);
        }
        (Some(schedule), Some(before)) if before.schedule == *schedule => {}
        (Some(schedule), before) => set(state, draft, name, schedule, before, ctx)?,
    }
    Ok(Answer::Ready(Receipt::Done))
}

fn set(
    state: &State,
    draft: &mut Draft,
    name: &Name,
    schedule: &Schedule,
    before: Option<&ScheduleImage>,
    ctx: &mut Context<'_>,
) -> Result<(), Refusal> {
    has_room(state, draft, name, schedule, before)?;
    let inlet = Inlet::Queue(schedule.queue.clone());
    if state.find(&inlet).is_none() {
        declare_default(state, draft, &inlet, ctx)?;
    }
    // A tick of this very moment is one; what an earlier definition has fired is not fired again.
    let now = Timestamp::from_micros(ctx.scheduled.now().as_micros().saturating_sub(1));
    let since = before.and_then(|before| before.last).map_or(now, |last| last.max(now));
    let next = schedule.next_after(since)?;
    draft.grow(Fact::ScheduleSet { name: name.clone(), schedule: Box::new(schedule.clone()), since, next });
    audit(state, draft, "put schedule", &inlet, name.full(), ctx);
    Ok(())
}

fn has_room(
    state: &State,
    draft: &mut Draft,
    name: &Name,
    schedule: &Schedule,
    before: Option<&ScheduleImage>,
) -> Result<()> {
    let gone = before.map_or(0, |before| schedule_size(name, &before.schedule));
    draft.schedules_bytes += schedule_size(name, schedule);
    let bytes = (state.schedules.bytes() + draft.schedules_bytes).saturating_sub(gone);
    let count = state.schedules.len() + draft.schedules.len() - usize::from(before.is_some());
    if count <= SCHEDULES_MAX && bytes <= SCHEDULES_BYTES_MAX {
        return Ok(());
    }
    Err(Error::full(format!(
        "there are {} schedules with {} bytes",
        state.schedules.len(),
        state.schedules.bytes()
    ))
    .at(format!("schedule `{name}`"))
    .retry(RetryHint::Never)
    .mend(format!("remove some: {SCHEDULES_MAX} with {SCHEDULES_BYTES_MAX} bytes is the most")))
}

/// What came of one step.
#[derive(Debug, Default)]
pub(crate) struct Fired {
    /// More is due at once.
    pub(crate) more: bool,
    /// Ticks that are due and can't be fired now, and why.
    pub(crate) held: Vec<(Name, Error)>,
}

/// Plans the ticks that are due at `now`: what they give, and which comes next, stands as facts in one unit.
pub(crate) fn fire(state: &State, draft: &mut Draft, now: Timestamp, ctx: &mut Context<'_>) -> Fired {
    let mut fired = Fired::default();
    let mut room = Room { ticks: TICK_STEP_MAX, bytes: TICK_STEP_BYTES };
    for entry in state.schedules.due(now) {
        if room.is_full() {
            fired.more = true;
            break;
        }
        match fire_one(state, draft, entry, now, &mut room, ctx) {
            Ok(more) => fired.more |= more,
            Err(error) => fired.held.push((entry.name.clone(), error)),
        }
    }
    fired
}

/// Plans anew what comes next where the rules of time say otherwise than when it was decided: a newer version may
/// know newer rules of a zone.
pub(crate) fn revise(state: &State, draft: &mut Draft) {
    for entry in state.schedules.each() {
        let Ok(next) = entry.schedule.next_after(entry.decided) else { continue };
        if next != entry.next {
            draft.drain(ticked(
                entry,
                Vec::new(),
                Outcome { decided: entry.decided, next, ..Outcome::default() },
            ));
        }
    }
}

/// What one step may still take.
struct Room {
    ticks: usize,
    bytes: usize,
}

impl Room {
    fn is_full(&self) -> bool {
        self.ticks == 0 || self.bytes == 0
    }

    fn take(&mut self, bytes: usize) {
        self.ticks = self.ticks.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// What was decided besides the messages.
#[derive(Debug, Default)]
struct Outcome {
    missed: u64,
    overlapped: u64,
    decided: Timestamp,
    next: Option<Timestamp>,
}

fn ticked(entry: &ScheduleImage, ticks: Vec<Timestamp>, outcome: Outcome) -> Fact {
    let Outcome { missed, overlapped, decided, next } = outcome;
    Fact::ScheduleTicked { name: entry.name.clone(), ticks, missed, overlapped, decided, next }
}

/// Plans one schedule's due ticks; answers whether some are left for the next step.
///
/// # Errors
/// What its queue refused; the ticks before are planned, the refused one stays due.
fn fire_one(
    state: &State,
    draft: &mut Draft,
    entry: &ScheduleImage,
    now: Timestamp,
    room: &mut Room,
    ctx: &mut Context<'_>,
) -> Result<bool> {
    let ticks = entry.schedule.when.ticks()?;
    let (chosen, missed) = choose(&ticks, entry, now);
    let mut outcome = Outcome { missed, decided: now, ..Outcome::default() };
    let (mut fired, mut ended) = (Vec::new(), Ok(false));
    let mut running = entry.schedule.overlap == Overlap::Skip && is_unfinished(state, entry, ctx);
    for tick in chosen {
        let decided_before = Timestamp::from_micros(tick.as_micros() - 1);
        if room.is_full() {
            (outcome.decided, ended) = (decided_before, Ok(true));
            break;
        }
        if running {
            outcome.overlapped += 1;
            continue;
        }
        if let Err(error) = enqueue_tick(state, draft, entry, tick, room, ctx) {
            (outcome.decided, ended) = (decided_before, Err(error));
            break;
        }
        running = entry.schedule.overlap == Overlap::Skip;
        fired.push(tick);
    }
    outcome.next = entry.schedule.next_after(outcome.decided)?;
    if ended.is_ok() || !fired.is_empty() || outcome.overlapped > 0 {
        draft.drain(ticked(entry, fired, outcome));
    }
    ended
}

/// The due ticks that give a message, oldest first, and how many are left out.
fn choose(ticks: &Ticks, entry: &ScheduleImage, now: Timestamp) -> (Vec<Timestamp>, u64) {
    let until = entry.schedule.until.map_or(now, |until| until.min(now));
    let Some(latest) = ticks.at_or_before(until).filter(|latest| *latest > entry.decided) else {
        return (Vec::new(), 0);
    };
    let in_time = now.since(latest) <= Duration::from_secs(SCHEDULE_LATE_SECS_MAX);
    let most = match entry.schedule.catch_up {
        CatchUp::Skip => usize::from(in_time),
        CatchUp::Coalesce => 1,
        CatchUp::Backfill(most) => most as usize + usize::from(in_time),
    };
    let chosen = ticks.latest(entry.decided, until, most);
    let due = ticks.count(entry.decided, until, MISSED_COUNT_MAX.max(chosen.len() as u64));
    let missed = due - chosen.len() as u64;
    (chosen, missed)
}

fn enqueue_tick(
    state: &State,
    draft: &mut Draft,
    entry: &ScheduleImage,
    tick: Timestamp,
    room: &mut Room,
    ctx: &mut Context<'_>,
) -> Result<()> {
    let message = Arc::new(entry.schedule.message(&entry.name, tick));
    let marks = ctx.marker.message(&message);
    let inlet = Inlet::Queue(entry.schedule.queue.clone());
    room.take(message.size());
    match enqueue::plan(state, draft, &inlet, &message, &marks, ctx) {
        Ok(_) => Ok(()),
        Err(Refusal::Error(error)) => Err(error),
        Err(Refusal::NeedsBody(_) | Refusal::NeedsBodies(_)) => {
            Err(Error::internal("a scheduled message asked for a body"))
        }
    }
}

/// Whether the last tick's message waits, is delayed or is worked on.
fn is_unfinished(state: &State, entry: &ScheduleImage, ctx: &Context<'_>) -> bool {
    let Some(last) = entry.last else { return false };
    let Some(queue) = state.find(&Inlet::Queue(entry.schedule.queue.clone())) else { return false };
    let slot = queue.slot_of_id(ctx.marker.id(&tick_id(&entry.name, last)));
    let unfinished = [Status::Waiting, Status::Delayed, Status::Leased, Status::Gone];
    slot.is_some_and(|slot| unfinished.contains(&queue.slab.get(slot).status))
}
