//! The queue cycle on the bare log: queue state behind a mutex, lease counts in a buffered journal that is never synced,
//! enqueues and acknowledgements through the log's groups.

use super::{Put, RawLog};
use crate::load::{self, Figures};
use anyhow::Result;
use parking_lot::{Condvar, Mutex};
use rustix::{fd::OwnedFd, fs, io};
use std::collections::{HashMap, VecDeque};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::oneshot;

enum Durable {
    Enqueue(Vec<u8>, oneshot::Sender<u64>),
    Ack(u64, oneshot::Sender<()>),
}

type Message = (u64, Vec<u8>);

struct State {
    pending: Vec<Durable>,
    ready: VecDeque<Message>,
    waiting: VecDeque<oneshot::Sender<Message>>,
    counts: HashMap<u64, u32>,
    journal: OwnedFd,
    journal_offset: u64,
}

impl State {
    fn lease(&mut self, message: Message) -> Message {
        let count = self.counts.entry(message.0).or_insert(0);
        *count += 1;
        let mut entry = [0u8; 16];
        entry[..8].copy_from_slice(&message.0.to_le_bytes());
        entry[8..12].copy_from_slice(&count.to_le_bytes());
        let crc = crc32c::crc32c(&entry[..12]);
        entry[12..].copy_from_slice(&crc.to_le_bytes());
        io::pwrite(&self.journal, &entry, self.journal_offset % (64 << 20))
            .expect("the journal can be written");
        self.journal_offset += 16;
        message
    }
}

struct Shared {
    state: Mutex<State>,
    filled: Condvar,
}

/// A handle for workers.
#[derive(Clone)]
pub(crate) struct RawCycle(Arc<Shared>);

impl RawCycle {
    pub(crate) fn start(dir: &Path, spares: usize) -> Result<Self> {
        let mut log = RawLog::open(dir, spares)?;
        let flags = fs::OFlags::RDWR | fs::OFlags::CREATE;
        let journal = fs::open(dir.join("leases.log"), flags, fs::Mode::from_raw_mode(0o644))?;
        let state = State {
            pending: Vec::new(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            counts: HashMap::new(),
            journal,
            journal_offset: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), filled: Condvar::new() });
        let writer = shared.clone();
        std::thread::spawn(move || {
            let mut next = 1;
            loop {
                write_group(&writer, &mut log, &mut next);
            }
        });
        Ok(Self(shared))
    }

    fn push(&self, durable: Durable) {
        let mut state = self.0.state.lock();
        state.pending.push(durable);
        if state.pending.len() == 1 {
            self.0.filled.notify_one();
        }
    }

    /// Enqueue, lease and acknowledge one message.
    pub(crate) async fn cycle(&self, message: Vec<u8>) {
        let (answer, synced) = oneshot::channel();
        self.push(Durable::Enqueue(message, answer));
        synced.await.expect("the writer lives as long as the process");
        let leased = {
            let mut state = self.0.state.lock();
            match state.ready.pop_front() {
                Some(message) => Ok(state.lease(message)),
                None => {
                    let (give, taken) = oneshot::channel();
                    state.waiting.push_back(give);
                    Err(taken)
                }
            }
        };
        let (number, data) = match leased {
            Ok(message) => message,
            Err(taken) => taken.await.expect("the writer lives as long as the process"),
        };
        std::hint::black_box(data);
        let (answer, synced) = oneshot::channel();
        self.push(Durable::Ack(number, answer));
        synced.await.expect("the writer lives as long as the process");
    }
}

fn write_group(shared: &Shared, log: &mut RawLog, next: &mut u64) {
    let batch = {
        let mut state = shared.state.lock();
        while state.pending.is_empty() {
            shared.filled.wait(&mut state);
        }
        std::mem::take(&mut state.pending)
    };
    let first = *next;
    let mut puts = Vec::with_capacity(batch.len());
    for durable in &batch {
        puts.push(match durable {
            Durable::Enqueue(data, _) => {
                *next += 1;
                Put::Message { number: *next - 1, data }
            }
            Durable::Ack(number, _) => Put::Ack { number: *number },
        });
    }
    log.commit(&puts).expect("the yardstick has no answer to a failing disk");
    drop(puts);
    answer(shared, batch, first);
}

fn answer(shared: &Shared, batch: Vec<Durable>, first: u64) {
    let (mut handed, mut accepted, mut number) = (Vec::new(), Vec::new(), first);
    {
        let mut state = shared.state.lock();
        for durable in batch {
            match durable {
                Durable::Enqueue(data, answer) => {
                    state.ready.push_back((number, data));
                    accepted.push((number, answer));
                    number += 1;
                }
                Durable::Ack(done, answer) => {
                    state.counts.remove(&done);
                    let _ = answer.send(());
                }
            }
        }
        while !state.waiting.is_empty()
            && let Some(message) = state.ready.pop_front()
            && let Some(taker) = state.waiting.pop_front()
        {
            handed.push((taker, state.lease(message)));
        }
    }
    for (number, answer) in accepted {
        let _ = answer.send(number);
    }
    for (taker, message) in handed {
        let _ = taker.send(message);
    }
}

/// So many workers, each enqueueing, leasing and acknowledging one message of 1 KiB after the other.
pub(crate) async fn load(dir: &Path, workers: usize, span: Duration) -> Result<Figures> {
    let cycle = RawCycle::start(dir, super::spares(span, 300))?;
    let one = |_| {
        let cycle = cycle.clone();
        move || {
            let cycle = cycle.clone();
            async move { cycle.cycle(vec![7; 1024]).await }
        }
    };
    Ok(load::run(workers, 1, span, one).await)
}
