//! What the store asks a state: where the bodies stand that are still needed.

use crate::{At, State};

impl State {
    /// Where a message's body stands now: that of its latest edition, or the original's; `None` when nobody needs it.
    pub(crate) fn body_at(&self, at: At, edition: bool) -> Option<u64> {
        let queue = self.queue(at.inlet)?;
        let slot = queue.slot_of(at.message)?;
        if edition { queue.side(slot)?.edition } else { Some(queue.original_body(slot)) }
    }

    /// Calls `each` with the place of every body that is needed.
    pub(crate) fn each_body(&self, each: &mut dyn FnMut(u64)) {
        for queue in self.queues() {
            for slot in queue.slab.slots() {
                each(queue.original_body(slot));
                if let Some(edition) = queue.side(slot).and_then(|side| side.edition) {
                    each(edition);
                }
            }
        }
    }
}
