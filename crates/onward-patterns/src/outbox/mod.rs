//! The outbox: a message that is sent exactly when a business change happens, also to another engine.
//!
//! [`Outbox::stage`] makes an operation that joins the commit of the change: the message is then durable with it, or
//! neither is. A [`Relay`] carries staged messages to their destination, which may be in another engine, and
//! [`Outbox::reconcile`] finds work whose message was never staged.
//!
//! An outbox is a queue of the store that holds the change, in order by key. So whatever holds of a queue holds of it:
//! leases with fencing, retries with a delay, dead letters with causes, bounds, books and the age of the oldest one.
//! What was sent is acknowledged, and with that it is gone.

mod reconcile;
mod relay;
mod stage;

pub use crate::Destination;
pub use reconcile::Reconciled;
pub use relay::{RELAY_COUNT_MAX, Relay, Relayed};
pub use stage::{STAGED_HEADER, unstage};

use onward_core::{
    Capability, Engine, Inlet, InletConfig, Message, Name, Op, OrderPolicy, PAYLOAD_BYTES_CEILING, Result,
    Stats, StuckHead, TopologyChange,
};

/// How long a sent message's id is remembered, in milliseconds (7 days): as far back [`Outbox::reconcile`] can look.
pub const REMEMBER_MS_DEFAULT: u64 = 7 * 24 * 3_600_000;

/// An outbox: a queue whose messages are meant for other places. No I/O to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    queue: Name,
}

/// What an outbox holds that was not sent yet, all of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsent {
    /// Messages that wait, are delayed or are with a relay.
    pub depth: u64,
    /// Messages that can't be sent as they are; each blocks its order key until it is redriven or purged.
    pub dead: u64,
    /// Since when the oldest waiting one waits.
    pub oldest_waiting: Option<onward_core::Timestamp>,
}

impl Outbox {
    /// The outbox that is the queue of this name.
    pub fn new(queue: Name) -> Self {
        Self { queue }
    }

    /// The queue.
    pub fn queue(&self) -> &Name {
        &self.queue
    }

    /// The rules of an outbox: order by key where the engine keeps it, a stuck message waits, sent ids are remembered
    /// for [`REMEMBER_MS_DEFAULT`].
    pub fn rules(store: &dyn Engine) -> InletConfig {
        let capabilities = store.capabilities();
        let order = match capabilities.has(Capability::OrderByKey) {
            true => OrderPolicy::ByKey { stuck_head: StuckHead::Wait },
            false => OrderPolicy::Unordered,
        };
        let longest = capabilities.limits.dedup_window_max.map_or(u64::MAX, millis);
        InletConfig {
            order,
            dedup_window_ms: REMEMBER_MS_DEFAULT.min(longest),
            payload_bytes_max: capabilities.limits.payload_bytes_max.min(PAYLOAD_BYTES_CEILING as u64),
            ..InletConfig::default()
        }
    }

    /// Declares the queue with [`Outbox::rules`]. Repeating is safe.
    ///
    /// # Errors
    /// `Conflict` where a queue of this name has other rules.
    pub async fn declare(&self, store: &dyn Engine) -> Result<()> {
        let config = Box::new(Self::rules(store));
        let change = TopologyChange::Queue { name: self.queue.clone(), config, update: false };
        store.declare(change).await.map(drop)
    }

    /// The operation that stages a message: put it into the commit of the change that the message tells of.
    ///
    /// Guarantees: the message reaches its destination with its own id, content and keys, at least once, and once where
    /// the destination recognises repeats; messages of one order key in the order of their commits, where the store
    /// keeps order by key.
    ///
    /// # Errors
    /// `Invalid` when the message's headers leave no room for one more.
    pub fn stage(&self, to: &Destination, message: Message) -> Result<Op> {
        let message = Box::new(stage::stage(to, message)?);
        Ok(Op::Enqueue { queue: self.queue.clone(), message })
    }

    /// What was staged and not sent yet: alert on its age and on what is dead.
    ///
    /// # Errors
    /// `NotFound` when the outbox was never declared nor used.
    pub async fn unsent(&self, store: &dyn Engine) -> Result<Unsent> {
        let Stats { books, oldest_waiting, .. } = self.stats(store).await?;
        Ok(Unsent { depth: books.waiting + books.delayed + books.leased, dead: books.dead, oldest_waiting })
    }

    async fn stats(&self, store: &dyn Engine) -> Result<Stats> {
        let inlet = Inlet::Queue(self.queue.clone());
        let none = || onward_core::Error::not_found("there is no such outbox").at(&self.queue);
        store.stats(vec![inlet]).await?.pop().ok_or_else(none)
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
