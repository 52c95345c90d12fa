//! Waiting for a job, for a bounded time.

use super::{Job, Jobs, WAIT_MAX};
use onward_core::{MessageId, Result};
use std::time::Duration;

const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_MOST: Duration = Duration::from_millis(250);

impl Jobs<'_> {
    /// Waits until a job has ended, for at most `wait` (bounded by [`WAIT_MAX`]), and answers how it stands then.
    ///
    /// A job that has not ended is an unknown outcome, never a failure: look again by its id. `None` when it is not known.
    ///
    /// # Errors
    /// Those of [`Jobs::find`].
    ///
    /// # Cancel safety
    /// Nothing changes by waiting.
    pub async fn wait(&self, id: &MessageId, wait: Duration) -> Result<Option<Job>> {
        self.wait_while(id, wait, |job| !job.state.is_final()).await
    }

    /// Waits while `still` holds of the job; as [`Jobs::wait`] otherwise.
    ///
    /// # Errors
    /// Those of [`Jobs::find`].
    pub async fn wait_while(
        &self,
        id: &MessageId,
        wait: Duration,
        mut still: impl FnMut(&Job) -> bool,
    ) -> Result<Option<Job>> {
        let env = self.onward.env();
        let until = env.monotonic() + wait.min(WAIT_MAX);
        let mut look = LOOK_FIRST;
        loop {
            let found = self.find(id).await?;
            let left = until.saturating_sub(env.monotonic());
            match found {
                Some(job) if still(&job) && !left.is_zero() => {}
                found => return Ok(found),
            }
            env.sleep(look.min(left)).await;
            look = (look * 2).min(LOOK_MOST);
        }
    }
}
