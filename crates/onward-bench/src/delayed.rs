//! Messages that become due beside very many that are not.

use crate::{load, ours::or_end, plan::Measured};
use anyhow::{Result, ensure};
use onward_core::*;
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use std::{path::Path, sync::Arc, time::Duration};

/// Messages that are not due while it is measured.
const MANY: u64 = 1_000_000;
const FILL_GROUP: u64 = 1_000;
const WORKERS: usize = 64;
/// How long a message of the load waits.
const DELAY: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_secs(3_600);

#[derive(Clone)]
struct Bed {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    queue: Name,
    data: Payload,
}

impl Bed {
    async fn open(dir: &Path) -> Result<Self> {
        let env = SystemEnv::shared();
        let engine: Arc<dyn Engine> =
            Arc::new(EmbeddedEngine::open(dir, OpenOptions::default(), env.clone())?);
        let queue: Name = "bench/later".parse()?;
        let config = Box::new(InletConfig::default());
        engine.declare(TopologyChange::Queue { name: queue.clone(), config, update: false }).await?;
        let data = Payload::bytes(vec![7; 1024], "application/octet-stream")?;
        Ok(Self { engine, env, queue, data })
    }

    fn op(&self, after: Duration) -> Result<Op> {
        let due = self.env.now().plus(after);
        let message = Message::builder("bench.later").data(self.data.clone()).due(due).build(&*self.env)?;
        Ok(Op::Enqueue { queue: self.queue.clone(), message: Box::new(message) })
    }

    async fn commit(&self, ops: Vec<Op>) -> Result<()> {
        self.engine.commit(self.engine.prepare(ops)?).await?;
        Ok(())
    }

    /// Messages that are due over an hour, an hour from now.
    async fn fill(&self) -> Result<()> {
        for from in (0..MANY).step_by(FILL_GROUP as usize) {
            let after = |n: u64| LATER + Duration::from_micros(n * 3_600);
            let ops = (from..from + FILL_GROUP).map(|n| self.op(after(n))).collect::<Result<_>>()?;
            self.commit(ops).await?;
        }
        Ok(())
    }

    /// One message is enqueued, becomes due, and is leased and acknowledged.
    async fn cycle(&self) -> Result<()> {
        self.commit(vec![self.op(DELAY)?]).await?;
        let holder = Holder { worker: "bench".into(), process: ProcessId("bench".into()) };
        let inlet = Inlet::Queue(self.queue.clone());
        let mut request = LeaseRequest::one(inlet, holder, RequestId::generate(&*self.env));
        request.wait = Duration::from_secs(10);
        let leased = self.engine.lease(request).await?;
        ensure!(!leased.is_empty(), "no delivery for a message that is due");
        let ack =
            |delivery: Delivery| Op::Settle { token: delivery.token, outcome: Outcome::Ack { result: None } };
        self.commit(leased.into_iter().map(ack).collect()).await
    }

    async fn cycles(&self, span: Duration) -> load::Figures {
        let one = |_| {
            let bed = self.clone();
            move || {
                let bed = bed.clone();
                async move { or_end(bed.cycle()).await }
            }
        };
        load::run(WORKERS, 1, span, one).await
    }
}

/// How many times slower delayed messages are handed out and acknowledged with a million beside them that are not due.
pub(crate) async fn cycle(dir: &Path, span: Duration) -> Result<Measured> {
    let bed = Bed::open(dir).await?;
    let without = bed.cycles(span).await;
    bed.fill().await?;
    let with = bed.cycles(span).await;
    let value = without.per_second / with.per_second.max(1.0);
    Ok(Measured { value, ..with.into() })
}
