//! The embedded engine under the same loads.

use crate::load::{self, Figures};
use crate::plan::Measured;
use anyhow::{Context, Result, ensure};
use onward_core::*;
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const QUEUE: &str = "bench/work";
const FILL_GROUP: u64 = 1_000;

#[derive(Clone)]
pub(crate) struct Bed {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) queue: Name,
    pub(crate) data: Payload,
    holder: Holder,
}

impl Bed {
    pub(crate) async fn open(dir: &Path) -> Result<Self> {
        Self::with(dir, InletConfig::default()).await
    }

    pub(crate) async fn with(dir: &Path, config: InletConfig) -> Result<Self> {
        let env = SystemEnv::shared();
        let engine: Arc<dyn Engine> =
            Arc::new(EmbeddedEngine::open(dir, OpenOptions::default(), env.clone())?);
        let queue: Name = QUEUE.parse()?;
        let config = Box::new(config);
        engine.declare(TopologyChange::Queue { name: queue.clone(), config, update: false }).await?;
        let data = Payload::bytes(vec![7; 1024], "application/octet-stream")?;
        let holder = Holder { worker: "bench".into(), process: ProcessId("bench".into()) };
        Ok(Self { engine, env, queue, data, holder })
    }

    /// The same engine for one more producer, who has data of his own as any program has.
    pub(crate) fn producer(&self) -> Self {
        let content_type = Some(self.data.content_type().into());
        let data = Payload::trusted(self.data.as_bytes().to_vec().into(), content_type);
        let queue = QUEUE.parse().expect("a constant that was parsed before");
        Self { data, queue, ..self.clone() }
    }

    fn enqueue_op(&self) -> Result<Op> {
        let message = Message::builder("bench.work").data(self.data.clone()).build(&*self.env)?;
        Ok(Op::Enqueue { queue: self.queue.clone(), message: Box::new(message) })
    }

    async fn enqueue(&self, count: u64) -> Result<()> {
        let ops = (0..count).map(|_| self.enqueue_op()).collect::<Result<Vec<_>>>()?;
        self.engine.commit(self.engine.prepare(ops)?).await?;
        Ok(())
    }

    pub(crate) async fn lease(&self, wait: Duration) -> Result<Vec<Delivery>> {
        let request_id = RequestId::generate(&*self.env);
        let mut request =
            LeaseRequest::one(Inlet::Queue(self.queue.clone()), self.holder.clone(), request_id);
        request.wait = wait;
        Ok(self.engine.lease(request).await?)
    }

    pub(crate) async fn ack(&self, tokens: Vec<LeaseToken>) -> Result<()> {
        let ack = |token| Op::Settle { token, outcome: Outcome::Ack { result: None } };
        let ops = tokens.into_iter().map(ack).collect();
        self.engine.commit(self.engine.prepare(ops)?).await?;
        Ok(())
    }

    async fn one_cycle(&self) -> Result<()> {
        self.enqueue(1).await?;
        let leased = self.lease(Duration::from_secs(10)).await?;
        ensure!(!leased.is_empty(), "no delivery for a message that was enqueued");
        self.ack(leased.into_iter().map(|d| d.token).collect()).await
    }

