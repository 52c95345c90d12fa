//! Schedules as the facts made them: what stands, what was decided, which tick comes next.

use crate::Fact;
use onward_core::{Name, Schedule, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One schedule. The next tick is part of the state: it was decided once, by the rules of its time, and is read here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleImage {
    /// Its name.
    pub name: Name,
    /// What it does.
    pub schedule: Schedule,
    /// When it was put.
    pub since: Timestamp,
    /// Every tick up to here has its decision.
    pub decided: Timestamp,
    /// The next tick.
    pub next: Option<Timestamp>,
    /// The last tick that gave a message.
    pub last: Option<Timestamp>,
    /// Ticks that gave a message.
    pub fired: u64,
    /// Missed ones that were left out.
    pub missed: u64,
    /// Those left out since the last message was unfinished.
    pub overlapped: u64,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedules {
    by_name: BTreeMap<Name, ScheduleImage>,
    /// By next tick.
    due: BTreeSet<(Timestamp, Name)>,
    bytes: usize,
}

impl Schedules {
    pub(crate) fn get(&self, name: &Name) -> Option<&ScheduleImage> {
        self.by_name.get(name)
    }

    /// By name.
    pub(crate) fn each(&self) -> impl Iterator<Item = &ScheduleImage> {
        self.by_name.values()
    }

    /// Those whose next tick is not after `now`, the longest due first.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = &ScheduleImage> {
        let due = self.due.iter().take_while(move |(next, _)| *next <= now);
        due.filter_map(|(_, name)| self.by_name.get(name))
    }

    /// The first tick after `now`, of any of them.
    pub(crate) fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let mut due = self.due.iter().map(|(next, _)| *next);
        due.find(|next| *next > now)
    }

    /// The first tick that has no decision yet.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(next, _)| *next)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The latest decision of any of them.
    pub(crate) fn decided(&self) -> Option<Timestamp> {
        self.each().map(|entry| entry.decided).max()
    }

    pub(super) fn apply(&mut self, fact: &Fact) {
        match fact {
            Fact::ScheduleSet { name, schedule, since, next } => self.set(name, schedule, *since, *next),
            Fact::ScheduleRemoved { name } => drop(self.remove(name)),
            Fact::ScheduleTicked { name, ticks, missed, overlapped, decided, next } => {
                let Some(mut entry) = self.remove(name) else { return };
                (entry.decided, entry.next) = (*decided, *next);
                entry.last = ticks.last().copied().or(entry.last);
                entry.fired += ticks.len() as u64;
                entry.missed += missed;
                entry.overlapped += overlapped;
                self.insert(entry);
            }
            _ => {}
        }
    }

    /// A new definition keeps what the old one did.
    fn set(&mut self, name: &Name, schedule: &Schedule, since: Timestamp, next: Option<Timestamp>) {
        let (name, schedule) = (name.clone(), schedule.clone());
        let entry = match self.remove(&name) {
            Some(old) => ScheduleImage { schedule, since, decided: since, next, ..old },
            None => ScheduleImage {
                name,
                schedule,
                since,
                decided: since,
                next,
                last: None,
                fired: 0,
                missed: 0,
                overlapped: 0,
            },
        };
        self.insert(entry);
    }

    pub(super) fn insert(&mut self, entry: ScheduleImage) {
        self.bytes += size(&entry.name, &entry.schedule);
        self.due.extend(entry.next.map(|next| (next, entry.name.clone())));
        self.by_name.insert(entry.name.clone(), entry);
    }

    fn remove(&mut self, name: &Name) -> Option<ScheduleImage> {
        let entry = self.by_name.remove(name)?;
        self.bytes -= size(&entry.name, &entry.schedule);
        if let Some(next) = entry.next {
            self.due.remove(&(next, name.clone()));
        }
        Some(entry)
    }
}

/// What a schedule costs, in bytes.
pub(crate) fn size(name: &Name, schedule: &Schedule) -> usize {
    name.full().len() + schedule.template.size() + 256
}
