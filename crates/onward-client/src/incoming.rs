//! What comes in over a client's connection: answers find their callers, hints their watches.

use crate::{
    ClientOptions,
    frame::{FrameReader, decode, encode},
    watches::Watches,
    wire::{Answer, OnlyId, ToClient, ToHost},
};
use onward_core::{Env, Error, Health, Result, RetryHint};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncRead,
    sync::{mpsc, oneshot, watch},
};

pub(crate) const REPEAT: &str = "it may have happened: repeat it with the same ids";

pub(crate) fn gone() -> Error {
    Error::unavailable("the connection to the host is closed").mend("nothing was sent: try again")
}

pub(crate) fn lost_answer() -> Error {
    Error::unknown("the connection was lost before the answer came").mend(REPEAT)
}

/// What the connection's task and its callers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Answer>>>>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) health: Mutex<Health>,
    pub(crate) lost: watch::Sender<Option<Error>>,
    pub(crate) goodbye: watch::Sender<bool>,
    pub(crate) heard: AtomicBool,
}

pub(crate) async fn read_answers<R: AsyncRead + Unpin>(shared: &Shared, mut reader: FrameReader<R>) -> Error {
    loop {
        match reader.next().await {
            Ok(Some(body)) => {
                shared.heard.store(true, Ordering::Relaxed);
                if let Err(error) = shared.take(&body) {
                    return error;
                }
            }
            Ok(None) => return Error::unknown("the host closed the connection"),
            Err(error) => return error,
        }
    }
}

/// Counts pings without any word between them, not time: a process that was stopped for long hears what came meanwhile.
pub(crate) async fn watch_over(
    shared: &Shared,
    outgoing: &mpsc::Sender<Vec<u8>>,
    options: &ClientOptions,
    env: &dyn Env,
) -> Error {
    let mut silent = 0;
    for number in 1.. {
        env.sleep(Duration::from_millis(options.ping_ms)).await;
        silent = if shared.heard.swap(false, Ordering::Relaxed) { 0 } else { silent + 1 };
        if silent >= options.silent_pings_max {
            break;
        }
        if let Ok(ping) = encode(&ToHost::Ping { number }) {
            let _ = outgoing.try_send(ping);
        }
    }
    Error::unknown(format!("the host said nothing for {} ms", u64::from(silent) * options.ping_ms))
}

impl Shared {
    pub(crate) fn new(watches: Arc<Watches>, health: Health) -> Self {
        Self {
            waiting: Mutex::default(),
            watches,
            health: Mutex::new(health),
            lost: watch::Sender::new(None),
            goodbye: watch::Sender::new(false),
            heard: AtomicBool::new(true),
        }
    }

    fn take(&self, body: &[u8]) -> Result<()> {
        match decode::<ToClient>(body) {
            Ok(ToClient::Answer { id, answer }) => self.answer(id, answer),
            Ok(ToClient::Hint { id, hint }) => self.watches.hint(id, hint),
            Ok(ToClient::Health(health)) => *self.health.lock() = health,
            Ok(ToClient::Pong { .. } | ToClient::Welcome(_)) => {}
            Ok(ToClient::Goodbye) => drop(self.goodbye.send_replace(true)),
            Ok(ToClient::Refused(error)) => return Err(error),
            Err(error) => match decode::<OnlyId>(body) {
                Ok(OnlyId::Answer { id }) => {
                    let unreadable = Error::internal(format!("the answer can't be read: {}", error.what()))
                        .retry(RetryHint::Unknown)
                        .mend("the host is of another version: bring both to the same one");
                    self.answer(id, Err(unreadable));
                }
                _ => tracing::debug!(%error, "skipped what the host said"),
            },
        }
        Ok(())
    }

    fn answer(&self, id: u64, answer: Result<Answer>) {
        // Nobody waits when its caller gave up meanwhile.
        let waiting = self.waiting.lock().remove(&id);
        if let Some(give) = waiting {
            let _ = give.send(answer);
        }
    }

    pub(crate) fn lose(&self, reason: Error) {
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            if first {
                *lost = Some(reason);
            }
            first
        });
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for give in waiting.into_values() {
            let _ = give.send(Err(lost_answer()));
        }
    }
}
