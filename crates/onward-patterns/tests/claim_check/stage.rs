//! What these tests are made of: an engine in memory, a claim check before it, a folder for payloads.

use onward_core::{
    Accepted, Delivery, Engine, Env, Holder, Inlet, InletConfig, LeaseRequest, Message, MessageId,
    MessageQuery, MessageView, Name, Op, Outcome, Payload, ProcessId, Receipt, RequestId, Result,
    TopologyChange,
};
use onward_embedded::{MemoryEngine, Options};
use onward_env::SystemEnv;
use onward_patterns::claim_check::{ClaimCheck, Payloads};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;

/// Payloads of more bytes go aside here.
pub(crate) const OVER: usize = 1_000;

/// How long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    pub(crate) inner: Arc<dyn Engine>,
    pub(crate) engine: ClaimCheck,
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let env: Arc<dyn Env> = SystemEnv::shared();
        let inner: Arc<dyn Engine> = Arc::new(MemoryEngine::new(env.clone(), Options::default()));
        let folder = tempfile::tempdir().unwrap();
        let payloads = Payloads::in_folder(folder.path()).unwrap();
        let engine = ClaimCheck::new(inner.clone(), env, payloads).over(OVER);
        Self { inner, engine, folder }
    }

    pub(crate) async fn with_queue(config: InletConfig) -> (Self, Name) {
        let stage = Self::new();
        let name: Name = "pictures".parse().unwrap();
        let config = Box::new(config);
        let change = TopologyChange::Queue { name: name.clone(), config, update: false };
        stage.engine.declare(change).await.unwrap();
        (stage, name)
    }

    pub(crate) async fn put(&self, queue: &Name, id: &str, bytes: usize) -> Result<Accepted> {
        match self.op(Op::Enqueue { queue: queue.clone(), message: Box::new(message(id, bytes)) }).await? {
            Receipt::Accepted(accepted) => Ok(accepted),
            other => panic!("an enqueue answered {other:?}"),
        }
    }

    pub(crate) async fn op(&self, op: Op) -> Result<Receipt> {
        let prepared = self.engine.prepare(vec![op])?;
        Ok(self.engine.commit(prepared).await?.pop().unwrap())
    }

    /// What is there at once.
    pub(crate) async fn take(&self, inlet: &str, count_max: u32, bytes_max: u64) -> Vec<Delivery> {
        let request = Self::request(inlet);
        self.engine.lease(LeaseRequest { count_max, bytes_max, ..request }).await.unwrap()
    }

    /// What comes next.
    pub(crate) async fn take_one(&self, inlet: &str) -> Delivery {
        let request = LeaseRequest { wait: PATIENCE, ..Self::request(inlet) };
        self.engine.lease(request).await.unwrap().pop().expect("something comes")
    }

    fn request(inlet: &str) -> LeaseRequest {
        let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
        let id = RequestId::generate(&*SystemEnv::shared());
        LeaseRequest::one(inlet.parse::<Inlet>().unwrap(), holder, id)
    }

    pub(crate) async fn settle(&self, delivery: &Delivery, outcome: Outcome) {
        self.op(Op::Settle { token: delivery.token.clone(), outcome }).await.unwrap();
    }

    pub(crate) async fn ack(&self, delivery: &Delivery) {
        self.settle(delivery, Outcome::Ack { result: None }).await;
    }

    /// The message as the engine has it.
    pub(crate) async fn view(&self, queue: &Name, id: &str) -> MessageView {
        let id = MessageId::try_from(id).unwrap();
        let query = MessageQuery::id(Inlet::Queue(queue.clone()), id);
        self.inner.find(query).await.unwrap().items.pop().expect("it is there")
    }

    /// The files of all payloads.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        fn walk(dir: PathBuf) -> Vec<PathBuf> {
            let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
            entries.flat_map(|path| if path.is_dir() { walk(path) } else { vec![path] }).collect()
        }
        walk(self.folder.path().to_owned())
    }
}

pub(crate) fn payload(bytes: usize) -> Payload {
    let some: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
    Payload::bytes(some, "image/png").unwrap()
}

pub(crate) fn message(id: &str, bytes: usize) -> Message {
    let builder = Message::builder("picture").id(MessageId::try_from(id).unwrap()).data(payload(bytes));
    builder.build(&*SystemEnv::shared()).unwrap()
}
