//! The engine trait, method by method.

use super::{Core, Embedded, signal, topic_read::topic_of};
use crate::Store;
use onward_core::{
    BoxStream, Capabilities, Delivery, Engine, EventRead, EventSlice, Extended, Fut, Health, Hint, Inlet,
    Interest, LeaseRequest, LeaseToken, MessageQuery, MessageView, Op, Page, Prepared, Receipt, Record,
    RecordQuery, Result, Stats, Topology, TopologyChange, TopologyDiff,
};
use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

impl<S: Store> Engine for Embedded<S> {
    fn capabilities(&self) -> Capabilities {
        self.core.capabilities.clone()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        Prepared::check(ops, &self.core.capabilities, self.core.env.now())
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        Box::pin(self.core.declare(change))
    }

    fn topology(&self) -> Fut<'_, Topology> {
        Box::pin(self.core.topology())
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        Box::pin(self.core.commit(ops))
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(self.core.submit(commits))
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        Box::pin(self.core.lease(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        Box::pin(self.core.extend(leases, by))
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        Box::pin(self.core.find(query))
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        Box::pin(async move {
            match topic_of(&read) {
                Some(topic) => self.core.read_topic(topic, &read).await,
                None => self.core.read_streams(read).await,
            }
        })
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        Box::pin(self.core.get_records(query))
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        Box::pin(self.core.stats(inlets))
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        signal::watch(self.core.hints.subscribe(), interest)
    }

    fn health(&self) -> Health {
        self.core.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        Box::pin(self.core.close(drain))
    }
}

impl<S: Store> Core<S> {
    async fn close(self: &Arc<Self>, drain: Duration) -> Result<()> {
        self.stop();
        let mut patience = self.env.sleep(drain);
        loop {
            let idle = self.idle.notified();
            if self.running.load(Ordering::Acquire) == 0 {
                break;
            }
            if let futures::future::Either::Right(_) =
                futures::future::select(std::pin::pin!(idle), &mut patience).await
            {
                break;
            }
        }
        self.store.close()
    }
}
