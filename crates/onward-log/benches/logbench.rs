//! How many messages a second the log makes durable: `cargo bench -p onward-log --bench logbench -- DIR
//! PRODUCERS BYTES BATCH SECONDS [GROUPS_IN_FLIGHT]`. Prints the disk and the durability mode with the figures.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

use onward_log::{Config, Log, LogError, Observer, Position, Progress, Purpose, RealDisk, UnitSize};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Answers each producer once its unit is durable.
#[derive(Default)]
struct Waiters {
    line: Mutex<VecDeque<(Position, oneshot::Sender<()>)>>,
    groups: AtomicU64,
    last: AtomicU64,
    /// Wakes who was told that the log is busy.
    moved: tokio::sync::Notify,
}

impl Observer for Waiters {
    fn advanced(&self, progress: Progress) {
        self.moved.notify_waiters();
        if self.last.swap(progress.synced.0, Relaxed) == progress.synced.0 {
            return;
        }
        self.groups.fetch_add(1, Relaxed);
        let mut line = self.line.lock();
        let ready = line.partition_point(|(end, _)| *end <= progress.synced);
        let ready: Vec<_> = line.drain(..ready).collect();
        drop(line);
        for (_, waiter) in ready {
            let _ = waiter.send(());
        }
    }

    fn failed(&self, error: &LogError) {
        panic!("{error}");
    }

    fn room(&self) {
        self.moved.notify_waiters();
    }
}

async fn produce(
    log: Log,
    waiters: Arc<Waiters>,
    batch: usize,
    filler: Arc<Vec<u8>>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> Vec<u64> {
    let mut latencies = Vec::new();
    let mut number = 0u64;
    while !stop.load(Relaxed) {
        let started = Instant::now();
        let messages: Vec<Vec<u8>> = (0..batch)
            .map(|_| {
                number += 1;
                let mut message = filler.as_slice().to_vec();
                message[..8].copy_from_slice(&number.to_le_bytes());
                message
            })
            .collect();
        let size = UnitSize { records: batch, bytes: batch * filler.len() };
        let (tx, rx) = oneshot::channel();
        let appended = log.append(Purpose::Ordinary, size, 0, |unit| {
            for message in &messages {
                unit.record(1, &[message])?;
            }
            let end = unit.position();
            waiters.line.lock().push_back((end, tx));
            Ok::<_, LogError>(())
        });
        match appended {
            Ok(_) => rx.await.unwrap(),
            Err(LogError::Busy { .. }) => {
                // A move between the refusal and this wait would be missed: so not for long.
                let _ = tokio::time::timeout(Duration::from_millis(1), waiters.moved.notified()).await;
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        done.fetch_add(batch as u64, Relaxed);
        latencies.push(started.elapsed().as_nanos() as u64);
    }
    latencies
}

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    if arguments.len() < 6 {
        return println!("DIR PRODUCERS BYTES BATCH SECONDS [GROUPS_IN_FLIGHT]");
    }
    let number = |at: usize| arguments[at].parse::<usize>().unwrap();
    let (producers, bytes, batch, seconds) = (number(2), number(3), number(4), number(5));
    let in_flight = arguments.get(6).map_or(Config::default().groups_in_flight, |n| n.parse().unwrap());
    let disk = Arc::new(RealDisk::open(arguments[1].as_ref()).unwrap());
    let waiters = Arc::new(Waiters::default());
    let config = Config { groups_in_flight: in_flight, ..Config::default() };
    let (log, _) = Log::open(disk, config, None, waiters.clone(), &mut |_| Ok(())).unwrap();
    let threads = log.spawn_io().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let filler = Arc::new((0..bytes).map(|at| (at * 31) as u8).collect::<Vec<u8>>());
    let tasks: Vec<_> = (0..producers)
        .map(|_| {
            let (log, waiters, filler) = (log.clone(), waiters.clone(), filler.clone());
            runtime.spawn(produce(log, waiters, batch, filler, stop.clone(), done.clone()))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(400));
    let (before, groups, started) = (done.load(Relaxed), waiters.groups.load(Relaxed), Instant::now());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let (count, took) = ((done.load(Relaxed) - before) as f64, started.elapsed().as_secs_f64());
    let groups = (waiters.groups.load(Relaxed) - groups) as f64;
    stop.store(true, Relaxed);
    let mut latencies: Vec<u64> =
        tasks.into_iter().flat_map(|task| runtime.block_on(task).unwrap()).collect();
    latencies.sort_unstable();
    let at = |part: usize| latencies[(latencies.len() - 1) * part / 100] as f64 / 1e3;
    let info = log.disk_info();
    println!(
        "onward-log p={producers} size={bytes} batch={batch} in_flight={in_flight} | {:.0} msg/s p50={:.0}us p99={:.0}us \
         reports/s={:.0} avg={:.1} | durable: fdatasync before each answer; {} on {}, direct={} sector={} volatile={}",
        count / took,
        at(50),
        at(99),
        groups / took,
        count / groups,
        info.filesystem,
        info.device,
        info.direct,
        info.sector,
        info.volatile
    );
    drop(threads);
    let (cold, warm, reads) = (scan_all(&log), scan_all(&log), read_some(&log));
    drop(log);
    println!(
        "  scan first {cold:.0}, again {warm:.0} records/s; read by position from the file {reads:.0} records/s; {}",
        open_again(&arguments[1])
    );
}

/// Reads all from front to back; answers records a second.
fn scan_all(log: &Log) -> f64 {
    let started = Instant::now();
    let mut last = 0;
    let count = log
        .scan(Position::ZERO, log.end(), &mut |record| {
            last ^= record.bytes.last().copied().unwrap_or(0);
            Ok(())
        })
        .unwrap();
    std::hint::black_box(last);
    count as f64 / started.elapsed().as_secs_f64()
}

/// Reads up to 100,000 of the oldest records one by one; answers records a second.
fn read_some(log: &Log) -> f64 {
    let mut positions = Vec::new();
    let first = log.segments()[0].index;
    let _ = log.scan(Position::at(first, 0), Position::at(first + 1, 0), &mut |record| {
        positions.push(record.position);
        Ok(())
    });
    positions.truncate(100_000);
    let started = Instant::now();
    for position in &positions {
        std::hint::black_box(log.read(*position).unwrap());
    }
    positions.len() as f64 / started.elapsed().as_secs_f64()
}

fn open_again(folder: &str) -> String {
    let disk = Arc::new(RealDisk::open(folder.as_ref()).unwrap());
    let started = Instant::now();
    let mut records = 0u64;
    let (log, report) = Log::open(disk, Config::default(), None, Arc::new(Waiters::default()), &mut |_| {
        records += 1;
        Ok(())
    })
    .unwrap();
    let took = started.elapsed();
    let started = Instant::now();
    let end = Some(report.end);
    drop(log);
    let disk = Arc::new(RealDisk::open(folder.as_ref()).unwrap());
    Log::open(disk, Config::default(), end, Arc::new(Waiters::default()), &mut |_| Ok(())).unwrap();
    format!("opened in {took:?} with {records} replayed, in {:?} from the end", started.elapsed())
}
