//! Measures the embedded engine on this machine's disk, for tuning: plain lines, no judgement.
//!
//! ```text
//! cargo run --release -p onward-embedded --example enginebench -- DIR all
//! cargo run --release -p onward-embedded --example enginebench -- DIR enqueue PRODUCERS BATCH SECONDS
//! cargo run --release -p onward-embedded --example enginebench -- DIR cycle WORKERS BACKLOG SECONDS
//! cargo run --release -p onward-embedded --example enginebench -- DIR fill N      # then dies without closing
//! cargo run --release -p onward-embedded --example enginebench -- DIR restart     # first message after it
//! ```
#![allow(clippy::unwrap_used, reason = "a measurement that fails should stop at once")]

use onward_core::{
    Engine, Env, Holder, Inlet, LeaseRequest, Message, Name, Op, Outcome, Payload, ProcessId, RequestId,
};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

const PAYLOAD_BYTES: usize = 1024;
const FILL_BATCH: u64 = 1000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |at: usize, default: u64| words.get(at).map_or(default, |word| word.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let Some(dir) = words.first().map(Path::new) else { return eprintln!("name a folder and a test") };
    runtime.block_on(async {
        match words.get(1).copied().unwrap_or("all") {
            "enqueue" => enqueue(dir, number(2, 64), number(3, 1), number(4, 5)).await,
            "cycle" => cycle(dir, number(2, 64), number(3, 0), number(4, 5)).await,
            "fill" => fill_and_die(dir, number(2, 1_000_000)).await,
            "restart" => restart(dir).await,
            _ => {
                enqueue(dir, 64, 1, 5).await;
                enqueue(dir, 1, 1, 5).await;
                enqueue(dir, 64, 100, 5).await;
                cycle(dir, 64, 0, 5).await;
            }
        }
    });
}

fn queue() -> Name {
    "bench".parse().unwrap()
}

async fn open(dir: &Path) -> Arc<EmbeddedEngine> {
    let env = SystemEnv::shared();
    let before = env.monotonic();
    let engine = Arc::new(EmbeddedEngine::open(dir, OpenOptions::default(), env.clone()).unwrap());
    println!("opened in {:.0} ms", (env.monotonic() - before).as_secs_f64() * 1e3);
    engine
}

fn message(payload: &Payload) -> Op {
    let message = Message::builder("bench.thing").data(payload.clone()).build(&SystemEnv).unwrap();
    Op::Enqueue { queue: queue(), message: Box::new(message) }
}

fn payload() -> Payload {
    Payload::bytes(vec![7u8; PAYLOAD_BYTES], "application/octet-stream").unwrap()
}

#[derive(Debug, Default)]
struct Meter {
    stop: AtomicBool,
    count: AtomicU64,
    latencies: parking_lot::Mutex<Vec<u32>>,
}

impl Meter {
    fn report(&self, what: &str, elapsed: Duration) {
        let mut latencies = std::mem::take(&mut *self.latencies.lock());
        latencies.sort_unstable();
        let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied().unwrap_or(0);
        let rate = self.count.load(Relaxed) as f64 / elapsed.as_secs_f64();
        println!(
            "{what}: {rate:.0}/s, p50 {} us, p99 {} us, rss {} MB",
            at(0.5),
            at(0.99),
            rss_bytes() >> 20
        );
    }
}

async fn timed(meter: &Arc<Meter>, what: &str, seconds: u64, handles: Vec<tokio::task::JoinHandle<()>>) {
    let before = SystemEnv.monotonic();
    SystemEnv.sleep(Duration::from_secs(seconds)).await;
    meter.stop.store(true, Relaxed);
    for handle in handles {
        handle.await.unwrap();
    }
    meter.report(what, SystemEnv.monotonic() - before);
}

async fn enqueue(dir: &Path, producers: u64, batch: u64, seconds: u64) {
    let engine = open(dir).await;
    let meter = Arc::new(Meter::default());
    let task = |_| {
        let (engine, meter, payload) = (engine.clone(), meter.clone(), payload());
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            while !meter.stop.load(Relaxed) {
                let ready: Vec<_> =
                    (0..batch).map(|_| engine.prepare(vec![message(&payload)]).unwrap()).collect();
                let before = SystemEnv.monotonic();
                for result in engine.submit(ready).await.unwrap() {
                    result.unwrap();
                }
                latencies.push((SystemEnv.monotonic() - before).as_micros() as u32);
                meter.count.fetch_add(batch, Relaxed);
            }
            meter.latencies.lock().extend(latencies);
        })
    };
    let handles = (0..producers).map(task).collect();
    timed(&meter, &format!("enqueue, {producers} producers, batches of {batch}"), seconds, handles).await;
    engine.close(Duration::from_secs(5)).await.unwrap();
}

