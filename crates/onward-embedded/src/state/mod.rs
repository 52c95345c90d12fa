//! The state: everything that is known of queues and records, without bodies of messages. Pure and synchronous.

mod apply;
mod boards;
mod chain;
mod dead;
mod dedup;
#[cfg(test)]
mod due_tests;
mod finish;
mod flow;
mod frozen;
mod image;
mod index;
mod kinds;
mod lane;
mod lease;
mod leases;
mod level;
mod line;
mod packed;
mod places;
mod queue;
mod rates;
mod reader;
mod ready;
mod recent;
mod records;
mod restore;
mod schedules;
mod shelf;
mod side;
mod slab;
mod spans;
mod streams;
mod streams_ids;
mod streams_image;
mod streams_read;
mod topic;
mod topic_image;
mod topics;

pub use dedup::Remembered;
pub use image::{LeaseImage, MessageImage, Piece, QueueImage};
pub use queue::{Counts, KEPT_BYTES_MAX, KEPT_MAX};
pub use recent::{BULKS_MAX, LeaseMark, SETTLED_MAX, SettledMark};
pub use schedules::ScheduleImage;
pub use side::Side;
pub use spans::SPANS_MAX;
pub use streams_ids::{EVENT_IDS_MAX, Found as EventFound};
pub use streams_image::{ListOf, StreamPiece};
pub use topic_image::{ReaderImage, ShelvedImage, TopicImage};

pub(crate) use lease::{HandOut, Lease};
pub(crate) use leases::Leases;
pub(crate) use queue::Queue;
pub(crate) use rates::Rates;
pub(crate) use reader::Reader;
pub(crate) use ready::{Ask, Turn};
pub(crate) use records::{Kept, Records, size as record_size};
pub(crate) use schedules::{Schedules, size as schedule_size};
pub(crate) use slab::{Queued, Status};
pub(crate) use streams::Stream;
pub(crate) use topic::Topic;

use crate::{At, Fact, InletId, TopicId};
use hashbrown::HashMap;
use onward_core::{Inlet, Name, ProcessId, RequestId, Timestamp};
use recent::{Bulks, Recent, Settlements};
use std::{collections::VecDeque, ops::Range};
use streams::Streams;

/// Everything that is known, as the facts so far made it.
#[derive(Debug)]
pub struct State {
    end: u64,
    time: Timestamp,
    pub(crate) secret: Option<[u64; 2]>,
    pub(crate) epoch: u32,
    queues: Vec<Option<Box<Queue>>>,
    names: HashMap<Inlet, InletId>,
    topics: Vec<Option<Box<Topic>>>,
    topic_names: HashMap<Name, TopicId>,
    pub(crate) requests: HashMap<RequestId, VecDeque<At>>,
    pub(crate) processes: HashMap<ProcessId, Process>,
    pub(crate) settled: Settlements,
    pub(crate) bulks: Bulks,
    pub(crate) records: Records,
    pub(crate) schedules: Schedules,
    pub(crate) streams: Streams,
    freed: Vec<u64>,
    woken: Vec<InletId>,
    /// Topics that got messages since somebody looked, and how many.
    published: Vec<(TopicId, u32)>,
}

/// What one process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) leases: u64,
    pub(crate) suspects: u64,
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

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before any fact.
    pub fn new() -> Self {
        Self {
            end: 0,
            time: Timestamp::default(),
            secret: None,
            epoch: 0,
            queues: Vec::new(),
            names: HashMap::new(),
            topics: Vec::new(),
            topic_names: HashMap::new(),
            requests: HashMap::new(),
            processes: HashMap::new(),
            settled: Recent::new(SETTLED_MAX),
            bulks: Recent::new(BULKS_MAX),
            records: Records::default(),
            schedules: Schedules::default(),
            streams: Streams::default(),
            freed: Vec::new(),
            woken: Vec::new(),
            published: Vec::new(),
        }
    }

    /// The position of the last fact applied.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The latest time of any fact applied.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The epoch of the last opening; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What must be appended to open the store: it is founded, where that is new, and gets the next epoch.
    pub fn opening(&self, random: &mut dyn FnMut() -> u64) -> Vec<Fact> {
        let founded = self.secret.is_none().then(|| Fact::Founded { secret: [random(), random()] });
        founded.into_iter().chain([Fact::Opened { epoch: self.epoch.saturating_add(1) }]).collect()
    }

    /// Lets the next opening's epoch be further on, so that it is not one that another copy of this state comes to.
    pub(crate) fn skip_epochs(&mut self, skipped: u32) {
        self.epoch = self.epoch.saturating_add(skipped);
    }

    /// Bodies that nobody needs any more since the last call: to be passed to [`crate::Store::released`].
    pub fn take_freed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.freed)
    }

    /// Calls `each` with the position of every body in this stretch of the log that stays for long: stream events,
    /// which no work ends and only a truncation removes.
    pub fn long_lived(&self, positions: Range<u64>, each: &mut dyn FnMut(u64)) {
        self.streams.each_in(positions, each);
    }

    pub(crate) fn queue(&self, id: InletId) -> Option<&Queue> {
        self.queues.get(id.0 as usize)?.as_deref()
    }

    /// Makes everything that is due by `now` ready, so that two states of the same facts can be compared.
    pub fn advance(&mut self, now: Timestamp) {
        let time = self.time;
        for at in 0..self.queues.len() {
            self.promote(InletId(at as u32), now);
            if let Some(queue) = &mut self.queues[at] {
                queue.forget_finished(time);
            }
        }
    }

    /// Makes what is due by `now` in one inlet ready.
    ///
    /// It counts as made ready by the last fact applied: what made it delayed is durable once that one is.
    pub(crate) fn promote(&mut self, inlet: InletId, now: Timestamp) {
        let end = self.end;
        let Some(queue) = self.queue_mut(inlet) else { return };
        queue.promote(now, end);
        if queue.moment.woken > 0 && !std::mem::replace(&mut queue.moment.listed, true) {
            self.woken.push(inlet);
        }
    }

    /// Inlets at which something may be handed out that could not before, and how much; since the last call.
    pub(crate) fn take_woken(&mut self, each: &mut dyn FnMut(&Queue, u32)) {
        for id in std::mem::take(&mut self.woken) {
            if let Some(queue) = self.queue_mut(id) {
                let count = std::mem::take(&mut queue.moment.woken);
                queue.moment.listed = false;
                each(queue, count);
            }
        }
    }

    pub(crate) fn queue_mut(&mut self, id: InletId) -> Option<&mut Queue> {
        self.queues.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(crate) fn find(&self, name: &Inlet) -> Option<&Queue> {
        self.names.get(name).and_then(|id| self.queue(*id))
    }

    /// All of them, in the order of declaration.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.iter().flatten().map(|queue| &**queue)
    }

    pub(crate) fn next_inlet(&self) -> InletId {
        InletId(self.queues.len() as u32)
    }
}
