//! The engine with one rule broken: what it does otherwise than the honest one stands in `bend` and `answers`.
#![deny(clippy::missing_trait_methods)]

use super::Fault;
use onward_core::{
    Accepted, BoxStream, Capabilities, Cursor, Delivery, Engine, Error, EventRead, EventSlice, Extended,
    FindBy, Fut, Health, Hint, Inlet, Interest, LeaseRequest, LeaseToken, Message, MessageId, MessageQuery,
    MessageState, MessageView, Op, Page, Prepared, Receipt, Record, RecordQuery, Result, Stats, Topology,
    TopologyChange, TopologyDiff,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The term of the deliveries that some faults keep to.
pub(super) const LONG: Duration = crate::bench::PATIENCE;

/// An engine that breaks one rule and keeps the others.
#[derive(Debug)]
pub struct Double {
    pub(super) inner: Arc<dyn Engine>,
    pub(super) fault: Fault,
    pub(super) memory: Arc<Mutex<Memory>>,
}

/// What a double must remember to be wrong.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Configurations as they were declared, where the double declares others.
    pub(super) declared: BTreeMap<Inlet, onward_core::InletConfig>,
    /// Messages as they came, where the double passes others on.
    pub(super) messages: BTreeMap<(Inlet, MessageId), Message>,
    /// Receipts by id over all queues.
    pub(super) receipts: BTreeMap<MessageId, Accepted>,
    /// Deliveries that are out, in their order.
    pub(super) out: Vec<Delivery>,
    /// Messages that a subscription of a topic has got.
    pub(super) gone: Vec<(Inlet, MessageId)>,
    /// To be handed out once more.
    pub(super) again: Vec<Delivery>,
    pub(super) count: u64,
    /// Slots that are held by a count apart from the leases.
    pub(super) slots: u32,
    /// The data were opened again.
    pub(super) opened_again: bool,
}

impl Double {
    /// Breaks one rule of an engine.
    pub fn new(inner: Arc<dyn Engine>, fault: Fault) -> Self {
        Self { inner, fault, memory: Arc::default() }
    }

    pub(super) fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Faults that would show everywhere are kept to deliveries of one term, so that one check shows them.
    pub(super) fn was_asked_long(&self, token: &LeaseToken) -> bool {
        self.memory.lock().out.iter().any(|d| d.token == *token && d.lease == LONG)
    }

    pub(super) fn next(&self) -> u64 {
        let mut memory = self.memory.lock();
        memory.count += 1;
        memory.count
    }
}

impl Engine for Double {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        self.inner.prepare(ops)
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        let change = match change {
            TopologyChange::Queue { name, mut config, update } => {
                self.bend_config(&name, &mut config);
                TopologyChange::Queue { name, config, update: update || self.is(Fault::UpdatesSilently) }
            }
            TopologyChange::DropInlet { inlet, only_if_empty } => TopologyChange::DropInlet {
                inlet,
                only_if_empty: only_if_empty && !self.is(Fault::DropsWhatIsFull),
            },
            other => self.bend_topic(other),
        };
        self.inner.declare(change)
    }

    fn topology(&self) -> Fut<'_, Topology> {
        Box::pin(async move {
            let mut topology = self.inner.topology().await?;
            let memory = self.memory.lock();
            for (inlet, config) in &mut topology.inlets {
                *config = memory.declared.get(inlet).unwrap_or(config).clone();
            }
            Ok(topology)
        })
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        Box::pin(self.commit_all(ops))
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            let mut stopped = false;
            for commit in commits {
                let answer = match stopped {
                    true => Err(Error::conflict("an earlier one failed")),
                    false => self.commit_all(commit).await,
                };
                stopped = self.is(Fault::SubmitStops) && (stopped || answer.is_err());
                answers.push(answer);
            }
            Ok(answers)
        })
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        Box::pin(self.hand_out(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        if self.is(Fault::IgnoresExtend) {
            return Box::pin(async move {
                let mut answers = Vec::new();
                for token in leases {
                    let live = self.is_live(&token).await;
                    answers.push(live.map(|()| Extended { lease: by, cancel_requested: false }));
                }
                Ok(answers)
            });
        }
        self.inner.extend(leases, by)
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        Box::pin(async move {
            let by_id = matches!(query.by, FindBy::Id(_));
            let mut page = self.inner.find(query).await?;
            if self.is(Fault::HidesLeased) && by_id {
                page.items.retain(|view| view.state != MessageState::Leased);
            }
            Ok(Page { items: page.items.into_iter().map(|v| self.bend_view(v)).collect(), next: page.next })
        })
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        Box::pin(self.read(self.bend_read(read)))
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        let query = match query {
            RecordQuery::Prefix { prefix, after, limit } => {
                let after: Option<Cursor> = after.filter(|_| !self.is(Fault::SamePageAgain));
                RecordQuery::Prefix { prefix, after, limit }
            }
            keys => keys,
        };
        self.inner.get_records(query)
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        Box::pin(async move {
            let mut stats = self.inner.stats(inlets).await?;
            if self.is(Fault::BooksLosePurged) {
                stats.iter_mut().for_each(|s| s.books.purged = 0);
            }
            if self.is(Fault::BooksLoseShed) {
                stats.iter_mut().filter(|s| s.lag.is_some()).for_each(|s| s.books.shed = 0);
            }
            Ok(stats)
        })
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        self.inner.watch(interest)
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        if self.is(Fault::NeverCloses) {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inner.close(drain)
    }
}