async fn cycle(dir: &Path, workers: u64, backlog: u64, seconds: u64) {
    let engine = open(dir).await;
    fill(&engine, backlog).await;
    let meter = Arc::new(Meter::default());
    let task = |number| {
        let (engine, meter, payload) = (engine.clone(), meter.clone(), payload());
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            while !meter.stop.load(Relaxed) {
                let before = SystemEnv.monotonic();
                let ready = engine.prepare(vec![message(&payload)]).unwrap();
                engine.commit(ready).await.unwrap();
                lease_and_ack(&*engine, number).await;
                latencies.push((SystemEnv.monotonic() - before).as_micros() as u32);
                meter.count.fetch_add(1, Relaxed);
            }
            meter.latencies.lock().extend(latencies);
        })
    };
    let handles = (0..workers).map(task).collect();
    timed(&meter, &format!("cycle, {workers} workers, {backlog} waiting"), seconds, handles).await;
    engine.close(Duration::from_secs(5)).await.unwrap();
}

async fn lease_and_ack(engine: &dyn Engine, number: u64) {
    let holder = Holder { worker: format!("w{number}").into(), process: ProcessId("bench".into()) };
    let mut request = LeaseRequest::one(Inlet::Queue(queue()), holder, RequestId::generate(&SystemEnv));
    request.wait = Duration::from_secs(10);
    let delivery = engine.lease(request).await.unwrap().remove(0);
    let ack = Op::Settle { token: delivery.token, outcome: Outcome::Ack { result: None } };
    engine.commit(engine.prepare(vec![ack]).unwrap()).await.unwrap();
}

async fn fill(engine: &Arc<EmbeddedEngine>, count: u64) {
    if count == 0 {
        return;
    }
    let payload = Payload::bytes(vec![7u8; 100], "application/octet-stream").unwrap();
    let (rss, before) = (rss_bytes(), SystemEnv.monotonic());
    for _ in 0..count.div_ceil(FILL_BATCH) {
        let ready = (0..FILL_BATCH).map(|_| engine.prepare(vec![message(&payload)]).unwrap()).collect();
        engine.submit(ready).await.unwrap();
    }
    let elapsed = (SystemEnv.monotonic() - before).as_secs_f64();
    let grown = rss_bytes().saturating_sub(rss) as f64 / count as f64;
    println!("filled {count} in {elapsed:.1} s; memory grew by {grown:.0} bytes per waiting message");
}

async fn fill_and_die(dir: &Path, count: u64) {
    let engine = open(dir).await;
    fill(&engine, count).await;
    // As if killed: nothing is closed.
    std::process::exit(0);
}

async fn restart(dir: &Path) {
    let before = SystemEnv.monotonic();
    let engine = open(dir).await;
    lease_and_ack(&*engine, 0).await;
    let elapsed = (SystemEnv.monotonic() - before).as_secs_f64() * 1e3;
    let stats = engine.stats(vec![Inlet::Queue(queue())]).await.unwrap().remove(0);
    println!(
        "first message after {elapsed:.0} ms; {} waiting, rss {} MB",
        stats.books.waiting,
        rss_bytes() >> 20
    );
    snapshot(&engine).await;
    std::process::exit(0);
}

/// A snapshot, and what a lone producer feels of it.
async fn snapshot(engine: &Arc<EmbeddedEngine>) {
    let (taking, payload) = (engine.clone(), payload());
    let before = SystemEnv.monotonic();
    let mut taken = tokio::task::spawn_blocking(move || taking.snapshot().unwrap());
    let (mut slowest, mut count) = (Duration::ZERO, 0);
    while !taken.is_finished() {
        let begun = SystemEnv.monotonic();
        engine.commit(engine.prepare(vec![message(&payload)]).unwrap()).await.unwrap();
        (slowest, count) = (slowest.max(SystemEnv.monotonic() - begun), count + 1);
    }
    let bytes = (&mut taken).await.unwrap().unwrap_or(0);
    let elapsed = (SystemEnv.monotonic() - before).as_secs_f64() * 1e3;
    println!(
        "snapshot of {} MB in {elapsed:.0} ms; {count} enqueues meanwhile, the slowest {:.1} ms",
        bytes >> 20,
        slowest.as_secs_f64() * 1e3
    );
}

fn rss_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
