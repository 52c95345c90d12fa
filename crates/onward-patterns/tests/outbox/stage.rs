//! What these tests are made of: a store with an outbox, another engine as destination, a relay between them.

use onward_core::{
    Delivery, Engine, Env, Holder, Inlet, InletConfig, LeaseRequest, Message, MessageId, MessageQuery,
    MessageView, Name, Op, ProcessId, Receipt, RecordExpect, RecordKey, RequestId, Result, TopologyChange,
};
use onward_embedded::{MemoryEngine, Options};
use onward_env::SystemEnv;
use onward_patterns::outbox::{Destination, Outbox, Relay};
use std::{sync::Arc, time::Duration};

/// How long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Engine>,
    pub(crate) target: Arc<dyn Engine>,
    pub(crate) outbox: Outbox,
    pub(crate) relay: Relay,
}

fn engine() -> Arc<dyn Engine> {
    Arc::new(MemoryEngine::new(SystemEnv::shared(), Options::default()))
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let (store, target) = (engine(), engine());
        let outbox = Outbox::new("outbox".parse().unwrap());
        outbox.declare(&*store).await.unwrap();
        let env: Arc<dyn Env> = SystemEnv::shared();
        let relay = Relay::new(outbox.clone(), store.clone(), target.clone(), env, holder("relay"));
        Self { store, target, outbox, relay }
    }

    pub(crate) async fn stage(&self, to: &Destination, message: Message) -> Result<Vec<Receipt>> {
        commit(&*self.store, vec![self.outbox.stage(to, message)?]).await
    }

    pub(crate) fn inlet(&self) -> Inlet {
        Inlet::Queue(self.outbox.queue().clone())
    }
}

pub(crate) async fn commit(engine: &dyn Engine, ops: Vec<Op>) -> Result<Vec<Receipt>> {
    engine.commit(engine.prepare(ops)?).await
}

pub(crate) async fn declare(engine: &dyn Engine, name: &str, config: InletConfig) {
    let (name, config) = (name.parse::<Name>().unwrap(), Box::new(config));
    engine.declare(TopologyChange::Queue { name, config, update: false }).await.unwrap();
}

fn holder(worker: &str) -> Holder {
    Holder { worker: worker.into(), process: ProcessId("p".into()) }
}

pub(crate) async fn take(engine: &dyn Engine, queue: &str) -> Delivery {
    let request = LeaseRequest { wait: PATIENCE, ..request(queue) };
    engine.lease(request).await.unwrap().pop().expect("something comes")
}

/// Everything that is there at once, by id.
pub(crate) async fn ids_in(engine: &dyn Engine, queue: &str) -> Vec<String> {
    let request = LeaseRequest { count_max: 100, ..request(queue) };
    let deliveries = engine.lease(request).await.unwrap();
    deliveries.into_iter().map(|delivery| delivery.message.id.to_string()).collect()
}

fn request(queue: &str) -> LeaseRequest {
    let id = RequestId::generate(&*SystemEnv::shared());
    LeaseRequest::one(queue.parse().unwrap(), holder("w"), id)
}

pub(crate) async fn view(engine: &dyn Engine, inlet: Inlet, id: &MessageId) -> Option<MessageView> {
    engine.find(MessageQuery::id(inlet, id.clone())).await.unwrap().items.pop()
}

pub(crate) fn to_queue(name: &str) -> Destination {
    Destination::Queue(name.parse().unwrap())
}

pub(crate) fn message(id: &str) -> Message {
    Message::builder("order.placed")
        .id(id.try_into().unwrap())
        .json(&id)
        .build(&*SystemEnv::shared())
        .unwrap()
}

pub(crate) fn record(key: &str, expect: RecordExpect) -> Op {
    Op::PutRecord { key: RecordKey::try_from(key).unwrap(), value: "v".into(), expect, ttl: None }
}
