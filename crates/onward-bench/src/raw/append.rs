//! Appending with an expected revision on the bare log: one writer, an index of all streams in memory.

use super::{Put, RawLog};
use crate::load::{self, Figures};
use crate::streams::{Revisions, STREAMS};
use anyhow::Result;
use parking_lot::{Condvar, Mutex};
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};
use tokio::sync::oneshot;

struct Request {
    stream: u64,
    /// How many events the stream is expected to have.
    expected: u64,
    data: Vec<u8>,
    answer: oneshot::Sender<bool>,
}

#[derive(Default)]
struct Inbox {
    requests: Mutex<Vec<Request>>,
    filled: Condvar,
}

/// Where each stream's events stand: their numbers in the log.
type Index = HashMap<u64, Vec<u64>>;

/// A handle for writers.
#[derive(Clone)]
struct RawStreams(Arc<Inbox>);

impl RawStreams {
    /// Starts the writer with one event in each stream; it lives as long as the process.
    fn start(dir: &Path, spares: usize) -> Result<Self> {
        let (mut log, mut index, mut next) = (RawLog::open(dir, spares)?, Index::new(), 0);
        let first = vec![7; crate::streams::EVENT_BYTES];
        let streams: Vec<u64> = (0..STREAMS).collect();
        for streams in streams.chunks(5_000) {
            let puts: Vec<Put<'_>> =
                streams.iter().map(|stream| Put::Message { number: *stream, data: &first }).collect();
            log.commit(&puts)?;
            for stream in streams {
                index.entry(*stream).or_default().push(next);
                next += 1;
            }
        }
        let inbox = Arc::new(Inbox::default());
        let shared = inbox.clone();
        std::thread::spawn(move || {
            loop {
                let batch = shared.take();
                let (mut puts, mut held) = (Vec::new(), Vec::with_capacity(batch.len()));
                for Request { stream, expected, data, .. } in &batch {
                    let places = index.entry(*stream).or_default();
                    let holds = places.len() as u64 == *expected;
                    held.push(holds);
                    if holds {
                        places.push(next);
                        next += 1;
                        puts.push(Put::Message { number: *stream, data });
                    }
                }
                log.commit(&puts).expect("the yardstick has no answer to a failing disk");
                drop(puts);
                for (request, holds) in batch.into_iter().zip(held) {
                    let _ = request.answer.send(holds);
                }
            }
        });
        Ok(Self(inbox))
    }

    async fn append(&self, stream: u64, expected: u64, data: Vec<u8>) -> bool {
        let (answer, synced) = oneshot::channel();
        {
            let mut requests = self.0.requests.lock();
            requests.push(Request { stream, expected, data, answer });
            if requests.len() == 1 {
                self.0.filled.notify_one();
            }
        }
        synced.await.expect("the writer lives as long as the process")
    }
}

impl Inbox {
    fn take(&self) -> Vec<Request> {
        let mut requests = self.requests.lock();
        while requests.is_empty() {
            self.filled.wait(&mut requests);
        }
        std::mem::take(&mut *requests)
    }
}

/// So many writers, each appending one event after the other to streams drawn at random.
pub(crate) async fn load(dir: &Path, writers: usize, span: Duration) -> Result<Figures> {
    let streams = RawStreams::start(dir, super::spares(span, 200))?;
    let revisions = Arc::new(Revisions::of_one_event_each());
    let one = |writer| {
        let (streams, revisions) = (streams.clone(), revisions.clone());
        let mut next = crate::streams::draw(writer);
        move || {
            let (streams, revisions, first) = (streams.clone(), revisions.clone(), next());
            async move {
                let mut stream = first;
                while !streams
                    .append(stream, revisions.events(stream), vec![7; crate::streams::EVENT_BYTES])
                    .await
                {
                    // Another writer was there first: what it wrote is told when it has its answer.
                    stream = (stream + 1) % STREAMS;
                }
                revisions.appended(stream);
            }
        }
    };
    Ok(load::run(writers, 1, span, one).await)
}
