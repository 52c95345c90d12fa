//! What a client says and hears between its hello and its end.

use super::{Shared, calls, processes::Member};
use crate::{
    frame::{FRAME_BYTES_MAX, FrameReader, decode, encode},
    hints::Hints,
    watches::WATCHES_MAX,
    wire::{Answer, Call, OnlyId, ToClient, ToHost},
    within,
};
use bytes::BytesMut;
use futures::{
    StreamExt,
    future::{AbortHandle, BoxFuture, abortable},
    stream::{BoxStream, FuturesUnordered, SelectAll, select_all},
};
use onward_core::{Error, ErrorKind, Health, Hint, Interest, Result};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use tokio::{io::AsyncRead, sync::mpsc};

/// How long calls of a client that is gone may still take, in the hope that their effect completes.
pub(super) const LAST_CALLS: Duration = Duration::from_secs(2);

/// Why a session ends.
pub(super) enum End {
    /// The client said goodbye.
    Goodbye,
    /// It is gone without a word, or its process is dead.
    Gone,
    /// It said what it must not.
    Refused(Error),
    /// The host closes; calls may still take so long.
    Stopped(Duration),
}

/// What happens next in a session.
enum Next {
    /// The client said something.
    Said(BytesMut),
    /// A call is done.
    Done(u64, Option<Result<Answer>>),
    /// Something may have happened for a watch.
    Hinted(u64, Hint),
    /// There is room to write a hint.
    Room(mpsc::OwnedPermit<Vec<u8>>),
    /// It ends.
    Ends(End),
}

/// One connection after its hello.
pub(super) struct Session<'a> {
    shared: &'a Shared,
    outgoing: mpsc::Sender<Vec<u8>>,
    calls: FuturesUnordered<BoxFuture<'a, (u64, Option<Result<Answer>>)>>,
    running: HashMap<u64, Running>,
    bytes: usize,
    watches: SelectAll<BoxStream<'a, (u64, Hint)>>,
    watched: HashMap<u64, AbortHandle>,
    hints: BTreeMap<u64, Hints>,
    health: Health,
}

/// A call that is not answered yet.
struct Running {
    abort: AbortHandle,
    waits: bool,
    bytes: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(shared: &'a Shared, outgoing: mpsc::Sender<Vec<u8>>, health: Health) -> Self {
        Self {
            shared,
            outgoing,
            calls: FuturesUnordered::new(),
            running: HashMap::new(),
            bytes: 0,
            // A stream that never ends keeps the set from ending.
            watches: select_all([futures::stream::pending().boxed()]),
            watched: HashMap::new(),
            hints: BTreeMap::new(),
            health,
        }
    }

