//! What a worker did, told when it ends.

use super::decide::Count;

/// What a worker did between start and end: one count per delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Acknowledged.
    pub done: u64,
    /// Acknowledged without running the handler, since their key was processed before.
    pub skipped: u64,
    /// Failed: to be retried, or dead letters.
    pub failed: u64,
    /// Put back: by the handler, as a type for others, or not started when the worker stopped.
    pub released: u64,
    /// Put back while they ran, since the worker stopped; their attempt does not count.
    pub interrupted: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Cancelled unworked, since they were old and of low priority ([`Handling::shed_below`](super::Handling::shed_below)).
    pub shed: u64,
    /// Not settled by this worker: their lease was gone. They come again.
    pub lost: u64,
}

impl Report {
    pub(crate) fn add(&mut self, count: Count, times: u64) {
        let slot = match count {
            Count::Done => &mut self.done,
            Count::Skipped => &mut self.skipped,
            Count::Failed => &mut self.failed,
            Count::Released => &mut self.released,
            Count::Interrupted => &mut self.interrupted,
            Count::Cancelled => &mut self.cancelled,
            Count::Lost => &mut self.lost,
            Count::Shed => &mut self.shed,
        };
        *slot += times;
    }
}
