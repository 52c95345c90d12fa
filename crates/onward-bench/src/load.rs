//! A load of concurrent tasks, measured after a warm-up: rate and latencies.

use serde::Serialize;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const STOPPED: u8 = 2;

/// What one contestant reached.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// Processor time of the whole process over all cores, per item.
    pub cpu_us: f64,
}

/// Two threads, as the machine has cores.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Runs `tasks` loops of operations that `make` gives; each operation counts as `items`.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn run<Make, Op, Fut>(tasks: usize, items: u64, span: Duration, make: Make) -> Figures
where
    Make: Fn(usize) -> Op,
    Op: FnMut() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let phase = Arc::new(AtomicU8::new(WARMING));
    let running: Vec<_> = (0..tasks).map(|task| tokio::spawn(one(make(task), phase.clone()))).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (started, used) = (Instant::now(), processor_seconds());
    phase.store(MEASURING, Ordering::Relaxed);
    tokio::time::sleep(span).await;
    phase.store(STOPPED, Ordering::Relaxed);
    let (elapsed, used) = (started.elapsed(), processor_seconds() - used);
    let mut micros = Vec::new();
    for task in running {
        micros.extend(task.await.expect("a load task does not panic"));
    }
    let done = (micros.len() as f64 * items as f64).max(1.0);
    Figures { cpu_us: used * 1e6 / done, ..figures(micros, items, elapsed) }
}

/// Processor time that this process has used, over all cores; zero where the system does not tell.
pub(crate) fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, after)| after).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
async fn one<Op, Fut>(mut op: Op, phase: Arc<AtomicU8>) -> Vec<f64>
where
    Op: FnMut() -> Fut,
    Fut: Future<Output = ()>,
{
    let mut micros = Vec::with_capacity(1 << 14);
    loop {
        let began = Instant::now();
        op().await;
        match phase.load(Ordering::Relaxed) {
            WARMING => {}
            MEASURING => micros.push(began.elapsed().as_secs_f64() * 1e6),
            _ => return micros,
        }
    }
}

/// Rate and percentiles of measured operations.
pub(crate) fn figures(mut micros: Vec<f64>, items: u64, elapsed: Duration) -> Figures {
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = ((micros.len() as f64 * share) as usize).min(micros.len().saturating_sub(1));
        micros.get(index).copied().unwrap_or(0.0)
    };
    Figures {
        per_second: micros.len() as f64 * items as f64 / elapsed.as_secs_f64(),
        p50_us: at(0.5),
        p99_us: at(0.99),
        p999_us: at(0.999),
        cpu_us: 0.0,
    }
}
