//! Messages of one order key: one at a time, in arrival order.

use std::collections::BTreeMap;

/// One order key of an inlet that keeps order by key.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Unfinished messages by sequence, the leased one among them; dead letters are not.
    pub(crate) members: BTreeMap<u64, u32>,
    /// Which of them is handed out now.
    pub(crate) leased: Option<u64>,
    /// Which of them is ready to be handed out.
    pub(crate) queued: Option<u64>,
    /// Dead letters of the key, by sequence: while there are any, the key is stuck.
    pub(crate) dead: BTreeMap<u64, u32>,
}

impl Chain {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.dead.is_empty()
    }

    pub(crate) fn is_stuck(&self) -> bool {
        !self.dead.is_empty()
    }

    /// The member that may be handed out next, whatever it is waiting for.
    pub(crate) fn head(&self) -> Option<u32> {
        if self.leased.is_some() || self.is_stuck() {
            return None;
        }
        self.members.values().next().copied()
    }
}
