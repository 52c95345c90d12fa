//! Schedules of the model: every due tick is walked over, one by one.

use super::{Model, Now, Place};
use onward_core::{
    CatchUp, Inlet, Name, Overlap, Result, SCHEDULE_LATE_SECS_MAX, Schedule, ScheduleView, Timestamp, tick_id,
};
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Scheduled {
    name: Name,
    schedule: Schedule,
    since: Timestamp,
    decided: Timestamp,
    last: Option<Timestamp>,
    fired: u64,
    missed: u64,
    overlapped: u64,
}

impl Model {
    /// The wall clock, but at half speed instead of back.
    fn schedule_time(&mut self, now: Now) -> Timestamp {
        let (last, at) = self.schedule_clock.unwrap_or((now.wall, now.monotonic));
        let slowly = last.plus(now.monotonic.saturating_sub(at) / 2);
        let time = now.wall.max(slowly);
        self.schedule_clock = Some((time, now.monotonic));
        time
    }

    pub(crate) fn put_schedule(&mut self, name: &Name, schedule: Option<&Schedule>, now: Now) -> Result<()> {
        let Some(schedule) = schedule else {
            self.schedules.retain(|s| s.name != *name);
            return Ok(());
        };
        let time = self.schedule_time(now);
        self.declare_for(&schedule.queue);
        let old = self.schedules.iter().position(|s| s.name == *name);
        if old.is_some_and(|at| self.schedules[at].schedule == *schedule) {
            return Ok(());
        }
        let just_before = Timestamp::from_micros(time.as_micros() - 1);
        let old = old.map(|at| self.schedules.remove(at));
        let last = old.as_ref().and_then(|old| old.last);
        let since = last.map_or(just_before, |last| last.max(just_before));
        self.schedules.push(Scheduled {
            name: name.clone(),
            schedule: schedule.clone(),
            since,
            decided: since,
            last,
            fired: old.as_ref().map_or(0, |old| old.fired),
            missed: old.as_ref().map_or(0, |old| old.missed),
            overlapped: old.as_ref().map_or(0, |old| old.overlapped),
        });
        Ok(())
    }

    fn declare_for(&mut self, queue: &Name) {
        let inlet = Inlet::Queue(queue.clone());
        if self.queue(&inlet).is_err() {
            self.queues.push(super::Queue::new(inlet, onward_core::InletConfig::default()));
        }
    }

    /// Fires what is due.
    pub(crate) fn tick_schedules(&mut self, now: Now) {
        if self.schedules.is_empty() {
            return;
        }
        let time = self.schedule_time(now);
        for at in 0..self.schedules.len() {
            let entry = self.schedules[at].clone();
            let mut due = Vec::new();
            let mut after = entry.decided;
            while let Ok(Some(tick)) = entry.schedule.next_after(after)
                && tick <= time
            {
                due.push(tick);
                after = tick;
            }
            self.fire(at, &due, time, now);
        }
    }

    fn fire(&mut self, at: usize, due: &[Timestamp], time: Timestamp, now: Now) {
        let Some(latest) = due.last() else { return };
        let in_time = time.since(*latest) <= Duration::from_secs(SCHEDULE_LATE_SECS_MAX);
        let schedule = self.schedules[at].schedule.clone();
        let most = match schedule.catch_up {
            CatchUp::Skip => usize::from(in_time),
            CatchUp::Coalesce => 1,
            CatchUp::Backfill(most) => most as usize + usize::from(in_time),
        };
        let left_out = due.len().saturating_sub(most);
        for tick in &due[left_out..] {
            if schedule.overlap == Overlap::Skip && self.is_running(at) {
                self.schedules[at].overlapped += 1;
                continue;
            }
            let message = schedule.message(&self.schedules[at].name, *tick);
            if self.enqueue(&Inlet::Queue(schedule.queue.clone()), &message, now).is_err() {
                return;
            }
            let entry = &mut self.schedules[at];
            (entry.last, entry.decided) = (Some(*tick), *tick);
            entry.fired += 1;
        }
        self.schedules[at].missed += left_out as u64;
        self.schedules[at].decided = time;
    }

    /// Whether the last tick's message is unfinished.
    fn is_running(&mut self, at: usize) -> bool {
        let entry = &self.schedules[at];
        let Some(last) = entry.last else { return false };
        let (id, inlet) = (tick_id(&entry.name, last), Inlet::Queue(entry.schedule.queue.clone()));
        let Ok(queue) = self.queue(&inlet) else { return false };
        let unfinished = |item: &super::Item| matches!(item.place, Place::Here | Place::Leased(_));
        queue.items.iter().any(|item| item.message.id == id && unfinished(item))
    }

    pub(crate) fn schedule_views(&self) -> Vec<ScheduleView> {
        let mut views: Vec<ScheduleView> = self.schedules.iter().map(Scheduled::view).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }
}

impl Scheduled {
    fn view(&self) -> ScheduleView {
        ScheduleView {
            name: self.name.clone(),
            schedule: self.schedule.clone(),
            since: self.since,
            next: self.schedule.next_after(self.decided).unwrap_or(None),
            last: self.last,
            last_message: self.last.map(|last| tick_id(&self.name, last)),
            fired: self.fired,
            missed: self.missed,
            overlapped: self.overlapped,
            problem: None,
        }
    }
}
