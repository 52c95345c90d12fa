//! The reference model behind the engine seam.

use super::{Model, Now};
use futures::future::Either;
use onward_core::{
    AtomicScope, BoxStream, Capabilities, Delivery, Durability, Engine, EngineLimits, Env, Error, EventRead,
    EventScope, EventSlice, Extended, Fut, Health, Hint, Inlet, Interest, LEASE_COUNT_MAX, LeaseRequest,
    LeaseToken, MessageQuery, MessageView, OPS_MAX, Op, PAYLOAD_BYTES_CEILING, Page, Prepared, Receipt,
    Record, RecordQuery, Result, Stats, Topology, TopologyChange, TopologyDiff,
};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// How often a waiting request looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The reference model as an engine. Several of them on one [`Store`] are several processes on one folder.
pub struct ModelEngine {
    store: Arc<Store>,
    env: Arc<dyn Env>,
    closed: AtomicBool,
}

/// What outlives an engine of the model, as a disk does.
#[derive(Default)]
pub(crate) struct Store {
    model: Mutex<Model>,
    changed: Notify,
}

impl fmt::Debug for ModelEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEngine").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl ModelEngine {
    /// An empty one.
    pub fn new(env: Arc<dyn Env>) -> Self {
        Self::open(Arc::default(), env)
    }

    /// One more engine on a store; it has an epoch of its own.
    pub(crate) fn open(store: Arc<Store>, env: Arc<dyn Env>) -> Self {
        store.model.lock().epoch += 1;
        Self { store, env, closed: AtomicBool::new(false) }
    }

    pub(crate) fn now(&self) -> Now {
        Now { wall: self.env.now(), monotonic: self.env.monotonic() }
    }

    /// Works on the model as it is now.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Model, Now) -> Result<T>) -> Result<T> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::closed("this engine was closed"));
        }
        let now = self.now();
        let mut model = self.store.model.lock();
        model.tick(now);
        let answer = work(&mut model, now);
        drop(model);
        self.store.changed.notify_waiters();
        answer
    }

    async fn lease_waiting(&self, request: LeaseRequest) -> Result<Vec<Delivery>> {
        if request.count_max == 0 || request.count_max as usize > LEASE_COUNT_MAX || request.inlets.is_empty()
        {
            return Err(Error::invalid("asks for too few or too many").at("the lease request"));
        }
        let start = self.env.monotonic();
        loop {
            let deliveries = self.with(|model, now| model.lease(&request, now))?;
            let waited = self.env.monotonic().saturating_sub(start);
            if !deliveries.is_empty() || waited >= request.wait {
                return Ok(deliveries);
            }
            let nap = self.env.sleep(LOOK_AGAIN.min(request.wait - waited));
            match futures::future::select(Box::pin(self.store.changed.notified()), nap).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
    }
}

/// An answer that is known at once.
fn ready<'a, T: Send + 'a>(answer: Result<T>) -> Fut<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Engine for ModelEngine {
    fn capabilities(&self) -> Capabilities {
        let limits = EngineLimits {
            payload_bytes_max: PAYLOAD_BYTES_CEILING as u64,
            delay_max: None,
            lease_total_max: None,
            dedup_window_max: None,
            ops_max: OPS_MAX,
        };
        Capabilities::all("model", Durability::OsBuffer, AtomicScope::Store, limits)
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        Prepared::check(ops, &self.capabilities(), self.env.now())
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        ready(self.with(|model, now| model.declare(change, now)))
    }

    fn topology(&self) -> Fut<'_, Topology> {
        ready(self.with(|model, _| Ok(model.topology())))
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        Box::pin(async move { self.with(|model, now| model.commit(ops.ops(), now)) })
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(async move {
            self.with(|model, now| Ok(commits.iter().map(|ops| model.commit(ops.ops(), now)).collect()))
        })
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        Box::pin(self.lease_waiting(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        ready(self.with(|model, now| Ok(leases.iter().map(|token| model.extend(token, by, now)).collect())))
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        ready(self.with(|model, now| model.find(&query, now)))
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        ready(match &read.scope {
            EventScope::Topic(topic) => self.with(|model, _| model.read_topic(topic, &read)),
            _ => self.with(|model, now| model.read_events(&read, now)),
        })
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        ready(self.with(|model, now| Ok(model.read(&query, now))))
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        ready(self.with(|model, now| model.stats(&inlets, now)))
    }

    fn watch(&self, _: Interest) -> BoxStream<Hint> {
        let store = self.store.clone();
        Box::pin(futures::stream::unfold(store, |store| async move {
            store.changed.notified().await;
            Some((Hint::Somewhere, store))
        }))
    }

    fn health(&self) -> Health {
        let open = !self.closed.load(Ordering::SeqCst);
        Health { readable: open, writable: open, durability: Durability::OsBuffer, problems: Vec::new() }
    }

    fn close(&self, _: Duration) -> Fut<'_, ()> {
        self.closed.store(true, Ordering::SeqCst);
        self.store.changed.notify_waiters();
        ready(Ok(()))
    }
}
