//! How fast the state machine is without a disk, on one core, and what a waiting message costs in memory.
//!
//! Times are processor time of the one thread, so that other work beside does not count.
//!
//! `cargo bench -p onward-embedded --bench memory`
#![allow(clippy::unwrap_used, reason = "a benchmark may stop")]

use onward_core::*;
use onward_embedded::{Fact, InletId, Marks, MemoryEngine, Options, State};
use onward_env::SystemEnv;
use std::{sync::Arc, time::Duration};

const COUNT: usize = 300_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    waiting();
    runtime.block_on(cycle(1));
    runtime.block_on(cycle(100));
}

/// Enqueues, leases and acknowledges, `group` at a time.
async fn cycle(group: usize) {
    let env = SystemEnv::shared();
    let engine = MemoryEngine::new(env.clone(), Options::default());
    let queue: Name = "work".parse().unwrap();
    let data = Payload::bytes(vec![7u8; 1024], "application/octet-stream").unwrap();
    let make = || {
        let message = Message::builder("bench.made").data(data.clone()).build(&*env).unwrap();
        Op::Enqueue { queue: queue.clone(), message: Box::new(message) }
    };
    let commits: Vec<Prepared> =
        (0..COUNT / group).map(|_| engine.prepare((0..group).map(|_| make()).collect()).unwrap()).collect();
    let start = Busy::now();
    for commit in commits {
        engine.commit(commit).await.unwrap();
    }
    report("enqueue", group, start.elapsed());
    let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
    let mut held = Vec::with_capacity(COUNT);
    let start = Busy::now();
    while held.len() < COUNT {
        let request = LeaseRequest::one(queue.clone().into(), holder.clone(), RequestId::generate(&*env));
        held.extend(engine.lease(LeaseRequest { count_max: group as u32, ..request }).await.unwrap());
    }
    report("lease", group, start.elapsed());
    let start = Busy::now();
    for chunk in held.chunks(group) {
        let settle =
            |d: &Delivery| Op::Settle { token: d.token.clone(), outcome: Outcome::Ack { result: None } };
        engine.commit(engine.prepare(chunk.iter().map(settle).collect()).unwrap()).await.unwrap();
    }
    report("ack", group, start.elapsed());
}

fn report(what: &str, group: usize, took: Duration) {
    let each = took.as_nanos() as f64 / COUNT as f64;
    println!("{what:>8} in groups of {group:>3}: {each:7.0} ns each, {:9.0} a second", 1e9 / each);
}

/// What five million plain waiting messages cost, bodies apart.
fn waiting() {
    const MANY: u64 = 5_000_000;
    let mut state = State::new();
    let time = Timestamp::from_micros(1);
    let (inlet, name) = (InletId(0), Inlet::queue("work").unwrap());
    state.apply(&Fact::Declared { inlet, name, config: Box::default() }, 1, time);
    let message = Arc::new(Message::builder("bench.made").build(&SystemEnv).unwrap());
    let before = resident();
    let start = Busy::now();
    for n in 0..MANY {
        let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let marks = Marks { id: mixed, dedup: mixed.rotate_left(32), fingerprint: n };
        state.apply(&Fact::Enqueued { inlet, message: message.clone(), marks, skew_us: 0 }, n + 2, time);
    }
    let took = start.elapsed();
    let bytes = (resident() - before) as f64 / MANY as f64;
    println!(
        "{MANY} waiting: {bytes:.1} bytes each with dedup, {:.0} ns to apply",
        took.as_nanos() as f64 / MANY as f64
    );
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Processor time of this thread.
struct Busy(Duration);

impl Busy {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Self(Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap()))
    }

    fn elapsed(&self) -> Duration {
        Self::now().0 - self.0
    }
}
