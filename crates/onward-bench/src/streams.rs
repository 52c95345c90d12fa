//! Streams: appending with an expected revision, and reading everything from the start.

use crate::{
    load::{self, Figures},
    ours::or_end,
    plan::Measured,
    raw,
};
use anyhow::{Result, ensure};
use onward_core::*;
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Streams that are appended to.
pub(crate) const STREAMS: u64 = 100_000;
/// Data of one event.
pub(crate) const EVENT_BYTES: usize = 256;
/// Events that are read from the start.
const REPLAYED: u64 = 2_000_000;
/// Appends of one commit while filling, and events of each.
const FILL: (u64, u64) = (200, 5);

/// How many events each stream has, as far as the writers were answered.
pub(crate) struct Revisions(Vec<AtomicU64>);

impl Revisions {
    pub(crate) fn of_one_event_each() -> Self {
        Self((0..STREAMS).map(|_| AtomicU64::new(1)).collect())
    }

    pub(crate) fn events(&self, stream: u64) -> u64 {
        self.0[stream as usize].load(Ordering::Acquire)
    }

    pub(crate) fn appended(&self, stream: u64) {
        self.0[stream as usize].fetch_add(1, Ordering::AcqRel);
    }
}

/// Draws streams, each writer in an order of its own.
pub(crate) fn draw(writer: usize) -> impl FnMut() -> u64 + Send + 'static {
    let mut x = (writer as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % STREAMS
    }
}

#[derive(Clone)]
struct Bed {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    data: Payload,
}

fn stream_of(number: u64) -> Result<StreamName> {
    Ok(format!("bench/account-{number}").parse()?)
}

impl Bed {
    fn open(dir: &Path) -> Result<Self> {
        let env = SystemEnv::shared();
        let engine = Arc::new(EmbeddedEngine::open(dir, OpenOptions::default(), env.clone())?);
        let data = Payload::bytes(vec![7; EVENT_BYTES], "application/octet-stream")?;
        Ok(Self { engine, env, data })
    }

    fn append_op(&self, stream: u64, events: u64, expected: Expected) -> Result<Op> {
        let event = || {
            let message = Message::builder("bench.happened").data(self.data.clone()).build(&*self.env)?;
            Ok(Event { message, tags: Vec::new() })
        };
        let events = (0..events).map(|_| event()).collect::<Result<_>>()?;
        Ok(Op::Append { stream: stream_of(stream)?, events, expected, condition: None })
    }

    async fn commit(&self, ops: Vec<Op>) -> onward_core::Result<()> {
        self.engine.commit(self.engine.prepare(ops)?).await?;
        Ok(())
    }

    /// Appends `events` events to each of `streams`, by commits of `FILL.0` of them.
    async fn fill(&self, streams: std::ops::Range<u64>, events: u64) -> Result<()> {
        let mut from = streams.start;
        while from < streams.end {
            let to = (from + FILL.0).min(streams.end);
            let ops = (from..to).map(|stream| self.append_op(stream % STREAMS, events, Expected::Any));
            self.commit(ops.collect::<Result<_>>()?).await?;
            from = to;
        }
        Ok(())
    }

    /// Appends one event where nobody was meanwhile.
    async fn append_one(&self, revisions: &Revisions, mut stream: u64) -> Result<()> {
        loop {
            let expected = Expected::Revision(revisions.events(stream) - 1);
            match self.commit(vec![self.append_op(stream, 1, expected)?]).await {
                Ok(()) => break revisions.appended(stream),
                Err(error) if error.kind() == ErrorKind::Conflict => stream = (stream + 1) % STREAMS,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads every event from the start; answers how many there are.
    async fn replay(&self) -> Result<u64> {
        let (mut ask, mut events) = (EventRead::all_of(EventScope::All), 0);
        loop {
            let slice = self.engine.read_events(ask.clone()).await?;
            events += slice.events.len() as u64;
            std::hint::black_box(&slice.events);
            match slice.next {
                Some(next) => ask.from = next,
                None => return Ok(events),
            }
        }
    }

    async fn close(self) -> Result<()> {
        Ok(self.engine.close(Duration::from_secs(30)).await?)
    }
}

/// So many writers, each appending one event after the other to streams drawn at random.
pub(crate) async fn append(dir: &Path, writers: usize, span: Duration) -> Result<Figures> {
    let bed = Bed::open(dir)?;
    bed.fill(0..STREAMS, 1).await?;
    let revisions = Arc::new(Revisions::of_one_event_each());
    let one = |writer| {
        let (bed, revisions) = (bed.clone(), revisions.clone());
        let mut next = draw(writer);
        move || {
            let (bed, revisions, stream) = (bed.clone(), revisions.clone(), next());
            async move { or_end(bed.append_one(&revisions, stream)).await }
        }
    };
    Ok(load::run(writers, 1, span, one).await)
}

/// Millions of events read from the start in a second, over and over, with the log in the page cache.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn replay_warm(dir: &Path, span: Duration) -> Result<Measured> {
    let bed = Bed::open(dir)?;
    bed.fill(0..REPLAYED / FILL.1, FILL.1).await?;
    // The first pass fills the page cache.
    ensure!(bed.replay().await? == REPLAYED, "not every event was read");
    let (began, used, mut events) = (Instant::now(), load::processor_seconds(), 0);
    while began.elapsed() < span {
        events += bed.replay().await?;
    }
    let measured = rate(events, began.elapsed(), load::processor_seconds() - used);
    Ok(Measured { value: measured.per_second / 1e6, ..measured })
}

/// Reads everything once with nothing of it in the page cache.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn replay_cold(dir: &Path) -> Result<Measured> {
    let bed = Bed::open(dir)?;
    bed.fill(0..REPLAYED / FILL.1, FILL.1).await?;
    bed.close().await?;
    let bed = Bed::open(dir)?;
    // Read once before, so that the machine has given the memory that the pages need.
    ensure!(bed.replay().await? == REPLAYED, "not every event was read");
    forget_pages(dir)?;
    let (began, used) = (Instant::now(), load::processor_seconds());
    let events = bed.replay().await?;
    ensure!(events == REPLAYED, "{events} of {REPLAYED} events were read");
    Ok(rate(events, began.elapsed(), load::processor_seconds() - used))
}

/// The same on the bare log.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn replay_raw(dir: &Path) -> Result<Measured> {
    raw::replay::fill(dir, REPLAYED, EVENT_BYTES)?;
    ensure!(raw::replay::read(dir)? == REPLAYED, "not every record was read");
    forget_pages(dir)?;
    let (began, used) = (Instant::now(), load::processor_seconds());
    let records = raw::replay::read(dir)?;
    ensure!(records == REPLAYED, "{records} of {REPLAYED} records were read");
    Ok(rate(records, began.elapsed(), load::processor_seconds() - used))
}

fn rate(items: u64, took: Duration, processor_seconds: f64) -> Measured {
    let per_second = items as f64 / took.as_secs_f64();
    Measured { per_second, cpu_us: processor_seconds * 1e6 / items.max(1) as f64, ..Measured::default() }
}

/// Makes the system forget what it holds of a folder's files.
fn forget_pages(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            forget_pages(&path)?;
        } else {
            let file = std::fs::File::open(&path)?;
            rustix::fs::fdatasync(&file)?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}
