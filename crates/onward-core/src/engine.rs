//! The engine seam: what everything below is reached through. ADR 1 checks it on paper against the hardest engines.

use crate::{
    Capabilities, Delivery, EventRead, EventSlice, Extended, Health, Hint, Inlet, Interest, LeaseRequest,
    LeaseToken, MessageQuery, MessageView, Op, Page, Prepared, Receipt, Record, RecordQuery, Result, Stats,
    Topology, TopologyChange, TopologyDiff,
};
use futures_core::Stream;
use std::{fmt, future::Future, pin::Pin, time::Duration};

/// What every engine method answers with.
pub type Fut<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A stream that can be sent between threads.
pub type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// An engine: where messages, records and events are kept.
///
/// Guarantees, for every engine and every wrapper:
/// - Nothing is answered before the declared durability holds, neither a write nor what a read has seen.
/// - What it can't do it refuses with `Unsupported`, before any effect.
/// - A repeat is safe everywhere: the same token and outcome, the same `request_id`, the same dedup key or bulk id
///   answer as the first time.
/// - Making one does no I/O beyond what its constructor says; methods may be called from many tasks at once.
///
/// Cancel safety: dropping a future leaves its writes fully there or fully absent; which of them is unknown, so repeat
/// with the same ids. Dropping a `lease` future may leave leases that end by themselves or answer a repeat.
///
/// Errors, beside what each method says: `Unavailable` (with the hint `Unknown` when the answer was lost), `Poisoned`
/// after a failed write, `Closed` after [`Engine::close`].
///
/// There are no default methods on purpose: a wrapper that forgets one must not compile.
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// What it truly does. Constant for the life of the engine.
    fn capabilities(&self) -> Capabilities;

    /// Checks operations and runs every wrapper over them. Pure: no I/O, no effect.
    ///
    /// # Errors
    /// `Invalid` and `Unsupported`.
    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared>;

    /// Creates, changes or removes a queue, topic or subscription. Repeating is safe.
    ///
    /// # Errors
    /// `Conflict` when it exists with other content and `update` is not set, or is not empty where it must be.
    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff>;

    /// What exists.
    fn topology(&self) -> Fut<'_, Topology>;

    /// All of the operations or none. Conditions see the earlier operations of the same commit.
    ///
    /// # Errors
    /// The first operation that fails, with its place; then nothing was changed.
    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>>;

    /// Independent commits sent together, each with its own result, in order. One that fails spoils no other.
    ///
    /// # Errors
    /// Only what fails them all before any was tried, as `Closed`.
    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>>;

    /// Hands out messages. Waits up to `request.wait` for the first.
    ///
    /// Guarantees: the attempt is written before the delivery is answered; no message is held by two; on an inlet that
    /// keeps order by key no two of one key are held at once; the lease runs from the answer, not from the request.
    ///
    /// # Errors
    /// `Invalid` for counts and waits beyond the limits; `NotFound` for an inlet that does not exist (a queue is
    /// declared with defaults unless the engine is strict).
    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>>;

    /// Extends leases to `by` from now, each with its own result. One call is one write.
    ///
    /// # Errors
    /// Per lease: `LeaseLost` for a stale token, `Invalid` beyond the inlet's `lease_total_max_ms`.
    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>>;

    /// Finds messages without handing them out. Requires `Browse`.
    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>>;

    /// Reads events. Requires `Streams` (a topic's messages: `Topics`).
    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice>;

    /// Reads records. Requires `Records`.
    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>>;

    /// Numbers of inlets, in the order asked; of all when none is named.
    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>>;

    /// Hints that something happened. They may be merged or lost: never wait for one without also polling.
    fn watch(&self, interest: Interest) -> BoxStream<Hint>;

    /// Whether it is well. Answers from memory, at once.
    fn health(&self) -> Health;

    /// Refuses new calls, lets running ones end for up to `drain`, then closes. Repeating is safe.
    fn close(&self, drain: Duration) -> Fut<'_, ()>;
}
