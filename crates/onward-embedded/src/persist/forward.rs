//! The engine on a folder passes every call on; a shared store does, too.

use super::open::EmbeddedEngine;
use crate::{Fact, Store};
use onward_core::{
    BoxStream, Capabilities, Delivery, Durability, Engine, EventRead, EventSlice, Extended, Fut, Health,
    Hint, Inlet, Interest, LeaseRequest, LeaseToken, MessageQuery, MessageView, Op, Page, Prepared, Receipt,
    Record, RecordQuery, Result, Stats, Topology, TopologyChange, TopologyDiff,
};
use std::{sync::Arc, time::Duration};

/// Everything is the inner engine's, but for the end of the folder's care.
#[deny(clippy::missing_trait_methods)]
impl Engine for EmbeddedEngine {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        self.engine.prepare(ops)
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        self.engine.declare(change)
    }

    fn topology(&self) -> Fut<'_, Topology> {
        self.engine.topology()
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        self.engine.commit(ops)
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        self.engine.submit(commits)
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        self.engine.lease(request)
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        self.engine.extend(leases, by)
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        self.engine.find(query)
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        self.engine.read_events(read)
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        self.engine.get_records(query)
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        self.engine.stats(inlets)
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        self.engine.watch(interest)
    }

    fn health(&self) -> Health {
        self.engine.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        drop(self.keeper.lock().take());
        self.engine.close(drain)
    }
}

/// A store may be shared with who takes care of it.
impl<S: Store> Store for Arc<S> {
    fn append(
        &self,
        time: onward_core::Timestamp,
        class: crate::Class,
        facts: &[Fact],
        positions: &mut Vec<u64>,
        writer: crate::Writer,
    ) -> Result<u64, crate::AppendError> {
        (**self).append(time, class, facts, positions, writer)
    }

    fn write(&self, how: crate::How) {
        (**self).write(how);
    }

    fn read(&self, position: u64) -> Result<crate::Stored> {
        (**self).read(position)
    }

    fn read_events(&self, positions: &[u64], each: &mut dyn FnMut(crate::StoredEvent) -> bool) -> Result<()> {
        (**self).read_events(positions, each)
    }

    fn read_many(&self, positions: &[u64], each: &mut dyn FnMut(usize, crate::Stored)) -> Result<()> {
        (**self).read_many(positions, each)
    }

    fn released(&self, positions: &[u64]) {
        (**self).released(positions);
    }

    fn progress(&self) -> crate::Progress {
        (**self).progress()
    }

    fn observe(&self, observer: Arc<dyn crate::StoreObserver>) {
        (**self).observe(observer);
    }

    fn durability(&self) -> Durability {
        (**self).durability()
    }

    fn problems(&self) -> Vec<onward_core::Problem> {
        (**self).problems()
    }

    fn close(&self) -> Result<()> {
        (**self).close()
    }
}
