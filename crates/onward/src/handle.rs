//! The handle that programs hold: one engine, its clock, this process, and the short forms of what is done most.

use crate::{Process, work::Heart};
use onward_core::{
    Accepted, BulkId, BulkReport, CancelOutcome, Engine, Env, Error, Filter, Inlet, InletConfig, Message,
    MessageBuilder, MessageId, MessageQuery, MessageState, MessageView, Name, Op, Prepared, Receipt, Result,
    RetryHint, SeekMode, SeekTo, Selection, Sought, StartFrom, Stats, TopicConfig, TopologyChange,
    TopologyDiff,
};
use std::{sync::Arc, time::Duration};

/// How often a write whose answer was lost is repeated before the caller is told.
pub const UNKNOWN_REPEATS_MAX: u32 = 5;
const REPEAT_AFTER: Duration = Duration::from_millis(100);

/// A way to an engine: what is opened once and passed around. Cheap to clone.
///
/// Guarantees: a call returns only once the engine's declared durability holds. Where the answer to a write is lost,
/// the write is repeated with the same ids, up to [`UNKNOWN_REPEATS_MAX`] times.
///
/// Cancel safety: dropping a future leaves its writes fully there or fully absent.
#[derive(Debug, Clone)]
pub struct Onward {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    process: Arc<Process>,
    pub(crate) heart: Arc<Heart>,
}

/// What can be enqueued: a built message, or a builder that is built when it is sent.
pub trait IntoMessage {
    /// The checked message.
    ///
    /// # Errors
    /// `Invalid` for the first field that is not right.
    fn into_message(self, env: &dyn Env) -> Result<Message>;
}

impl IntoMessage for Message {
    fn into_message(self, _: &dyn Env) -> Result<Message> {
        Ok(self)
    }
}

impl IntoMessage for MessageBuilder {
    fn into_message(self, env: &dyn Env) -> Result<Message> {
        self.build(env)
    }
}

impl Onward {
    /// A handle on an engine. No I/O.
    pub fn new(engine: Arc<dyn Engine>, env: Arc<dyn Env>) -> Self {
        let process = Process::this(&*env);
        Self { engine, env, process, heart: Arc::default() }
    }

