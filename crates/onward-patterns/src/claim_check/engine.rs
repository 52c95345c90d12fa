//! The engine with a claim check before it.
#![deny(clippy::missing_trait_methods)]

use super::Payloads;
use onward_core::{
    BoxStream, Capabilities, Delivery, Engine, EventRead, EventSlice, Extended, Fut, Health, Hint, Inlet,
    Interest, LeaseRequest, LeaseToken, MessageQuery, MessageView, Op, PAYLOAD_BYTES_CEILING, Page, Prepared,
    Receipt, Record, RecordQuery, Result, Stats, Topology, TopologyChange, TopologyDiff,
};
use std::{sync::Arc, time::Duration};

/// Payloads of more bytes go aside where nothing else is said.
pub const CLAIM_BYTES_DEFAULT: usize = 128 * 1024;

/// An engine whose large payloads are stored aside.
///
/// Guarantees: a payload is stored before its message is accepted; a delivery has its payload, checked by length and
/// hash, or is not handed out. One whose payload is gone or changed becomes a dead letter that says so; while the store
/// can't be reached, messages with a payload there are put back.
///
/// Limits: payloads up to [`PAYLOAD_BYTES_CEILING`] bytes, whatever the engine or the queue takes. What is enqueued and
/// published goes aside; events of streams, templates of schedules and edits of dead letters do not. Messages that are
/// looked at without leasing (`find`, reads of topics) show the reference. An at-most-once inlet gets nothing back: a
/// message whose payload can't be fetched is a dead letter there.
#[derive(Debug, Clone)]
pub struct ClaimCheck {
    pub(super) inner: Arc<dyn Engine>,
    pub(super) env: Arc<dyn onward_core::Env>,
    pub(super) payloads: Payloads,
    pub(super) over_bytes: usize,
}

impl ClaimCheck {
    /// A claim check before an engine, for payloads over [`CLAIM_BYTES_DEFAULT`]. No I/O.
    pub fn new(inner: Arc<dyn Engine>, env: Arc<dyn onward_core::Env>, payloads: Payloads) -> Self {
        Self { inner, env, payloads, over_bytes: CLAIM_BYTES_DEFAULT }
    }

    /// Puts payloads of more than so many bytes aside.
    pub fn over(self, bytes: usize) -> Self {
        Self { over_bytes: bytes, ..self }
    }
}

impl Engine for ClaimCheck {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        let most = &mut capabilities.limits.payload_bytes_max;
        *most = (*most).max(PAYLOAD_BYTES_CEILING as u64);
        capabilities
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        self.check(ops)
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        self.inner.declare(change)
    }

    fn topology(&self) -> Fut<'_, Topology> {
        self.inner.topology()
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        Box::pin(self.commit_aside(ops))
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(self.submit_aside(commits))
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        Box::pin(self.lease_redeemed(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        self.inner.extend(leases, by)
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        self.inner.find(query)
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        self.inner.read_events(read)
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        self.inner.get_records(query)
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        self.inner.stats(inlets)
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        self.inner.watch(interest)
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        self.inner.close(drain)
    }
}
