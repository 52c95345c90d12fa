//! The state: everything that is known of queues and records, without bodies of messages. Pure and synchronous.

use crate::{At, Fact};
use onward_core::Timestamp;
use serde::{Deserialize, Serialize};

/// Everything that is known, as the facts so far made it.
#[derive(Debug, Default)]
pub struct State {
    end: u64,
    time: Timestamp,
    freed: Vec<u64>,
}

/// A message body that is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// Whose.
    pub at: At,
    /// It is the latest edition's body of an edited message; otherwise the original's.
    pub edition: bool,
    /// Where it stands.
    pub position: u64,
}

/// One piece of a snapshot. All pieces of a state, in order, make the same state again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Piece {
    /// How far the facts went that the snapshot holds.
    Head {
        /// The position of the last fact applied.
        end: u64,
        /// The time of the last fact applied.
        time: Timestamp,
    },
}

impl State {
    /// The state before any fact.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one fact. Facts come in log order, each once; those at or before [`State::end`] change nothing.
    pub fn apply(&mut self, fact: &Fact, position: u64, time: Timestamp) {
        if position <= self.end {
            return;
        }
        self.end = position;
        self.time = self.time.max(time);
        let _ = fact;
    }

    /// The position of the last fact applied.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The latest time of any fact applied.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Bodies that nobody needs any more since the last call: to be passed to [`crate::Store::released`].
    pub fn take_freed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.freed)
    }

    /// Bodies that are still needed and stand before `position`: what a compaction must copy forward.
    pub fn bodies_before(&self, position: u64) -> Vec<Body> {
        let _ = position;
        Vec::new()
    }

    /// Calls `each` with every piece of a snapshot.
    pub fn pieces(&self, each: &mut dyn FnMut(Piece)) {
        each(Piece::Head { end: self.end, time: self.time });
    }

    /// Takes one piece of a snapshot into a new state; the pieces come in the order of [`State::pieces`].
    pub fn restore(&mut self, piece: Piece) {
        match piece {
            Piece::Head { end, time } => (self.end, self.time) = (end, time),
        }
    }
}