    /// Fills the queue with so many messages.
    async fn fill(&self, count: u64) -> Result<()> {
        let left = Arc::new(AtomicU64::new(count.div_ceil(FILL_GROUP)));
        let fillers: Vec<_> = (0..4)
            .map(|_| {
                let (bed, left) = (self.clone(), left.clone());
                tokio::spawn(async move {
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        bed.enqueue(FILL_GROUP).await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for filler in fillers {
            filler.await??;
        }
        Ok(())
    }

    pub(crate) async fn close(&self) -> Result<()> {
        Ok(self.engine.close(Duration::from_secs(30)).await?)
    }
}

/// A load task has nobody to hand an error to: the contestant ends, and the parent says which one.
pub(crate) async fn or_end(work: impl Future<Output = Result<()>>) {
    if let Err(error) = work.await {
        eprintln!("bench: {error:#}");
        std::process::exit(3);
    }
}

pub(crate) async fn enqueue(dir: &Path, producers: usize, group: u64, span: Duration) -> Result<Figures> {
    let bed = Bed::open(dir).await?;
    let one = |_| {
        let bed = bed.producer();
        move || {
            let bed = bed.clone();
            async move { or_end(bed.enqueue(group)).await }
        }
    };
    Ok(load::run(producers, group, span, one).await)
}

pub(crate) async fn cycle(dir: &Path, workers: usize, span: Duration) -> Result<Figures> {
    let bed = Bed::open(dir).await?;
    Ok(cycles(&bed, workers, span).await)
}

async fn cycles(bed: &Bed, workers: usize, span: Duration) -> Figures {
    let one = |_| {
        let bed = bed.clone();
        move || {
            let bed = bed.clone();
            async move { or_end(bed.one_cycle()).await }
        }
    };
    load::run(workers, 1, span, one).await
}

/// How many times slower the cycle is with a backlog.
pub(crate) async fn cycle_backlog(dir: &Path, backlog: u64, span: Duration) -> Result<Measured> {
    let bed = Bed::open(dir).await?;
    let without = cycles(&bed, 64, span).await;
    bed.fill(backlog).await?;
    let with = cycles(&bed, 64, span).await;
    let value = without.per_second / with.per_second.max(1.0);
    Ok(Measured { value, ..with.into() })
}

/// Bytes of this process's memory that each waiting message takes.
pub(crate) async fn memory(dir: &Path, backlog: u64) -> Result<Measured> {
    // Without a window only unfinished messages are remembered, which is what this figure is about.
    let bed = Bed::with(dir, InletConfig { dedup_window_ms: 0, ..InletConfig::default() }).await?;
    bed.fill(10_000).await?;
    let before = resident_bytes()?;
    bed.fill(backlog).await?;
    let value = resident_bytes()?.saturating_sub(before) as f64 / backlog as f64;
    bed.close().await?;
    Ok(Measured { value, ..Measured::default() })
}

fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .context("no RssAnon in /proc/self/status")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no figure in RssAnon")?.parse()?;
    Ok(kib * 1024)
}

/// Fills a folder in a child that is then killed, and measures until the first message is leased here.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn restart(dir: &Path, backlog: u64) -> Result<Measured> {
    let folder = dir.join("folder");
    if dir.ends_with("folder") {
        let runtime = load::runtime()?;
        runtime.block_on(async {
            Bed::open(dir).await?.fill(backlog).await?;
            println!("filled");
            anyhow::Ok(())
        })?;
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new())?;
        return Ok(Measured::default());
    }
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--one", "restart", "onward", "--backlog", &backlog.to_string(), "--dir"])
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut filled = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().context("piped above")?, &mut filled)?;
    child.kill()?;
    child.wait()?;
    let runtime = load::runtime()?;
    let began = Instant::now();
    let leased = runtime.block_on(async { Bed::open(&folder).await?.lease(Duration::ZERO).await })?;
    ensure!(leased.len() == 1, "no message after the restart");
    Ok(Measured { value: began.elapsed().as_secs_f64() * 1e3, ..Measured::default() })
}

/// MiB of disk that are left after a backlog was drained and the engine had a moment.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn disk(dir: &Path, backlog: u64) -> Result<Measured> {
    let bed = Bed::open(dir).await?;
    bed.fill(backlog).await?;
    loop {
        let request_id = RequestId::generate(&*bed.env);
        let mut request = LeaseRequest::one(Inlet::Queue(bed.queue.clone()), bed.holder.clone(), request_id);
        request.count_max = 1_000;
        let leased = bed.engine.lease(request).await?;
        if leased.is_empty() {
            break;
        }
        bed.ack(leased.into_iter().map(|d| d.token).collect()).await?;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let value = bytes_of(dir)? as f64 / f64::from(1 << 20);
    Ok(Measured { value, ..Measured::default() })
}

fn bytes_of(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let (path, meta) = entry.and_then(|e| Ok((e.path(), e.metadata()?)))?;
        bytes += if meta.is_dir() { bytes_of(&path)? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}

/// Processor time, in percent of one core, of an engine and a worker with nothing to do.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn idle(dir: &Path, span: Duration) -> Result<Measured> {
    let bed = Bed::open(dir).await?;
    let onward = onward::Onward::new(bed.engine.clone(), bed.env.clone());
    let worker = onward::work::Worker::new(&onward).handle(QUEUE, |_: Message| async {});
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>()));
    bed.fill(1_000).await?;
    // The preparation of spare segments is over by then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = load::processor_seconds();
    tokio::time::sleep(span).await;
    let used = load::processor_seconds() - before;
    running.abort();
    Ok(Measured { value: 100.0 * used / span.as_secs_f64(), ..Measured::default() })
}
