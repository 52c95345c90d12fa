//! One connection of a client: calls go out numbered, answers come back in any order.

use crate::{
    ClientOptions,
    frame::{FrameReader, decode, encode},
    incoming::{REPEAT, Shared, gone, lost_answer, read_answers, watch_over},
    watches::Watches,
    wire::{Answer, Call, Hello, PROTOCOL, PROTOCOL_OLDEST, ToClient, ToHost, Welcome},
    within::within,
    write::{OUTGOING_MAX, write_all},
};
use onward_core::{Env, Error, Health, Result, RetryHint};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::{Semaphore, mpsc, oneshot},
    task::AbortHandle,
};

/// One connection to a host. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) welcome: Welcome,
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Vec<u8>>,
    calls: Semaphore,
    waits: Semaphore,
    next_id: AtomicU64,
    task: AbortHandle,
}

impl Link {
    /// Says hello on a fresh stream and waits for the welcome.
    ///
    /// # Errors
    /// What the host refused with; `Unavailable` when it does not answer in time.
    pub(crate) async fn open<S>(
        stream: S,
        options: &ClientOptions,
        watches: Arc<Watches>,
        env: Arc<dyn Env>,
    ) -> Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (read, mut write) = tokio::io::split(stream);
        let mut reader = FrameReader::new(read);
        let limit = Duration::from_millis(options.connect_ms);
        let welcome = within(&*env, limit, greet(&mut reader, &mut write, options))
            .await
            .unwrap_or_else(|| Err(Error::unavailable(format!("the host said nothing within {limit:?}"))))?;
        let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
        let shared = Arc::new(Shared::new(watches, welcome.health.clone()));
        let run = run(shared.clone(), reader, write, queue, outgoing.clone(), options.clone(), env);
        let task = tokio::spawn(run).abort_handle();
        let permits = |count: u32| Semaphore::new(usize::try_from(count).unwrap_or(1).max(1));
        let (calls, waits) = (permits(welcome.calls_max), permits(welcome.waits_max));
        let link = Self { welcome, shared, outgoing, calls, waits, next_id: AtomicU64::new(1), task };
        link.send_watches().await?;
        Ok(link)
    }

    /// Asks the host and waits for its answer.
    ///
    /// # Errors
    /// The engine's; `Unavailable` with the hint `Unknown` once the call may have reached the host, else with `After`.
    ///
    /// # Cancel safety
    /// Dropping it tells the host that nobody waits any more.
    pub(crate) async fn call(&self, call: Call, env: &dyn Env, limit: Duration) -> Result<Answer> {
        let name = call.name();
        let sent = AtomicBool::new(false);
        match within(env, limit + call.wait(), self.call_unbounded(call, &sent)).await {
            Some(answer) => answer,
            None if sent.load(Ordering::Relaxed) => {
                Err(Error::unknown(format!("no answer within {limit:?}")).at(name).mend(REPEAT))
            }
            None => {
                Err(Error::unavailable(format!("too many calls wait: not sent within {limit:?}")).at(name))
            }
        }
    }

    async fn call_unbounded(&self, call: Call, sent: &AtomicBool) -> Result<Answer> {
        let bound = if call.wait().is_zero() { &self.calls } else { &self.waits };
        let _permit = bound.acquire().await.map_err(|_| gone())?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = encode(&ToHost::Call { id, call })?;
        let (give, answer) = oneshot::channel();
        self.shared.waiting.lock().insert(id, give);
        let waiting = Waiting { link: self, id };
        // Looked at after the entry stands: whatever is lost from here on answers it.
        if self.is_lost() {
            return Err(gone());
        }
        let place = self.outgoing.reserve().await.map_err(|_| gone())?;
        sent.store(true, Ordering::Relaxed);
        place.send(frame);
        let answer = answer.await;
        drop(waiting);
        answer.unwrap_or_else(|_| Err(lost_answer()))
    }

    /// Sends what nobody waits for; forgets it when the queue is full.
    pub(crate) fn tell(&self, what: &ToHost) {
        if let Ok(frame) = encode(what) {
            let _ = self.outgoing.try_send(frame);
        }
    }

    async fn send_watches(&self) -> Result<()> {
        for (id, interest) in self.shared.watches.all() {
            let frame = encode(&ToHost::Watch { id, interest })?;
            self.outgoing.send(frame).await.map_err(|_| gone())?;
        }
        Ok(())
    }

    /// Tells the host that this process is done, and waits until it has taken that.
    pub(crate) async fn goodbye(&self) {
        let mut taken = self.shared.goodbye.subscribe();
        if let Ok(frame) = encode(&ToHost::Goodbye)
            && self.outgoing.send(frame).await.is_ok()
        {
            tokio::select! {
                _ = taken.wait_for(|taken| *taken) => {}
                _ = self.lost() => {}
            }
        }
    }

    /// Completes when the connection is lost, with the reason.
    pub(crate) async fn lost(&self) -> Error {
        let mut lost = self.shared.lost.subscribe();
        let reason = lost.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(gone)
    }

    /// Whether the connection is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.shared.lost.borrow().is_some()
    }

    /// The engine's health as the host last told it.
    pub(crate) fn health(&self) -> Health {
        self.shared.health.lock().clone()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.lose(gone());
    }
}

/// A call that waits; tells the host when nobody does any more.
struct Waiting<'a> {
    link: &'a Link,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.link.shared.waiting.lock().remove(&self.id).is_some() {
            self.link.tell(&ToHost::Drop { id: self.id });
        }
    }
}

async fn greet<R, W>(reader: &mut FrameReader<R>, write: &mut W, options: &ClientOptions) -> Result<Welcome>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let hello = encode(&ToHost::Hello(Hello {
        protocol: PROTOCOL,
        protocol_oldest: PROTOCOL_OLDEST,
        process: options.process.clone(),
        pid: std::process::id(),
        worker: options.worker.clone(),
    }))?;
    let nothing_done = |what: String| Error::unavailable(what).mend("nothing was done: connect again");
    write.write_all(&hello).await.map_err(|e| nothing_done(format!("the connection failed: {e}")))?;
    let body = reader.next().await.map_err(|e| e.retry(RetryHint::After(Duration::from_millis(200))))?;
    match decode(&body.ok_or_else(|| nothing_done("the host closed the connection at once".into()))?)? {
        ToClient::Welcome(welcome) => Ok(*welcome),
        ToClient::Refused(error) => Err(error),
        _ => Err(Error::internal("the host did not begin with a welcome")
            .mend("check that the socket belongs to an Onward host")),
    }
}

/// The connection's life. Reading goes on while a write waits, so that two full sockets never wait for each other.
async fn run<R, W>(
    shared: Arc<Shared>,
    reader: FrameReader<R>,
    write: W,
    queue: mpsc::Receiver<Vec<u8>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    options: ClientOptions,
    env: Arc<dyn Env>,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let reason = tokio::select! {
        reason = read_answers(&shared, reader) => reason,
        reason = write_all(write, queue, &*env, options.answer()) => reason.unwrap_or_else(gone),
        reason = watch_over(&shared, &outgoing, &options, &*env) => reason,
    };
    shared.lose(reason);
}
