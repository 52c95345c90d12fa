//! Working inlets off: a worker that ends by itself once nothing is left.

use super::{Report, Worker, settle::answered};
use crate::Onward;
use onward_core::{Books, Inlet, Result};
use std::time::Duration;

/// How often a worker that works its inlets off looks whether they are empty.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// While all that is left is delayed: it may be cancelled meanwhile.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(10);

impl Worker {
    /// Runs until nothing is waiting, delayed or running in its inlets: for programs that work a queue off, and tests.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run_until_empty(self) -> Result<Report> {
        self.run_while(|books| books.waiting + books.delayed + books.leased > 0).await
    }

    /// Runs until nothing is waiting or running in its inlets; what is delayed stays for later.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run_until_none_due(self) -> Result<Report> {
        self.run_while(|books| books.waiting + books.leased > 0).await
    }

    async fn run_while(self, more: fn(&Books) -> bool) -> Result<Report> {
        let (onward, inlets) =
            (self.onward.clone(), self.options.routes.inlets.keys().cloned().collect::<Vec<_>>());
        self.run_until(async move {
            // An engine that can't be asked now is asked again; the worker itself ends when it never can.
            while let Some(wait) = left(&onward, &inlets, more).await.unwrap_or(Some(LOOK_EVERY)) {
                onward.env().sleep(wait).await;
            }
        })
        .await
    }
}

/// When to look again, if something is left.
async fn left(onward: &Onward, inlets: &[Inlet], more: fn(&Books) -> bool) -> Result<Option<Duration>> {
    let all = answered(onward, "asking for numbers", onward.engine().stats(inlets.to_vec())).await?;
    if !all.iter().any(|stats| more(&stats.books)) {
        return Ok(None);
    }
    let running = all.iter().any(|stats| stats.books.waiting + stats.books.leased > 0);
    let due = all.iter().filter_map(|stats| stats.next_due).min().filter(|_| !running);
    let until = due.map(|due| due.since(onward.env().now()));
    Ok(Some(until.unwrap_or_default().clamp(LOOK_EVERY, LOOK_EVERY_MAX)))
}
