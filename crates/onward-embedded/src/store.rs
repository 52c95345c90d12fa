//! The seam between the state machine and what keeps its facts: a log on disk, or memory.

use crate::{Fact, StreamId};
use onward_core::{Durability, Error, Event, Message, Problem, Result, Tag, Timestamp};
use std::{fmt, sync::Arc};

/// Whether an append may use the space that is kept for ending work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It adds work: refused with [`AppendError::NoSpace`] once only the reserve is left.
    Grow,
    /// It ends or hands out work, or removes something: may use the reserve, so that a full disk can be emptied.
    Drain,
}

/// How far a store has come. Positions are ends: everything before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Survives the death of the process.
    pub written: u64,
    /// Survives a power cut: the declared durability holds.
    pub synced: u64,
}

/// Why nothing was appended. In every case nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// Too much is under way; [`StoreObserver::room`] tells when to try again.
    Busy,
    /// The disk or its quota is full.
    NoSpace,
    /// An earlier write or sync failed; only reopening recovers.
    Poisoned(Error),
    /// The unit is larger than the store takes at once, in bytes.
    TooLarge {
        /// What it has.
        bytes: u64,
        /// What is allowed.
        max: u64,
    },
}

/// A message body as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The message.
    pub message: Arc<Message>,
    /// When it was accepted: the time of its fact, or what [`Fact::Moved`] says.
    pub accepted_at: Timestamp,
    /// Its place in its stream, where it is an event.
    pub event: Option<Box<EventPlace>>,
}

impl Stored {
    /// The event that stands at `position`, where it is one.
    pub(crate) fn into_event(self, position: u64) -> Option<StoredEvent> {
        let EventPlace { stream, revision, tags } = *self.event?;
        let message = Arc::unwrap_or_clone(self.message);
        let event = Event { message, tags };
        Some(StoredEvent { position, stream, revision, event, recorded_at: self.accepted_at })
    }
}

/// The place of an event in its stream, and its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    /// The stream.
    pub stream: StreamId,
    /// Its number there.
    pub revision: u64,
    /// Its tags.
    pub tags: Vec<Tag>,
}

/// An event as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Where its fact stands.
    pub position: u64,
    /// Its stream.
    pub stream: StreamId,
    /// Its number there.
    pub revision: u64,
    /// The event.
    pub event: Event,
    /// When it was appended.
    pub recorded_at: Timestamp,
}

/// Who is told how the store comes along. Calls are short, come from any thread, and may be merged.
pub trait StoreObserver: Send + Sync {
    /// It has come further; neither mark ever goes back.
    fn advanced(&self, progress: Progress);
    /// A write or sync failed: what was appended behind the last `synced` has an unknown outcome. Called once.
    fn failed(&self, error: Error);
    /// There is room again after [`AppendError::Busy`] or [`AppendError::NoSpace`].
    fn room(&self);
}

/// Who writes what is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The store's own threads, woken where they wait.
    Store,
    /// Who appends: it calls [`Store::write`] as soon as it has given the engine's lock back.
    Appender,
}

/// How an appender has it written. Each is a hint: where others are writing, they write it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Somebody waits for [`Progress::written`]: at once on this thread, without waiting for a sync.
    Hurried,
    /// Somebody waits for [`Progress::synced`], and nobody else is there: at once on this thread, with the sync.
    Here,
    /// By the store's own threads.
    Woken,
}

/// Keeps facts in order and message bodies by position.
///
/// The engine calls `append` and `released` under its one lock, `read` and `write` never under it.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Appends facts as one unit: after a crash all of them are there or none. Does not wait for the disk. Whom `writer`
    /// names writes them.
    ///
    /// `positions` is cleared and gets one position per fact, rising strictly over the store's life, each at least 1.
    /// Answers the end: the unit is written or synced once that mark of [`Progress`] has reached it.
    fn append(
        &self,
        time: Timestamp,
        class: Class,
        facts: &[Fact],
        positions: &mut Vec<u64>,
        writer: Writer,
    ) -> Result<u64, AppendError>;

    /// Sees to it that what its [`Writer::Appender`] appended is written. Called without the engine's lock.
    fn write(&self, how: How);

    /// The body that stands in the fact at `position` (see [`Fact::body`]). It may read the disk.
    ///
    /// # Errors
    /// `Corrupt` when the stored bytes are damaged, `NotFound` when nothing stands there any more.
    fn read(&self, position: u64) -> Result<Stored>;

    /// The events at these positions, in their order, until `each` answers that it has enough. Those whose place was
    /// given back meanwhile are passed over. It may read the disk, in large pieces where they lie together.
    ///
    /// # Errors
    /// `Corrupt` when stored bytes are damaged.
    fn read_events(&self, positions: &[u64], each: &mut dyn FnMut(StoredEvent) -> bool) -> Result<()>;

    /// The bodies that stand in the facts at these positions, each with the number of its position in the list, in that
    /// order. Those whose place was given back meanwhile are passed over. It may read the disk, in large pieces where they
    /// lie together.
    ///
    /// # Errors
    /// `Corrupt` when stored bytes are damaged; what was given before stays given.
    fn read_many(&self, positions: &[u64], each: &mut dyn FnMut(usize, Stored)) -> Result<()>;

    /// Nobody needs the bodies at these positions any more.
    fn released(&self, positions: &[u64]);

    /// How far it has come.
    fn progress(&self) -> Progress;

    /// Says who is to be told. Called once, before the first append.
    fn observe(&self, observer: Arc<dyn StoreObserver>);

    /// What [`Progress::synced`] means.
    fn durability(&self) -> Durability;

    /// What is wrong with it now, the failure that poisoned it first.
    fn problems(&self) -> Vec<Problem>;

    /// Syncs what was appended, then stops. Repeating is safe. It may block.
    fn close(&self) -> Result<()>;
}
