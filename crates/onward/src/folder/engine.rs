//! Every method of the engine, wherever it is at the moment.
#![deny(clippy::missing_trait_methods)]

use super::{Folder, State};
use futures::StreamExt;
use onward_core::{
    BoxStream, Capabilities, Delivery, Engine, Error, ErrorKind, EventRead, EventSlice, Extended, Fut,
    Health, Hint, Inlet, Interest, LeaseRequest, LeaseToken, MessageQuery, MessageView, Op, Page, Prepared,
    Receipt, Record, RecordQuery, Result, RetryHint, Stats, Topology, TopologyChange, TopologyDiff,
};
use std::time::Duration;
use tokio::sync::watch;

/// Most hosts that a read is tried on, one after the other.
const READ_ATTEMPTS: u32 = 3;

/// Calls a method that changes something, once.
macro_rules! once {
    ($folder:expr, $method:ident($($argument:expr),*)) => {
        Box::pin(async move {
            let entered = $folder.shared.current().await?;
            let answer = entered.engine().$method($($argument),*).await;
            answer.inspect_err(|error| entered.notice(error))
        })
    };
}

/// Calls a method that changes nothing, again when its host was lost meanwhile.
macro_rules! read {
    ($folder:expr, $method:ident($($argument:ident),*)) => {
        Box::pin(async move {
            let mut attempt = 1;
            loop {
                let entered = $folder.shared.current().await?;
                match entered.engine().$method($($argument.clone()),*).await {
                    Err(error) if attempt < READ_ATTEMPTS && is_lost(&error) => attempt += 1,
                    answer => return answer.inspect_err(|error| entered.notice(error)),
                }
            }
        })
    };
}

fn is_lost(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.retry_hint() != RetryHint::Never
}

impl Engine for Folder {
    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities.clone()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        let state = self.shared.state.borrow().clone();
        match state {
            State::In(entered) => entered.engine().prepare(ops),
            _ => Prepared::check(ops, &self.shared.capabilities, self.shared.place.env.now()),
        }
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        once!(self, declare(change))
    }

    fn topology(&self) -> Fut<'_, Topology> {
        read!(self, topology())
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        once!(self, commit(ops))
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        once!(self, submit(commits))
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        once!(self, lease(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        once!(self, extend(leases, by))
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        read!(self, find(query))
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        read!(self, read_events(read))
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        read!(self, get_records(query))
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        read!(self, stats(inlets))
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        let watching = Watching { state: self.shared.state.subscribe(), interest, hints: None };
        Box::pin(futures::stream::unfold(watching, |mut watching| async {
            watching.next().await.map(|hint| (hint, watching))
        }))
    }

    fn health(&self) -> Health {
        self.shared.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        Box::pin(self.shared.close(drain))
    }
}

/// A watch that goes on from host to host.
struct Watching {
    state: watch::Receiver<State>,
    interest: Interest,
    hints: Option<BoxStream<Hint>>,
}

impl Watching {
    /// The next hint; `None` once the folder is closed.
    async fn next(&mut self) -> Option<Hint> {
        if let Some(hints) = &mut self.hints {
            tokio::select! {
                biased;
                changed = self.state.changed() => changed.ok()?,
                Some(hint) = hints.next() => return Some(hint),
            }
        }
        let ready = self.state.wait_for(|state| !matches!(state, State::Between { .. })).await.ok()?.clone();
        let State::In(entered) = ready else { return None };
        // Whatever happened between two hosts was missed.
        self.hints = Some(entered.engine().watch(self.interest.clone()));
        Some(Hint::Somewhere)
    }
}
