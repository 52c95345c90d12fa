//! Schedules: what is enqueued when, by the clock of a time zone.

use crate::{Message, Name, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Enqueues a message at each of its ticks, exactly one per nominal tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The queue.
    pub queue: Name,
    /// The message; its id is derived from the schedule's name and the nominal tick.
    pub template: Message,
    /// When.
    pub when: ScheduleWhen,
    /// What happens to ticks that were missed.
    pub catch_up: CatchUp,
    /// What happens when the last one is unfinished.
    pub overlap: Overlap,
    /// No tick after this.
    pub until: Option<Timestamp>,
}

/// The ticks of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleWhen {
    /// A cron line in a time zone.
    Cron {
        /// Five or six fields.
        line: Arc<str>,
        /// IANA name, as in `Europe/Zurich`.
        zone: Arc<str>,
    },
    /// Every so many milliseconds from a first tick.
    Every {
        /// The span.
        every_ms: u64,
        /// The first tick.
        first: Timestamp,
    },
}

/// What happens to ticks that were missed while nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    Skip,
    /// One stands for all.
    Coalesce,
    /// Each of the latest so many is made up for.
    Backfill(u32),
}

/// What happens at a tick when the last one's message is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is enqueued all the same.
    Allow,
    /// The tick is left out.
    Skip,
}
