//! An engine on a real folder, with small segments, and what it was told.

use onward_core::{
    Delivery, Engine, FindBy, Holder, Inlet, LeaseRequest, Message, MessageQuery, MessageState, Op, Outcome,
    ProcessId, Receipt, RequestId, Result,
};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use onward_keeping::{BackedUp, Destination, Watch};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

pub(crate) const SEGMENT_BYTES: u64 = 256 << 10;

/// A place with a data folder, a destination and folders to restore to.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn to(&self) -> Destination {
        Destination::open(self.path("copies").to_str().unwrap()).unwrap()
    }

    pub(crate) async fn back_up(&self) -> BackedUp {
        onward_keeping::backup(&self.data(), &self.to(), quiet(), SystemEnv::shared()).await.unwrap()
    }
}

pub(crate) fn quiet() -> Watch {
    Arc::new(|_| {})
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions {
        segment_bytes: SEGMENT_BYTES,
        reserve_bytes: SEGMENT_BYTES,
        snapshot_bytes_min: SEGMENT_BYTES,
        care_every: Duration::from_millis(20),
        ..OpenOptions::default()
    }
}

pub(crate) fn open(dir: &Path) -> EmbeddedEngine {
    EmbeddedEngine::open(dir, options(), SystemEnv::shared()).unwrap()
}

pub(crate) fn inlet() -> Inlet {
    Inlet::queue("keep").unwrap()
}

pub(crate) async fn commit(engine: &EmbeddedEngine, ops: Vec<Op>) -> Result<Vec<Receipt>> {
    engine.commit(engine.prepare(ops)?).await
}

pub(crate) async fn enqueue(engine: &EmbeddedEngine, id: &str) -> Receipt {
    let Inlet::Queue(queue) = inlet() else { unreachable!() };
    let message = Message::builder("keep.me").id(id.try_into().unwrap()).json(&vec![7u8; 300]);
    let message = Box::new(message.build(&SystemEnv).unwrap());
    commit(engine, vec![Op::Enqueue { queue, message }]).await.unwrap().remove(0)
}

pub(crate) async fn lease(engine: &EmbeddedEngine) -> Option<Delivery> {
    let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
    let request = LeaseRequest::one(inlet(), holder, RequestId::generate(&SystemEnv));
    engine.lease(request).await.unwrap().pop()
}

pub(crate) async fn ack(engine: &EmbeddedEngine, delivery: &Delivery) -> Result<()> {
    let outcome = Outcome::Ack { result: None };
    commit(engine, vec![Op::Settle { token: delivery.token.clone(), outcome }]).await.map(drop)
}

/// Ids of everything unfinished, each body read.
pub(crate) async fn there(engine: &EmbeddedEngine) -> BTreeSet<String> {
    let mut there = BTreeSet::new();
    for state in [MessageState::Waiting, MessageState::Delayed, MessageState::Leased, MessageState::Dead] {
        let mut after = None;
        loop {
            let query = MessageQuery { inlet: inlet(), by: FindBy::State(state), after, limit: 1000 };
            let Ok(page) = engine.find(query).await else { break };
            there.extend(page.items.iter().map(|view| view.message.id.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    there
}
