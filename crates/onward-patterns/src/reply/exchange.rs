//! The exchange: sends requests, receives replies, and brings them together.

use super::{REPLY_TO_HEADER, ReplyCounts, pending::Pending};
use futures::future::{Either, select};
use onward_core::{
    Engine, Env, Error, Holder, Inlet, InletConfig, LeaseRequest, Message, MessageId, Name, Op, Outcome,
    RequestId, Result, TopologyChange,
};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

/// Most replies that are received at once.
pub const REPLIES_COUNT_MAX: u32 = 1_000;
/// Most requests that wait at once.
const WAITING_MAX: usize = 100_000;

/// Requests of one process, and the queue in which their replies come.
///
/// One process receives from a reply queue at a time: another one would take replies that are not its own, which shows
/// as orphans. The queue's name may be the same over restarts: replies to an earlier life are orphans too.
#[derive(Debug)]
pub struct Exchange {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    replies: Name,
    holder: Holder,
    pending: Mutex<Pending>,
}

impl Exchange {
    /// An exchange with the reply queue of this name. No I/O.
    pub fn new(engine: Arc<dyn Engine>, env: Arc<dyn Env>, replies: Name, holder: Holder) -> Self {
        Self { engine, env, replies, holder, pending: Mutex::default() }
    }

    /// Declares the reply queue, with default rules. Repeating is safe.
    ///
    /// # Errors
    /// `Conflict` where a queue of this name has other rules.
    pub async fn declare(&self) -> Result<()> {
        let (name, config) = (self.replies.clone(), Box::<InletConfig>::default());
        self.engine.declare(TopologyChange::Queue { name, config, update: false }).await.map(drop)
    }

    /// Sends a request and waits up to `timeout` for its reply. Replies come in by [`Exchange::receive`], which somebody
    /// must call meanwhile.
    ///
    /// # Errors
    /// No reply in time is `Unavailable` with the hint `Unknown`, at the request's id: the request was accepted, and
    /// whether it is or will be done is not known. It is not withdrawn; its reply is discarded when it comes. Also
    /// `Conflict` for an id whose reply is waited for already, `Full` beyond a hundred thousand requests at once, and
    /// what the engine answers to the request.
    ///
    /// # Cancel safety
    /// A dropped request may have been sent; its reply is discarded.
    pub async fn request(&self, queue: &Name, mut request: Message, timeout: Duration) -> Result<Message> {
        let until = self.env.monotonic() + timeout;
        let id = request.id.clone();
        request.headers.insert(REPLY_TO_HEADER.into(), self.replies.full().into());
        let op = Op::Enqueue { queue: queue.clone(), message: Box::new(request) };
        let prepared = self.engine.prepare(vec![op])?;
        let reply = self.begin(&id)?;
        let waiting = Waiting { exchange: self, id: &id };
        let exchange = async {
            self.engine.commit(prepared).await?;
            reply.await.map_err(|_| Error::internal("a request was forgotten while it waited"))
        };
        let left = until.saturating_sub(self.env.monotonic());
        let answer = match select(Box::pin(exchange), self.env.sleep(left)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(no_reply(waiting.id, timeout)),
        };
        drop(waiting);
        answer
    }

    fn begin(&self, id: &MessageId) -> Result<futures::channel::oneshot::Receiver<Message>> {
        let mut pending = self.pending.lock();
        if pending.waiting() >= WAITING_MAX {
            return Err(Error::full(format!("{WAITING_MAX} requests wait for replies")).at(&self.replies));
        }
        pending.wait(id)
    }

    /// Receives what has come, waiting up to `wait` for the first, hands replies over and discards those that nobody
    /// waits for; answers how many came. Call it again and again while requests wait.
    ///
    /// # Errors
    /// Those of leasing and settling.
    pub async fn receive(&self, wait: Duration) -> Result<usize> {
        let inlet = Inlet::Queue(self.replies.clone());
        let request = LeaseRequest::one(inlet, self.holder.clone(), RequestId::generate(&*self.env));
        let request = LeaseRequest { count_max: REPLIES_COUNT_MAX, wait, ..request };
        let deliveries = self.engine.lease(request).await?;
        let mut acks = Vec::new();
        for delivery in deliveries {
            let op = Op::Settle { token: delivery.token, outcome: Outcome::Ack { result: None } };
            acks.push(self.engine.prepare(vec![op])?);
            self.pending.lock().take(delivery.message);
        }
        let came = acks.len();
        if came > 0 {
            // One that was not settled comes again and is discarded then.
            self.engine.submit(acks).await?;
        }
        Ok(came)
    }

    /// What became of the replies so far.
    pub fn counts(&self) -> ReplyCounts {
        self.pending.lock().counts
    }

    /// How many requests wait now.
    pub fn waiting(&self) -> usize {
        self.pending.lock().waiting()
    }
}

/// Gives up when the request ends, however it ends.
struct Waiting<'a> {
    exchange: &'a Exchange,
    id: &'a MessageId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.exchange.pending.lock().give_up(self.id);
    }
}

fn no_reply(id: &MessageId, timeout: Duration) -> Error {
    Error::unknown(format!("no reply came within {timeout:?}; whether it was done is not known")).at(id).mend(
        "look whether it happened before asking anew; submit a job where the outcome must be found later",
    )
}
