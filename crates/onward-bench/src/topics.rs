//! Topics: fan-out beside filling queues, and what idle subscriptions cost a publisher.

use crate::{load, ours::or_end, plan::Measured};
use anyhow::{Result, ensure};
use onward_core::*;
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

const READERS: usize = 4;
const PRODUCERS: usize = 16;
/// Messages published, or put into each queue, by one commit.
const GROUP: usize = 16;
/// Messages that a worker takes and acknowledges at once.
const TAKEN: u32 = 256;
const MANY: usize = 1_000;

#[derive(Clone)]
struct Bed {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    topic: Name,
    data: Payload,
}

impl Bed {
    async fn open(dir: &Path, subscriptions: usize) -> Result<Self> {
        let env = SystemEnv::shared();
        let engine: Arc<dyn Engine> =
            Arc::new(EmbeddedEngine::open(dir, OpenOptions::default(), env.clone())?);
        let topic: Name = "bench/events".parse()?;
        let data = Payload::bytes(vec![7; 1024], "application/octet-stream")?;
        // By size, so that idle subscriptions do not make it grow; those that work are never so far behind.
        let config = TopicConfig { retention_bytes: Some(256 << 20), ..TopicConfig::default() };
        engine.declare(TopologyChange::Topic { name: topic.clone(), config, update: false }).await?;
        for number in 0..subscriptions {
            let change = TopologyChange::Subscription {
                topic: topic.clone(),
                name: format!("s{number}").into(),
                config: Box::default(),
                filter: Filter::default(),
                start: StartFrom::Now,
                update: false,
            };
            engine.declare(change).await?;
        }
        Ok(Self { engine, env, topic, data })
    }

    fn message(&self) -> Result<Box<Message>> {
        Ok(Box::new(Message::builder("bench.event").data(self.data.clone()).build(&*self.env)?))
    }

    async fn commit(&self, ops: Vec<Op>) -> Result<()> {
        self.engine.commit(self.engine.prepare(ops)?).await?;
        Ok(())
    }

    async fn publish(&self) -> Result<()> {
        let op = || Ok(Op::Publish { topic: self.topic.clone(), message: self.message()? });
        let ops = (0..GROUP).map(|_| op()).collect::<Result<Vec<_>>>()?;
        self.commit(ops).await
    }

    /// The same messages into each of several queues.
    async fn fill(&self, queues: &[Name]) -> Result<()> {
        let mut ops = Vec::with_capacity(GROUP * queues.len());
        for _ in 0..GROUP {
            let message = self.message()?;
            ops.extend(
                queues.iter().map(|queue| Op::Enqueue { queue: queue.clone(), message: message.clone() }),
            );
        }
        self.commit(ops).await
    }

    /// Takes and acknowledges; answers how many.
    async fn drain(&self, subscription: &Inlet) -> Result<u64> {
        let holder = Holder { worker: "bench".into(), process: ProcessId("bench".into()) };
        let mut request = LeaseRequest::one(subscription.clone(), holder, RequestId::generate(&*self.env));
        (request.count_max, request.wait) = (TAKEN, Duration::from_millis(100));
        let leased = self.engine.lease(request).await?;
        let ack =
            |delivery: Delivery| Op::Settle { token: delivery.token, outcome: Outcome::Ack { result: None } };
        let ops: Vec<Op> = leased.into_iter().map(ack).collect();
        let count = ops.len() as u64;
        if count > 0 {
            self.commit(ops).await?;
        }
        Ok(count)
    }

    async fn publishes(&self, span: Duration) -> load::Figures {
        let one = |_| {
            let bed = self.clone();
            move || {
                let bed = bed.clone();
                async move { or_end(bed.publish()).await }
            }
        };
        load::run(PRODUCERS, GROUP as u64, span, one).await
    }
}

/// Deliveries that were acknowledged by four subscriptions, as a share of messages put into four queues; and that rate.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn fan_out(dir: &Path, span: Duration) -> Result<Measured> {
    let filled = {
        let bed = Bed::open(&dir.join("queues"), 0).await?;
        let queues: Vec<Name> = (0..READERS)
            .map(|number| format!("bench/q{number}").parse())
            .collect::<onward_core::Result<_>>()?;
        let queues: Arc<[Name]> = queues.into();
        let one = |_| {
            let (bed, queues) = (bed.clone(), queues.clone());
            move || {
                let (bed, queues) = (bed.clone(), queues.clone());
                async move { or_end(bed.fill(&queues)).await }
            }
        };
        let figures = load::run(PRODUCERS, (GROUP * READERS) as u64, span, one).await;
        bed.engine.close(Duration::from_secs(30)).await?;
        figures
    };
    let bed = Bed::open(&dir.join("topic"), READERS).await?;
    let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut workers = Vec::new();
    for number in 0..READERS {
        let inlet = Inlet::subscription(bed.topic.clone(), &format!("s{number}"))?;
        for _ in 0..2 {
            let (bed, done, stop, inlet) = (bed.clone(), done.clone(), stop.clone(), inlet.clone());
            workers.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    done.fetch_add(bed.drain(&inlet).await?, Ordering::Relaxed);
                }
                anyhow::Ok(())
            }));
        }
    }
    let counted = {
        let done = done.clone();
        tokio::spawn(async move {
            // The warm-up of the load is over then.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let before = done.load(Ordering::Relaxed);
            tokio::time::sleep(span).await;
            done.load(Ordering::Relaxed) - before
        })
    };
    let published = bed.publishes(span).await;
    let acked = counted.await? as f64 / span.as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await??;
    }
    ensure!(acked > 0.0, "nothing was acknowledged");
    let value = acked / filled.per_second.max(1.0);
    Ok(Measured { value, per_second: acked, ..published.into() })
}

/// How many times slower publishing is with 1,000 subscriptions than with none.
pub(crate) async fn subscriptions(dir: &Path, span: Duration) -> Result<Measured> {
    let without = {
        let bed = Bed::open(&dir.join("none"), 0).await?;
        let figures = bed.publishes(span).await;
        bed.engine.close(Duration::from_secs(30)).await?;
        figures
    };
    let bed = Bed::open(&dir.join("many"), MANY).await?;
    let with = bed.publishes(span).await;
    let value = without.per_second / with.per_second.max(1.0);
    Ok(Measured { value, ..with.into() })
}
