//! Every method of the engine, over the wire.
#![deny(clippy::missing_trait_methods)]

use crate::{
    Client,
    wire::{Answer, Call, ToHost},
};
use onward_core::{
    BoxStream, Capabilities, Delivery, Engine, Error, EventRead, EventSlice, Extended, Fut, Health, Hint,
    Inlet, Interest, LeaseRequest, LeaseToken, MessageQuery, MessageView, Op, Page, Prepared, Receipt,
    Record, RecordQuery, Result, RetryHint, Stats, Topology, TopologyChange, TopologyDiff,
};
use std::{sync::Arc, time::Duration};

/// Asks, and takes the one answer that fits the question.
macro_rules! ask {
    ($client:expr, $call:expr => $answer:ident) => {{
        let (shared, call) = ($client.shared.clone(), $call);
        Box::pin(async move {
            match shared.call(call).await? {
                Answer::$answer(answer) => Ok(answer),
                other => Err(misfit(&other)),
            }
        })
    }};
}

fn misfit(answer: &Answer) -> Error {
    let shown: String = format!("{answer:?}").chars().take(40).collect();
    Error::internal(format!("the host answered something else: {shown}")).retry(RetryHint::Unknown)
}

impl Engine for Client {
    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities.clone()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        Prepared::check(ops, &self.shared.capabilities, self.shared.env.now())
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        ask!(self, Call::Declare(change) => Declared)
    }

    fn topology(&self) -> Fut<'_, Topology> {
        ask!(self, Call::Topology => Topology)
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        ask!(self, Call::Commit(ops) => Committed)
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        ask!(self, Call::Submit(commits) => Submitted)
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        ask!(self, Call::Lease(request) => Leased)
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        ask!(self, Call::Extend { leases, by } => Extended)
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        ask!(self, Call::Find(query) => Found)
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        ask!(self, Call::ReadEvents(read) => Events)
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        ask!(self, Call::GetRecords(query) => Records)
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        ask!(self, Call::Stats(inlets) => Stats)
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        let shared = Arc::downgrade(&self.shared);
        self.shared.watches.begin(interest, move |id, interest| {
            if let Some(shared) = shared.upgrade() {
                shared.tell(&match interest {
                    Some(interest) => ToHost::Watch { id, interest },
                    None => ToHost::Unwatch { id },
                });
            }
        })
    }

    fn health(&self) -> Health {
        self.shared.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        Box::pin(async move {
            self.shared.close(drain).await;
            Ok(())
        })
    }
}
