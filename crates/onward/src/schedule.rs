//! Schedules: messages by the clock. What ticks are, and what happens where clocks are changed, is told in
//! `docs/guide/schedules.md`.

pub use onward_core::{CatchUp, Overlap, Schedule, ScheduleView, ScheduleWhen, Ticks};

use crate::Onward;
use onward_core::{Op, Result};

impl Onward {
    /// Sets a schedule, new or with other content; the same content changes nothing.
    ///
    /// Guarantees: one message for each tick of this name, whatever is put, removed or crashes in between.
    ///
    /// # Errors
    /// `Invalid` for what can't be read or would never fire; `Full` beyond the bounds; `Unsupported` where the engine
    /// has no schedules.
    pub async fn put_schedule(&self, name: &str, schedule: Schedule) -> Result<()> {
        let op = Op::PutSchedule { name: name.parse()?, schedule: Some(Box::new(schedule)) };
        self.commit(vec![op]).await.map(drop)
    }

    /// Removes a schedule; one that does not exist is removed already. Messages that it gave stay.
    ///
    /// # Errors
    /// `Invalid` for the name; `Unsupported` where the engine has no schedules.
    pub async fn remove_schedule(&self, name: &str) -> Result<()> {
        self.commit(vec![Op::PutSchedule { name: name.parse()?, schedule: None }]).await.map(drop)
    }

    /// All schedules with their last and next ticks, by name.
    ///
    /// # Errors
    /// As [`onward_core::Engine::topology`].
    pub async fn schedules(&self) -> Result<Vec<ScheduleView>> {
        Ok(self.engine().topology().await?.schedules)
    }
}

/// The guide's examples are run by the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/schedules.md")]
mod guide {}