    /// The same as another process: for tests that play several processes in one.
    pub fn as_process(&self, process: Arc<Process>) -> Self {
        Self { process, heart: Arc::default(), ..self.clone() }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Clock, randomness and sleeping.
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// This process.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Puts one message into a queue. The answer says that it is durable, never that it is done.
    ///
    /// # Errors
    /// `Invalid` for a name or message that is not right, `Conflict` for a known id with other content, `Full` when
    /// the queue is.
    pub async fn enqueue(&self, queue: &str, message: impl IntoMessage) -> Result<Accepted> {
        let op = self.enqueue_op(queue, message)?;
        accepted(self.commit(vec![op]).await?.pop())
    }

    /// Puts many messages into a queue, independent of each other; the answers are in the same order.
    ///
    /// # Errors
    /// For all: a wrong name, or an engine that can't be reached. Per message: as [`Onward::enqueue`].
    pub async fn enqueue_batch<M: IntoMessage>(
        &self,
        queue: &str,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Result<Accepted>>> {
        let prepare = |message| self.engine.prepare(vec![self.enqueue_op(queue, message)?]);
        let checked: Vec<Result<Prepared>> = messages.into_iter().map(prepare).collect();
        let good = checked.iter().filter_map(|one| one.as_ref().ok().cloned()).collect();
        let mut answers = self.engine.submit(good).await?.into_iter();
        let answer = |one: Result<Prepared>| {
            one.and_then(|_| answers.next().unwrap_or_else(|| Err(too_few())))
                .and_then(|mut receipts| accepted(receipts.pop()))
        };
        Ok(checked.into_iter().map(answer).collect())
    }

    /// Publishes one message to a topic, once for all its subscriptions. The answer says that it is durable.
    ///
    /// # Errors
    /// As [`Onward::enqueue`].
    pub async fn publish(&self, topic: &str, message: impl IntoMessage) -> Result<Accepted> {
        let message = Box::new(message.into_message(&*self.env)?);
        accepted(self.commit(vec![Op::Publish { topic: topic.parse()?, message }]).await?.pop())
    }

    /// All of the operations or none.
    ///
    /// # Errors
    /// As [`Engine::prepare`] and [`Engine::commit`].
    pub async fn commit(&self, ops: Vec<Op>) -> Result<Vec<Receipt>> {
        let prepared = self.engine.prepare(ops)?;
        let mut repeats = 0;
        loop {
            match self.engine.commit(prepared.clone()).await {
                Err(e) if e.retry_hint() == RetryHint::Unknown && repeats < UNKNOWN_REPEATS_MAX => {
                    repeats += 1;
                    self.env.sleep(REPEAT_AFTER * repeats).await;
                }
                answer => return answer,
            }
        }
    }

    /// Creates a queue with its rules. Repeating is safe; other rules than those that stand are `Conflict`.
    ///
    /// # Errors
    /// `Invalid` for rules that make no sense, `Unsupported` for those that the engine does not keep.
    pub async fn declare_queue(&self, name: &str, config: InletConfig) -> Result<TopologyDiff> {
        config.check()?;
        let (name, config) = (name.parse()?, Box::new(config));
        self.engine.declare(TopologyChange::Queue { name, config, update: false }).await
    }

    /// Creates a topic with its rules. Repeating is safe; other rules than those that stand are `Conflict`.
    ///
    /// # Errors
    /// As [`Onward::declare_queue`].
    pub async fn declare_topic(&self, name: &str, config: TopicConfig) -> Result<TopologyDiff> {
        self.engine.declare(TopologyChange::Topic { name: name.parse()?, config, update: false }).await
    }

    /// Creates a subscription (`orders:analytics`) with its rules, filter and start. It is worked on as a queue is.
    ///
    /// # Errors
    /// As [`Onward::declare_queue`]; `Invalid` for the name of a queue, `NotFound` for a topic or a position that
    /// does not exist.
    pub async fn subscribe(
        &self,
        subscription: &str,
        config: InletConfig,
        filter: Filter,
        start: StartFrom,
    ) -> Result<TopologyDiff> {
        let Inlet::Subscription { topic, name } = subscription.parse()? else {
            return Err(Error::invalid("is not a subscription")
                .at(subscription)
                .mend("name it with its topic, as in `orders:analytics`"));
        };
        let config = Box::new(config);
        let change = TopologyChange::Subscription { topic, name, config, filter, start, update: false };
        self.engine.declare(change).await
    }

    /// Moves a subscription to another place of its topic.
    ///
    /// # Errors
    /// `NotFound` for a position that never was; `Unsupported` where the engine can't.
    pub async fn seek(&self, subscription: &str, to: SeekTo, mode: SeekMode) -> Result<Sought> {
        match self.commit(vec![Op::Seek { inlet: subscription.parse()?, to, mode }]).await?.pop() {
            Some(Receipt::Sought(sought)) => Ok(sought),
            _ => Err(too_few()),
        }
    }

    /// Cancels a message by id: a waiting one is gone, a running one is asked to stop.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` where the engine can't.
    pub async fn cancel(&self, inlet: &str, id: &MessageId) -> Result<CancelOutcome> {
        match self.commit(vec![Op::Cancel { inlet: inlet.parse()?, id: id.clone() }]).await?.pop() {
            Some(Receipt::Cancelled(outcome)) => Ok(outcome),
            _ => Err(too_few()),
        }
    }

    /// Stops handing out from a queue or subscription; accepting goes on.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` where the engine can't.
    pub async fn pause(&self, inlet: &str) -> Result<()> {
        self.commit(vec![Op::Pause { inlet: inlet.parse()? }]).await.map(drop)
    }

    /// Hands out again.
    ///
    /// # Errors
    /// As [`Onward::pause`].
    pub async fn resume(&self, inlet: &str) -> Result<()> {
        self.commit(vec![Op::Resume { inlet: inlet.parse()? }]).await.map(drop)
    }

    /// The message of an id in whatever state, with its attempts and causes.
    ///
    /// # Errors
    /// `Unsupported` where the engine can't look without leasing.
    pub async fn find(&self, inlet: &str, id: &MessageId) -> Result<Option<MessageView>> {
        Ok(self.engine.find(MessageQuery::id(inlet.parse()?, id.clone())).await?.items.pop())
    }

    /// The first dead letters of an inlet, oldest first, at most `limit` of them.
    ///
    /// # Errors
    /// As [`Onward::find`].
    pub async fn dead_letters(&self, inlet: &str, limit: usize) -> Result<Vec<MessageView>> {
        let query = MessageQuery::state(inlet.parse()?, MessageState::Dead, limit);
        Ok(self.engine.find(query).await?.items)
    }

    /// Moves dead letters back to work, keeping id, history and correlation.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` where the engine has no dead letters.
    pub async fn redrive(&self, inlet: &str, selection: Selection) -> Result<BulkReport> {
        let bulk = BulkId::generate(&*self.env);
        let (inlet, spacing) = (inlet.parse()?, Duration::ZERO);
        loop {
            let op = Op::Redrive {
                inlet: Inlet::clone(&inlet),
                selection: selection.clone(),
                spacing,
                bulk,
                dry_run: false,
            };
            match self.commit(vec![op]).await?.pop() {
                Some(Receipt::Bulk(report)) if report.finished => return Ok(report),
                Some(Receipt::Bulk(_)) => {}
                _ => return Err(too_few()),
            }
        }
    }

    /// Numbers of one queue or subscription.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn stats(&self, inlet: &str) -> Result<Stats> {
        self.engine.stats(vec![inlet.parse()?]).await?.pop().ok_or_else(too_few)
    }

    pub(crate) fn enqueue_op(&self, queue: &str, message: impl IntoMessage) -> Result<Op> {
        let queue: Name = queue.parse()?;
        Ok(Op::Enqueue { queue, message: Box::new(message.into_message(&*self.env)?) })
    }
}

pub(crate) fn accepted(receipt: Option<Receipt>) -> Result<Accepted> {
    match receipt {
        Some(Receipt::Accepted(accepted)) => Ok(accepted),
        _ => Err(too_few()),
    }
}

fn too_few() -> Error {
    Error::internal("the engine answered with another receipt than the operation has")
}
