//! An instance of its own for each test, on the server that the tests are told.

use onward_core::{
    Delivery, Engine, Env, Holder, Inlet, LeaseRequest, Message, MessageId, Name, Op, ProcessId, RequestId,
};
use onward_env::SystemEnv;
use onward_postgres::{PostgresEngine, PostgresOptions};
use std::sync::Arc;
use tokio_postgres::{Client, NoTls};

/// One instance, and a connection beside the engine's.
pub(crate) struct Instance {
    pub(crate) engine: Arc<PostgresEngine>,
    pub(crate) client: Client,
    pub(crate) schema: String,
}

/// Where the server is.
pub(crate) fn server() -> String {
    let place = std::env::var("ONWARD_TEST_POSTGRES").unwrap_or_else(|_| "127.0.0.1:5432".into());
    format!("postgres://postgres@{place}/postgres")
}

pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("PostgreSQL answers");
    tokio::spawn(connection);
    client
}

pub(crate) async fn engine(url: &str) -> Arc<PostgresEngine> {
    let options = PostgresOptions::parse(url).unwrap();
    Arc::new(PostgresEngine::connect(options, SystemEnv::shared()).await.unwrap())
}

impl Instance {
    pub(crate) async fn new() -> Self {
        let schema = format!("test_{:016x}", SystemEnv.random());
        let url = format!("{}?schema={schema}&pool=4&application_name={schema}", server());
        Self { engine: engine(&url).await, client: client(&server()).await, schema }
    }

    /// Drops the schema; a test that fails leaves it to be looked at.
    pub(crate) async fn end(self) {
        self.engine.close(std::time::Duration::from_secs(5)).await.unwrap();
        self.client.batch_execute(&format!("drop schema \"{}\" cascade", self.schema)).await.unwrap();
    }

    pub(crate) async fn enqueue(&self, queue: &str, id: &str) {
        let ops = self.engine.prepare(vec![enqueue(queue, id)]).unwrap();
        self.engine.commit(ops).await.unwrap();
    }

    pub(crate) async fn take(&self, queue: &str, count: u32) -> Vec<Delivery> {
        self.engine.lease(request(queue, count)).await.unwrap()
    }

    pub(crate) async fn ids(&self, queue: &str) -> Vec<String> {
        self.take(queue, 100).await.iter().map(|d| d.message.id.to_string()).collect()
    }
}

pub(crate) fn name(queue: &str) -> Name {
    queue.parse().unwrap()
}

pub(crate) fn message(id: &str) -> Message {
    let id = MessageId::try_from(id).unwrap();
    Message::builder("test").id(id.clone()).json(&id.as_str()).build(&SystemEnv).unwrap()
}

pub(crate) fn enqueue(queue: &str, id: &str) -> Op {
    Op::Enqueue { queue: name(queue), message: Box::new(message(id)) }
}

pub(crate) fn request(queue: &str, count: u32) -> LeaseRequest {
    let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
    let request = LeaseRequest::one(Inlet::Queue(name(queue)), holder, RequestId::generate(&SystemEnv));
    LeaseRequest { count_max: count, ..request }
}