    /// Takes what the client says and sends what comes of it, until one of both is done.
    pub(super) async fn talk<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut FrameReader<R>,
        member: &Member,
    ) -> End {
        loop {
            let step = match self.next(reader, member).await {
                Next::Said(body) => self.take(&body).await,
                Next::Done(id, answer) => self.answer(id, answer).await,
                Next::Hinted(id, hint) => {
                    self.hint(id, hint);
                    Ok(())
                }
                Next::Room(place) => {
                    self.next_hint().map(|frame| place.send(frame));
                    Ok(())
                }
                Next::Ends(end) => Err(end),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn next<R: AsyncRead + Unpin>(&mut self, reader: &mut FrameReader<R>, member: &Member) -> Next {
        let options = &self.shared.options;
        let most = options.calls_max.saturating_add(options.waits_max) as usize;
        // Full means unread: the client's own bound comes first, the socket's buffer last.
        let reads = self.running.len() < most && self.bytes < FRAME_BYTES_MAX;
        let mut stop = self.shared.stop.subscribe();
        let stopped = async { stop.wait_for(Option::is_some).await.ok().and_then(|drain| *drain) };
        tokio::select! {
            body = reader.next(), if reads => match body {
                Ok(Some(body)) => Next::Said(body),
                Err(error) if error.kind() == ErrorKind::Invalid => Next::Ends(End::Refused(error)),
                Ok(None) | Err(_) => Next::Ends(End::Gone),
            },
            Some((id, answer)) = self.calls.next() => Next::Done(id, answer),
            Some((id, hint)) = self.watches.next() => Next::Hinted(id, hint),
            place = self.outgoing.clone().reserve_owned(), if !self.hints.is_empty() => {
                place.map_or(Next::Ends(End::Gone), Next::Room)
            }
            () = member.dead() => Next::Ends(End::Gone),
            drain = stopped => Next::Ends(End::Stopped(drain.unwrap_or_default())),
        }
    }

    async fn take(&mut self, body: &[u8]) -> Result<(), End> {
        match decode::<ToHost>(body) {
            Ok(ToHost::Call { id, call }) => self.call(id, call, body.len()),
            Ok(ToHost::Drop { id }) => {
                self.running.get(&id).inspect(|running| running.abort.abort());
                Ok(())
            }
            Ok(ToHost::Watch { id, interest }) => {
                self.watch(id, interest);
                Ok(())
            }
            Ok(ToHost::Unwatch { id }) => {
                self.watched.remove(&id).inspect(AbortHandle::abort);
                self.hints.remove(&id);
                Ok(())
            }
            Ok(ToHost::Ping { number }) => {
                self.tell_health().await?;
                self.send(&ToClient::Pong { number }).await
            }
            Ok(ToHost::Goodbye) => Err(End::Goodbye),
            Ok(ToHost::Hello(_)) => Err(End::Refused(Error::invalid("a second hello"))),
            Err(error) => self.unreadable(body, error).await,
        }
    }

    /// A newer client's call is refused by its id; whatever else is not known is skipped.
    async fn unreadable(&mut self, body: &[u8], error: Error) -> Result<(), End> {
        let Ok(OnlyId::Call { id }) = decode::<OnlyId>(body) else {
            tracing::debug!(%error, "skipped what a client said");
            return Ok(());
        };
        let refusal = Error::unsupported(format!("the host does not understand this call: {}", error.what()))
            .mend("the host may be of an older version: bring both to the same one");
        self.send(&ToClient::Answer { id, answer: Err(refusal) }).await
    }

    fn call(&mut self, id: u64, call: Call, bytes: usize) -> Result<(), End> {
        if self.running.contains_key(&id) {
            return Err(End::Refused(Error::invalid(format!("call {id} is not answered yet"))));
        }
        let waits = !call.wait().is_zero();
        let engine = &*self.shared.engine;
        let (work, abort) = abortable(async move { calls::perform(engine, call).await });
        self.calls.push(Box::pin(async move { (id, work.await.ok()) }));
        self.running.insert(id, Running { abort, waits, bytes });
        self.bytes += bytes;
        Ok(())
    }

    fn forget(&mut self, id: u64) {
        if let Some(running) = self.running.remove(&id) {
            self.bytes -= running.bytes;
        }
    }

    /// `None`: nobody waits for it any more.
    async fn answer(&mut self, id: u64, answer: Option<Result<Answer>>) -> Result<(), End> {
        self.forget(id);
        let Some(answer) = answer else { return Ok(()) };
        if let Err(error) = &answer {
            self.tell_health().await?;
            if error.kind() == ErrorKind::Poisoned {
                self.shared.poisoned.send_replace(true);
            }
        }
        let frame = match encode(&ToClient::Answer { id, answer }) {
            Ok(frame) => frame,
            Err(error) => encode(&ToClient::Answer { id, answer: Err(error) }).map_err(End::Refused)?,
        };
        self.outgoing.send(frame).await.map_err(|_| End::Gone)
    }

    async fn send(&mut self, what: &ToClient) -> Result<(), End> {
        let frame = encode(what).map_err(End::Refused)?;
        self.outgoing.send(frame).await.map_err(|_| End::Gone)
    }

    async fn tell_health(&mut self) -> Result<(), End> {
        let health = self.shared.engine.health();
        if health == self.health {
            return Ok(());
        }
        self.health = health.clone();
        self.send(&ToClient::Health(health)).await
    }

    fn watch(&mut self, id: u64, interest: Interest) {
        if self.watched.len() >= WATCHES_MAX || self.watched.contains_key(&id) {
            return;
        }
        let (hints, abort) = futures::stream::abortable(self.shared.engine.watch(interest));
        self.watches.push(hints.map(move |hint| (id, hint)).boxed());
        self.watched.insert(id, abort);
    }

    fn hint(&mut self, id: u64, hint: Hint) {
        if self.watched.contains_key(&id) {
            self.hints.entry(id).or_default().push(hint);
        }
    }

    fn next_hint(&mut self) -> Option<Vec<u8>> {
        let mut entry = self.hints.first_entry()?;
        let id = *entry.key();
        match entry.get_mut().pop() {
            Some(hint) => encode(&ToClient::Hint { id, hint }).ok(),
            None => {
                entry.remove();
                None
            }
        }
    }

    /// Lets running calls end for up to `drain`, but none that waits for work: nobody would do it.
    pub(super) async fn finish(&mut self, drain: Duration, answers: bool) {
        self.running.values().filter(|running| running.waits).for_each(|running| running.abort.abort());
        let env = self.shared.env.clone();
        let rest = async {
            while let Some((id, answer)) = self.calls.next().await {
                if answers && self.answer(id, answer).await.is_err() {
                    return;
                }
            }
        };
        let _ = within(&*env, drain, rest).await;
    }

    pub(super) async fn end(mut self, end: End, member: Member) {
        match end {
            End::Goodbye => {
                self.finish(LAST_CALLS, true).await;
                member.goodbye().await;
                let _ = self.send(&ToClient::Goodbye).await;
            }
            End::Gone => self.finish(LAST_CALLS, false).await,
            End::Stopped(drain) => self.finish(drain, true).await,
            End::Refused(error) => {
                let _ = self.send(&ToClient::Refused(error)).await;
            }
        }
    }
}
