//! How often messages of unknown types were left to others, by message; bounded.

use onward_core::MessageId;
use std::collections::{HashMap, VecDeque};

/// Most messages that are remembered; of more, the oldest are forgotten and begin anew.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Unknown {
    releases: HashMap<MessageId, u32>,
    order: VecDeque<MessageId>,
}

impl Unknown {
    /// How often this message was seen before; counts this time.
    pub(crate) fn seen(&mut self, id: &MessageId) -> u32 {
        if let Some(times) = self.releases.get_mut(id) {
            *times += 1;
            return *times;
        }
        if self.order.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.releases.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.releases.insert(id.clone(), 0);
        0
    }
}
