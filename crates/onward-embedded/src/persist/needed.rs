//! What the store asks a state: where the bodies stand that are still needed.

use crate::{At, State};

impl State {
    /// Where a message's body stands now: that of its latest edition, or the original's; `None` when nobody needs it.
    pub(crate) fn body_at(&self, at: At, edition: bool) -> Option<u64> {
        let queue = self.queue(at.inlet)?;
        let slot = queue.slot_of(at.message)?;
        if edition { queue.side(slot)?.edition } else { Some(queue.original_body(slot)) }
    }
}
