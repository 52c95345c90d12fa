//! Tests of your own handlers: the engine in memory, a clock that a test pauses, and short ways to run and to look.
//!
//! ```
//! use onward::{Message, testing::Kit, work::{self, Context}};
//!
//! async fn welcome(name: String, context: Context) -> work::Result {
//!     context.emit("mail", Message::builder("mail.send").json(&format!("Welcome, {name}!")))?;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> onward::Result<()> {
//! let kit = Kit::start(); // in a `#[tokio::test(start_paused = true)]`
//! kit.onward().enqueue("joined", Message::builder("user.joined").json("Ada")).await?;
//!
//! let report = kit.run_due(kit.worker().handle("joined", welcome)).await?;
//!
//! assert_eq!(report.done, 1);
//! let mail = kit.assert_enqueued("mail", "mail.send").await;
//! assert_eq!(mail.data.parse::<String>()?, "Welcome, Ada!");
//! kit.assert_empty("joined").await;
//! # Ok(())
//! # }
//! ```

use crate::{
    Onward,
    work::{Report, Worker},
};
use onward_core::{InletConfig, Message, MessageQuery, MessageState, MessageView, PAGE_MAX, Result};
use onward_embedded::{MemoryEngine, Options};
use onward_env::{TokioEnv, pass};
use std::{sync::Arc, time::Duration};

/// An engine in memory on tokio's clock.
///
/// Made inside of a tokio runtime whose clock is paused (`#[tokio::test(start_paused = true)]`, with tokio's feature
/// `test-util`), it takes no real time to wait: the clock goes on by itself when every task waits. The wall clock
/// begins at 2026-01-01.
#[derive(Debug, Clone)]
pub struct Kit {
    onward: Onward,
}

impl Kit {
    /// An empty engine, now.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start() -> Self {
        let env = TokioEnv::start();
        let engine = MemoryEngine::new(env.clone(), Options::default());
        Self { onward: Onward::new(Arc::new(engine), env) }
    }

    /// The handle that the code under test is given.
    pub fn onward(&self) -> &Onward {
        &self.onward
    }

    /// A worker without handlers yet.
    pub fn worker(&self) -> Worker {
        Worker::new(&self.onward)
    }

    /// Declares a queue; the default of a kit's queue keeps results for a day, so that they can be looked at.
    ///
    /// # Errors
    /// As [`Onward::declare_queue`].
    pub async fn declare(&self, queue: &str, config: InletConfig) -> Result<()> {
        let kept = config.result_retention_ms.max(86_400_000);
        let config = InletConfig { result_retention_ms: kept, ..config };
        self.onward.declare_queue(queue, config).await.map(drop)
    }

    /// Lets so much time pass.
    pub async fn pass(&self, span: Duration) {
        pass(&**self.onward.env(), span).await;
    }

    /// Runs a worker until nothing waits in its inlets that is due; what is delayed stays for later.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run_due(&self, worker: Worker) -> Result<Report> {
        worker.run_until_none_due().await
    }

    /// Runs a worker until its inlets are empty: delays and retries pass as well, on the paused clock at once.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn drain(&self, worker: Worker) -> Result<Report> {
        worker.run_until_empty().await
    }

    /// What waits in a queue or subscription, due or not, in the order of its due times; at most [`PAGE_MAX`] of each.
    ///
    /// An inlet that does not exist has nothing.
    pub async fn enqueued(&self, inlet: &str) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for state in [MessageState::Waiting, MessageState::Delayed] {
            messages.extend(self.views(inlet, state).await.into_iter().map(|view| view.message));
        }
        messages
    }

    /// The dead letters of a queue or subscription, with their causes; at most [`PAGE_MAX`].
    pub async fn dead(&self, inlet: &str) -> Vec<MessageView> {
        self.views(inlet, MessageState::Dead).await
    }

    /// The first message of a type that waits, due or not.
    ///
    /// # Panics
    /// When there is none; it says what there is.
    #[track_caller]
    pub fn assert_enqueued<'a>(
        &'a self,
        inlet: &'a str,
        kind: &'a str,
    ) -> impl Future<Output = Message> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let all = self.enqueued(inlet).await;
            let found = all.iter().find(|message| &*message.kind == kind).cloned();
            found.unwrap_or_else(|| {
                let kinds: Vec<&str> = all.iter().map(|message| &*message.kind).collect();
                panic!("{caller}: no `{kind}` waits in `{inlet}`; there: {kinds:?}")
            })
        }
    }

    /// Nothing waits, due or not, and nothing is dead.
    ///
    /// # Panics
    /// When something is; it says what.
    #[track_caller]
    pub fn assert_empty<'a>(&'a self, inlet: &'a str) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let waiting: Vec<_> = self.enqueued(inlet).await.into_iter().map(|m| m.kind).collect();
            let dead: Vec<_> = self.dead(inlet).await.into_iter().map(|view| view.causes).collect();
            let empty = waiting.is_empty() && dead.is_empty();
            assert!(empty, "{caller}: `{inlet}` is not empty; waiting: {waiting:?}, dead: {dead:?}");
        }
    }

    async fn views(&self, inlet: &str, state: MessageState) -> Vec<MessageView> {
        let inlet = inlet.parse().expect("a test names a queue or subscription rightly");
        let query = MessageQuery::state(inlet, state, PAGE_MAX);
        match self.onward.engine().find(query).await {
            Ok(page) => page.items,
            Err(error) if error.kind() == onward_core::ErrorKind::NotFound => Vec::new(),
            Err(error) => panic!("the engine in memory answers while it is open: {error}"),
        }
    }
}
