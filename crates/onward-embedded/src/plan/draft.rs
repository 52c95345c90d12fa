//! The draft of one commit: its facts, and what its later operations must see of the earlier ones.

use super::append::Appends;
use crate::{Class, Fact, InletId, Said, TopicId};
use hashbrown::{HashMap, HashSet};
use onward_core::{
    Accepted, Appended, BulkId, Durability, Error, Inlet, InletConfig, Key, MessageId, MessageState, Name,
    Position, Receipt, RecordKey, Timestamp,
};

/// A receipt, perhaps one that lacks the position of its fact.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Ready(Receipt),
    /// Accepted by the fact of that place.
    Accepted {
        fact: usize,
        id: MessageId,
        duplicate: bool,
        declared: bool,
    },
    /// Appended, the last event by the fact of that place.
    Appended {
        fact: usize,
        first_revision: u64,
        last_revision: u64,
        duplicate: bool,
    },
    /// Recorded by the fact of that place.
    Recorded {
        fact: usize,
    },
}

impl Answer {
    pub(crate) fn resolve(self, positions: &[u64], durability: Durability) -> Receipt {
        match self {
            Self::Ready(receipt) => receipt,
            Self::Accepted { fact, id, duplicate, declared } => {
                let position = positions.get(fact).copied().map(Position);
                Receipt::Accepted(Accepted { id, duplicate, declared, position, durability })
            }
            Self::Appended { fact, first_revision, last_revision, duplicate } => {
                let position = Position(positions.get(fact).copied().unwrap_or_default());
                Receipt::Appended(Appended { first_revision, last_revision, position, duplicate })
            }
            Self::Recorded { fact } => {
                Receipt::Recorded { revision: positions.get(fact).copied().unwrap_or_default() }
            }
        }
    }
}

/// A message that this commit accepted.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    pub(crate) fact: usize,
    pub(crate) fingerprint: u64,
    pub(crate) id: MessageId,
}

/// What this commit did to a message that was there before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Touch {
    Settled { said: Said, state: MessageState, due: Option<Timestamp> },
    Other,
}

/// What this commit adds to an inlet's load.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    pub(crate) depth: i64,
    pub(crate) bytes: i64,
}

/// Facts of one commit and what they mean for its later operations.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) facts: Vec<Fact>,
    pub(crate) drains_only: bool,
    pub(crate) declared: Vec<(Inlet, InletId, InletConfig)>,
    pub(crate) accepted: HashMap<(InletId, u64), Claimed>,
    pub(crate) ids: HashSet<(InletId, u64)>,
    pub(crate) unique: HashMap<(InletId, Key), Option<Claimed>>,
    pub(crate) load: HashMap<InletId, Load>,
    pub(crate) touched: HashMap<(InletId, u64), Touch>,
    pub(crate) records: HashMap<RecordKey, bool>,
    pub(crate) records_bytes: u64,
    pub(crate) bulks: Vec<BulkId>,
    pub(crate) duplicates: Vec<InletId>,
    pub(crate) audits: usize,
    pub(crate) schedules: HashSet<Name>,
    pub(crate) schedules_bytes: usize,
    /// Topics that this commit declares with defaults.
    pub(crate) topics: Vec<(Name, TopicId)>,
    pub(crate) published: HashMap<(TopicId, u64), Claimed>,
    /// Messages and bytes that this commit adds to a topic.
    pub(crate) topic_load: HashMap<TopicId, (u64, u64)>,
    /// Subscriptions that this commit moves.
    pub(crate) moved: HashSet<InletId>,
    pub(crate) appends: Appends,
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self { drains_only: true, ..Self::default() }
    }

    /// Makes it empty again, keeping its memory where that is small.
    pub(crate) fn clear(&mut self) {
        const KEPT_MAX: usize = 256;
        let largest = self.accepted.capacity().max(self.published.capacity());
        if self.facts.capacity() > KEPT_MAX || largest > KEPT_MAX {
            *self = Self::new();
            return;
        }
        self.facts.clear();
        self.drains_only = true;
        self.declared.clear();
        self.accepted.clear();
        self.ids.clear();
        self.unique.clear();
        self.load.clear();
        self.touched.clear();
        self.records.clear();
        self.records_bytes = 0;
        self.bulks.clear();
        self.duplicates.clear();
        self.audits = 0;
        self.schedules.clear();
        self.schedules_bytes = 0;
        self.topics.clear();
        self.published.clear();
        self.topic_load.clear();
        self.moved.clear();
        self.appends.clear();
    }

    /// Adds a fact that adds work or data.
    pub(crate) fn grow(&mut self, fact: Fact) -> usize {
        self.drains_only = false;
        self.facts.push(fact);
        self.facts.len() - 1
    }

    /// Adds a fact that ends or hands out work, or removes something.
    pub(crate) fn drain(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    pub(crate) fn class(&self) -> Class {
        if self.drains_only { Class::Drain } else { Class::Grow }
    }

    pub(crate) fn load(&self, inlet: InletId) -> Load {
        self.load.get(&inlet).copied().unwrap_or_default()
    }

    pub(crate) fn add_load(&mut self, inlet: InletId, depth: i64, bytes: i64) {
        let load = self.load.entry(inlet).or_default();
        load.depth += depth;
        load.bytes += bytes;
    }

    /// Marks a message as changed by this commit.
    ///
    /// # Errors
    /// `Invalid` when it was changed before: one commit changes a message once, so that its facts need no order.
    pub(crate) fn touch(&mut self, inlet: InletId, seq: u64, how: Touch) -> Result<(), Error> {
        if self.moved.contains(&inlet) {
            return Err(twice());
        }
        match self.touched.insert((inlet, seq), how) {
            None => Ok(()),
            Some(_) => Err(twice()),
        }
    }

    /// Refuses a bulk operation on an inlet whose messages this commit has changed already.
    pub(crate) fn must_be_untouched(&self, inlet: InletId) -> Result<(), Error> {
        let touched = self.touched.keys().any(|(id, _)| *id == inlet) || self.load.contains_key(&inlet);
        if touched { Err(twice()) } else { Ok(()) }
    }
}

/// One commit may change a message once.
pub(crate) fn twice() -> Error {
    Error::invalid("an earlier operation of this commit changes the same message")
        .mend("send the two in commits of their own")
}
