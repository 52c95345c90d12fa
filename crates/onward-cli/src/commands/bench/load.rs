//! The load: many producers or workers at once for a while, each doing one thing after the other.

use crate::exit::Outcome;
use futures::future::try_join_all;
use onward_core::{
    Engine, Env, Error, Holder, Inlet, LeaseRequest, Message, Name, Op, Payload, ProcessId, RequestId,
};
use serde::Serialize;
use std::{sync::Arc, time::Duration};

/// How long a worker waits for a message that others may still have.
const LEASE_WAIT: Duration = Duration::from_millis(200);

/// What was measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Figures {
    pub(super) count: u64,
    pub(super) per_second: u64,
    pub(super) p50_micros: u64,
    pub(super) p99_micros: u64,
}

/// What every measurement works with.
#[derive(Debug, Clone)]
pub(super) struct Load {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    queue: Name,
    data: Payload,
    span: Duration,
}

impl Load {
    pub(super) fn new(engine: Arc<dyn Engine>, env: Arc<dyn Env>, bytes: usize, span: Duration) -> Self {
        let data = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)));
        let queue = "bench".parse().expect("a constant that is a name");
        Self { engine, env, queue, data: Payload::trusted(data.into(), None), span }
    }

    /// Each producer enqueues one message after the other; an enqueue ends when it is durable.
    pub(super) async fn enqueue(&self, producers: u32) -> Outcome<Figures> {
        self.measure(producers, |load, begun| async move {
            let mut spans = Vec::new();
            while load.env.monotonic().saturating_sub(begun) < load.span {
                let before = load.env.monotonic();
                let message = Message::builder("bench").data(load.data.clone()).build(&*load.env)?;
                let op = Op::Enqueue { queue: load.queue.clone(), message: Box::new(message) };
                load.engine.commit(load.engine.prepare(vec![op])?).await?;
                spans.push(load.env.monotonic().saturating_sub(before));
            }
            Ok(spans)
        })
        .await
    }

    /// Each worker leases one message and acknowledges it, one after the other; an acknowledgement ends when durable.
    pub(super) async fn cycle(&self, workers: u32) -> Outcome<Figures> {
        self.measure(workers, |load, begun| async move {
            let mut spans = Vec::new();
            let holder = Holder { worker: "bench".into(), process: ProcessId("bench".into()) };
            while load.env.monotonic().saturating_sub(begun) < load.span {
                let before = load.env.monotonic();
                let (inlet, id) = (Inlet::Queue(load.queue.clone()), RequestId::generate(&*load.env));
                let request =
                    LeaseRequest { wait: LEASE_WAIT, ..LeaseRequest::one(inlet, holder.clone(), id) };
                let Some(delivery) = load.engine.lease(request).await?.pop() else { break };
                let outcome = onward_core::Outcome::Ack { result: None };
                let op = Op::Settle { token: delivery.token, outcome };
                load.engine.commit(load.engine.prepare(vec![op])?).await?;
                spans.push(load.env.monotonic().saturating_sub(before));
            }
            Ok(spans)
        })
        .await
    }

    async fn measure<F>(&self, tasks: u32, work: impl Fn(Self, Duration) -> F) -> Outcome<Figures>
    where
        F: Future<Output = Result<Vec<Duration>, Error>> + Send + 'static,
    {
        let begun = self.env.monotonic();
        let running = (0..tasks).map(|_| tokio::spawn(work(self.clone(), begun)));
        let ended = try_join_all(running).await;
        let took = self.env.monotonic().saturating_sub(begun);
        let ended = ended.map_err(|e| Error::internal(format!("a task of the measurement failed: {e}")))?;
        let spans: Vec<Vec<Duration>> = ended.into_iter().collect::<Result<_, Error>>()?;
        Ok(figures(spans.concat(), took))
    }
}

fn figures(mut spans: Vec<Duration>, took: Duration) -> Figures {
    spans.sort_unstable();
    let at = |share: f64| {
        let index = (spans.len() as f64 * share) as usize;
        spans.get(index.min(spans.len().saturating_sub(1))).map_or(0, |span| span.as_micros() as u64)
    };
    let count = spans.len() as u64;
    let per_second = (count as f64 / took.as_secs_f64().max(f64::EPSILON)) as u64;
    Figures { count, per_second, p50_micros: at(0.5), p99_micros: at(0.99) }
}
