//! What the store asks a state: where the bodies stand that are still needed.

use crate::{At, State, TopicId};

impl State {
    /// Where a message's body stands now: that of its latest edition, or the original's; `None` when nobody needs it.
    pub(crate) fn body_at(&self, at: At, edition: bool) -> Option<u64> {
        let queue = self.queue(at.inlet)?;
        let slot = queue.slot_of(at.message)?;
        match edition {
            true => queue.side(slot)?.edition,
            // A subscription's originals are its topic's.
            false => queue.reader.is_none().then(|| queue.original_body(slot)),
        }
    }

    /// Where the body of a topic's message stands now; `None` when nobody needs it.
    pub(crate) fn topic_body_at(&self, topic: TopicId, seq: u64) -> Option<u64> {
        self.topic(topic)?.body_at(seq)
    }

    /// Calls `each` with the place of every body that is needed.
    pub(crate) fn each_body(&self, each: &mut dyn FnMut(u64)) {
        self.topics().for_each(|topic| topic.each_body(&mut |_, position| each(position)));
        for queue in self.queues() {
            for slot in queue.slab.slots() {
                if queue.reader.is_none() {
                    each(queue.original_body(slot));
                }
                if let Some(edition) = queue.side(slot).and_then(|side| side.edition) {
                    each(edition);
                }
            }
        }
        self.long_lived(0..u64::MAX, each);
    }
}
