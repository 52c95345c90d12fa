//! Schedules: what is enqueued when, by the clock of a time zone.

use crate::{Error, Message, MessageId, Name, Result, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Enqueues a message at each of its ticks, exactly one per nominal tick.
///
/// A tick is the pair of the schedule's name and its nominal time. The message's id and unique key are derived from
/// it ([`Schedule::message`]), so whoever fires a tick, and however often, it is one message.
///
/// Limits: [`crate::SCHEDULES_MAX`] schedules in a store with [`crate::SCHEDULES_BYTES_MAX`] bytes together;
/// no two ticks less than [`crate::SCHEDULE_EVERY_MS_MIN`] apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The queue; declared with defaults on first use, unless the engine is strict.
    pub queue: Name,
    /// The message. Its id, timestamp and unique key are set anew for each tick.
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
    /// A cron line in a time zone. What it may say, and what happens when clocks are changed, stands at [`crate::Ticks`].
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

/// What happens to ticks that were missed: those that are due together with a later one, and the latest one when it
/// is more than [`crate::SCHEDULE_LATE_SECS_MAX`] seconds late.
///
/// Only ticks since the schedule was put are ever made up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    Skip,
    /// One stands for all: the latest.
    Coalesce,
    /// Each of the latest so many is made up for, oldest first; at most [`crate::SCHEDULE_BACKFILL_MAX`].
    Backfill(u32),
}

/// What happens at a tick when the last one's message is unfinished: waiting, delayed or leased.
///
/// Only this looks at the last message. A dead letter, a cancelled or a purged one is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is enqueued all the same.
    Allow,
    /// The tick is left out, and counted.
    Skip,
}

/// A schedule as it stands in a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    /// Its name.
    pub name: Name,
    /// What it does.
    pub schedule: Schedule,
    /// When it was put, or put with other content.
    pub since: Timestamp,
    /// The next tick; `None` when none is left.
    pub next: Option<Timestamp>,
    /// The last tick that gave a message.
    pub last: Option<Timestamp>,
    /// That message.
    pub last_message: Option<MessageId>,
    /// Ticks that gave a message.
    pub fired: u64,
    /// Missed ticks that were left out.
    pub missed: u64,
    /// Ticks that were left out since the last message was unfinished.
    pub overlapped: u64,
    /// Why a tick that is due can't be fired now, as for a full queue. It is tried again each second.
    pub problem: Option<String>,
}

/// The header that names the schedule of a message.
pub const SCHEDULE_HEADER: &str = "onward-schedule";
/// The header with the nominal time of a message's tick, in RFC 3339.
pub const TICK_HEADER: &str = "onward-tick";

/// The namespace of ids that are derived from ticks.
const TICK_NAMESPACE: uuid::Uuid = uuid::Uuid::from_u128(0x5d1c_9f4e_27ab_4c53_8e0f_6b8a_31d2_c774);

impl Schedule {
    /// Checks it, and that it has a tick after `now`.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self, now: Timestamp) -> Result<()> {
        let ticks = self.when.ticks()?;
        if let CatchUp::Backfill(most) = self.catch_up
            && !(1..=crate::SCHEDULE_BACKFILL_MAX).contains(&most)
        {
            return Err(Error::invalid(format!("backfills {most}"))
                .at("`catch_up`")
                .mend(format!("use 1 to {}, or `skip`", crate::SCHEDULE_BACKFILL_MAX)));
        }
        self.check_template()?;
        let next = ticks.after(now).filter(|next| self.until.is_none_or(|until| *next <= until));
        if next.is_none() {
            return Err(Error::invalid("no tick is left: it would never fire")
                .at("`when`")
                .mend("check the line, and `until`"));
        }
        Ok(())
    }

    /// What one message has and each tick's needs for its own.
    fn check_template(&self) -> Result<()> {
        let template = &self.template;
        let own = [
            (template.unique_key.is_some(), "unique_key", "each tick has a unique key of its own"),
            (template.dedup_key.is_some(), "dedup_key", "each tick has an id of its own"),
            (template.due.is_some(), "due", "a tick is due at its time"),
            (template.expiry.is_some(), "expiry", "a fixed expiry ends every later tick"),
        ];
        match own.iter().find(|(there, ..)| *there) {
            Some((_, field, why)) => {
                Err(Error::invalid(*why).at(format!("the template's `{field}`")).mend("leave it out"))
            }
            None => Ok(()),
        }
    }

    /// The next tick strictly after `time`, if one is left.
    ///
    /// # Errors
    /// As [`ScheduleWhen::ticks`].
    pub fn next_after(&self, time: Timestamp) -> Result<Option<Timestamp>> {
        let next = self.when.ticks()?.after(time);
        Ok(next.filter(|next| self.until.is_none_or(|until| *next <= until)))
    }

    /// The message of one tick of the schedule of this name: always the same for the same tick.
    ///
    /// Its timestamp is the nominal time, and two headers say which tick it is.
    pub fn message(&self, name: &Name, tick: Timestamp) -> Message {
        let mut message = self.template.clone();
        message.id = tick_id(name, tick);
        message.timestamp = tick;
        message.unique_key = Some(
            message.id.as_str().try_into().expect("a UUID is a valid key: short, without control characters"),
        );
        message.headers.insert(SCHEDULE_HEADER.into(), name.full().into());
        message.headers.insert(TICK_HEADER.into(), tick.to_string());
        message
    }
}

/// The id of a tick's message: a UUID of version 5, made of the schedule's name and the tick's nominal time.
pub fn tick_id(name: &Name, tick: Timestamp) -> MessageId {
    let text = format!("{}\n{}", name.full(), tick.as_micros());
    let uuid = uuid::Uuid::new_v5(&TICK_NAMESPACE, text.as_bytes());
    MessageId::try_from(uuid.hyphenated().to_string()).expect("a UUID is a valid id")
}
