//! Durable enqueue on the bare log: producers push requests, one writer drains, writes, syncs and answers.

use super::{Put, RawLog};
use crate::load::{self, Figures};
use anyhow::Result;
use parking_lot::{Condvar, Mutex};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::oneshot;

type Request = (Vec<Vec<u8>>, oneshot::Sender<()>);

#[derive(Default)]
struct Inbox {
    requests: Mutex<Vec<Request>>,
    filled: Condvar,
}

/// A handle for producers.
#[derive(Clone)]
pub(crate) struct RawQueue(Arc<Inbox>);

impl RawQueue {
    /// Starts the writer; it lives as long as the process.
    pub(crate) fn start(dir: &Path, spares: usize) -> Result<Self> {
        let mut log = RawLog::open(dir, spares)?;
        let inbox = Arc::new(Inbox::default());
        let shared = inbox.clone();
        std::thread::spawn(move || {
            let (mut batch, mut next) = (Vec::new(), 1u64);
            loop {
                {
                    let mut requests = shared.requests.lock();
                    while requests.is_empty() {
                        shared.filled.wait(&mut requests);
                    }
                    std::mem::swap(&mut *requests, &mut batch);
                }
                let mut puts = Vec::new();
                for data in batch.iter().flat_map(|(messages, _)| messages) {
                    puts.push(Put::Message { number: next, data });
                    next += 1;
                }
                log.commit(&puts).expect("the yardstick has no answer to a failing disk");
                drop(puts);
                for (_, answer) in batch.drain(..) {
                    let _ = answer.send(());
                }
            }
        });
        Ok(Self(inbox))
    }

    /// Enqueues messages as one request; returns when they are synced.
    pub(crate) async fn enqueue(&self, messages: Vec<Vec<u8>>) {
        let (answer, synced) = oneshot::channel();
        {
            let mut requests = self.0.requests.lock();
            requests.push((messages, answer));
            if requests.len() == 1 {
                self.0.filled.notify_one();
            }
        }
        synced.await.expect("the writer lives as long as the process");
    }
}

/// So many producers, each with `group` messages of 1 KiB a request.
pub(crate) async fn load(dir: &Path, producers: usize, group: usize, span: Duration) -> Result<Figures> {
    let queue = RawQueue::start(dir, super::spares(span, (producers * group * 8).clamp(16, 1_200)))?;
    let one = |_| {
        let queue = queue.clone();
        move || {
            let queue = queue.clone();
            async move { queue.enqueue(vec![vec![7; 1024]; group]).await }
        }
    };
    Ok(load::run(producers, group as u64, span, one).await)
}
