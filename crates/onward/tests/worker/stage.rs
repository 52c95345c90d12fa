//! Where the tests play: an engine with faults, a paused clock, and short ways to look and to wait.

use crate::faulty::{Faults, Faulty};
use onward::{
    Message, MessageId, Onward, Process,
    core::{
        AtomicScope, Engine, Env, InletConfig, MessageState, MessageView, Op, RecordExpect, RecordKey,
        RetryPolicy,
    },
    work::{Report, Worker},
};
use onward_embedded::{EmbeddedEngine, MemoryEngine, OpenOptions, Options};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{sync::oneshot, task::JoinHandle};

pub(crate) const QUEUE: &str = "work";
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) struct Stage {
    pub(crate) onward: Onward,
    pub(crate) faults: Arc<Faults>,
    _folder: Option<tempfile::TempDir>,
}

/// A worker that runs in a task of its own.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<onward::Result<Report>>,
}

impl Running {
    pub(crate) async fn stop(mut self) -> Report {
        self.begin_stop();
        self.task.await.unwrap().unwrap()
    }

    /// As a kill does: nothing is settled, nothing given back.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// Says stop without waiting for the end.
    pub(crate) fn begin_stop(&mut self) {
        let asked = self.stop.take().expect("it is stopped once").send(());
        asked.expect("the worker runs until it is stopped");
    }

    pub(crate) async fn report(self) -> Report {
        self.task.await.unwrap().unwrap()
    }

    /// Why it ended by itself.
    pub(crate) async fn error(self) -> onward::Error {
        let _running_until_here = self.stop;
        self.task.await.unwrap().unwrap_err()
    }
}

impl Stage {
    /// A stage on the engine in memory, whose commits reach so far.
    pub(crate) async fn memory(atomic: AtomicScope) -> Self {
        let env = onward_env::TokioEnv::start();
        let engine = MemoryEngine::new(env.clone(), Options::default());
        Self::on(Arc::new(engine), env, atomic).await
    }

    /// A stage on the embedded engine, in a folder that goes with the stage.
    pub(crate) async fn embedded() -> Self {
        let env = onward_env::TokioEnv::start();
        let folder = tempfile::tempdir().unwrap();
        let options =
            OpenOptions { segment_bytes: 1 << 20, reserve_bytes: 1 << 20, ..OpenOptions::default() };
        let engine = EmbeddedEngine::open(folder.path(), options, env.clone()).unwrap();
        let stage = Self::on(Arc::new(engine), env, AtomicScope::Store).await;
        Self { _folder: Some(folder), ..stage }
    }

    async fn on(inner: Arc<dyn Engine>, env: Arc<dyn Env>, atomic: AtomicScope) -> Self {
        let faults = Arc::new(Faults::default());
        let engine = Arc::new(Faulty { inner, faults: faults.clone(), atomic });
        let onward = Onward::new(engine, env).as_process(Process::named("one"));
        let stage = Self { onward, faults, _folder: None };
        stage.declare(QUEUE, InletConfig::default()).await;
        stage
    }

    /// A queue with leases of [`LEASE`], where finished messages can still be looked at.
    pub(crate) async fn declare(&self, name: &str, config: InletConfig) {
        let (lease_ms, result_retention_ms) = (LEASE.as_millis() as u64, 7 * 86_400_000);
        let config = InletConfig { lease_ms, result_retention_ms, ..config };
        let change = onward::core::TopologyChange::Queue {
            name: name.parse().unwrap(),
            config: Box::new(config),
            update: true,
        };
        self.onward.engine().declare(change).await.unwrap();
    }

    /// At most so many attempts, with waits of exactly so long.
    pub(crate) async fn retry(&self, attempts_max: u32, wait: Duration) {
        let retry = RetryPolicy {
            attempts_max,
            curve: onward::core::Curve::Fixed { every_ms: wait.as_millis() as u64 },
            jitter: onward::core::Jitter::None,
            ..RetryPolicy::default()
        };
        self.declare(QUEUE, InletConfig { retry, ..InletConfig::default() }).await;
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker::new(&self.onward).name("tester")
    }

    pub(crate) async fn send(&self, id: &str) -> MessageId {
        self.send_data(id, &id).await
    }

    pub(crate) async fn send_data<T: serde::Serialize>(&self, id: &str, data: &T) -> MessageId {
        let id = MessageId::try_from(id).unwrap();
        let message = Message::builder("test.kind").id(id.clone()).json(data);
        assert!(!self.onward.enqueue(QUEUE, message).await.unwrap().duplicate);
        id
    }

    pub(crate) async fn commit(&self, op: Op) {
        self.onward.commit(vec![op]).await.unwrap();
    }

    pub(crate) async fn view(&self, id: &MessageId) -> MessageView {
        self.onward.find(QUEUE, id).await.unwrap().expect("the message is known")
    }

    pub(crate) async fn state(&self, id: &MessageId) -> Option<MessageState> {
        self.onward.find(QUEUE, id).await.unwrap().map(|view| view.state)
    }

    /// Looks until the message is in that state; two hours of the paused clock are enough for every test.
    pub(crate) async fn reaches(&self, id: &MessageId, state: MessageState) -> MessageView {
        for _ in 0..7_200 {
            if let Some(view) = self.onward.find(QUEUE, id).await.unwrap()
                && view.state == state
            {
                return view;
            }
            self.pass(SECOND).await;
        }
        panic!("{id} never came to be {state}: {:?}", self.state(id).await);
    }

    /// Lets the clock go on.
    pub(crate) async fn pass(&self, span: Duration) {
        onward_env::pass(&**self.onward.env(), span).await;
    }

    /// Lets the clock go on, and waits until the engine's threads have written what that brought about.
    pub(crate) async fn pass_in_step(&self, span: Duration) {
        self.pass(span).await;
        let (key, expect) = (RecordKey::try_from("test/step").unwrap(), RecordExpect::Any);
        self.commit(Op::PutRecord { key, value: Default::default(), expect, ttl: None }).await;
    }

    pub(crate) fn now(&self) -> Duration {
        self.onward.env().monotonic()
    }
}

/// Runs a worker in the background.
pub(crate) fn run(worker: Worker) -> Running {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move { stopped.await.unwrap_or_default() };
    Running { stop: Some(stop), task: tokio::spawn(worker.run_until(stopped)) }
}

/// What the test waits for must come within a day of the paused clock.
pub(crate) async fn within_a_day<T>(what: impl Future<Output = T>) -> T {
    let env = onward_env::TokioEnv::start();
    tokio::select! {
        value = what => value,
        () = onward_env::pass(&*env, Duration::from_secs(86_400)) => panic!("it never came"),
    }
}

/// Each function becomes a test on each engine, with a stage of that engine.
macro_rules! on_each_engine {
    ($($(#[$attribute:meta])* async fn $name:ident($stage:ident: Stage) $body:block)*) => { $(
        async fn $name($stage: crate::stage::Stage) $body

        mod $name {
            #[allow(unused_imports, reason = "not each test shows a numbered statement")]
            use onward_proves::proves;

            $(#[$attribute])*
            #[tokio::test(start_paused = true)]
            async fn memory() {
                super::$name(crate::stage::Stage::memory(onward::core::AtomicScope::Store).await).await
            }

            $(#[$attribute])*
            #[tokio::test(start_paused = true)]
            async fn embedded() {
                super::$name(crate::stage::Stage::embedded().await).await
            }
        }
    )* };
}
