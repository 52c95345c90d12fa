//! What a check works with: an engine, its clock, and the few calls that every check is made of.

pub(crate) use crate::make::{
    accepted, ack, commit, enqueue, holder, millis, reject, release, retry_after, rules,
};
use crate::{Answer, Clock, Stop, Subject};
use onward_core::{
    Accepted, Delivery, Engine, Env, Inlet, InletConfig, LeaseRequest, LeaseToken, Message, MessageBuilder,
    MessageId, MessageQuery, MessageView, Name, Op, Outcome, Receipt, RequestId, Result, SettledAs, Stats,
    TopologyChange,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How long a check waits for what must come, at the most. Reaching it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The steps in which a stepped clock is moved while something is waited for.
const STEP: Duration = Duration::from_millis(5);

/// An engine under test and its clock.
pub struct Bench {
    pub(crate) subject: Box<dyn Subject>,
    clock: Clock,
    env: Arc<dyn Env>,
    serial: AtomicU64,
    note: parking_lot::Mutex<Option<String>>,
    /// How many messages the stress checks send.
    pub messages: u64,
    /// How many random sequences the reference model is compared over.
    pub seeds: u64,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("engine", &self.subject.engine()).finish_non_exhaustive()
    }
}

impl Bench {
    /// A bench over a new engine.
    pub fn new(subject: Box<dyn Subject>, messages: u64, seeds: u64) -> Self {
        let clock = subject.clock();
        let env = clock.env();
        Self {
            subject,
            clock,
            env,
            serial: AtomicU64::new(0),
            note: parking_lot::Mutex::default(),
            messages,
            seeds,
        }
    }

    /// The engine that is open now.
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.subject.engine()
    }

    /// The engine's clock.
    pub fn env(&self) -> &dyn Env {
        &*self.env
    }

    /// The clock as the harness gave it.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Says what a check that passes has counted; it stands in the report.
    pub(crate) fn note(&self, text: String) {
        *self.note.lock() = Some(text);
    }

    pub(crate) fn noted(&self) -> Option<String> {
        self.note.lock().take()
    }

    /// Time on the engine's monotonic clock.
    pub(crate) fn monotonic(&self) -> Duration {
        self.env.monotonic()
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, span: Duration) {
        self.clock.pass(span).await;
    }

    /// A lease so short that a check can see it end.
    pub(crate) fn brief(&self) -> Duration {
        Duration::from_millis(150)
    }

    /// A number that this bench has not given yet.
    pub(crate) fn next(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Declares a queue of its own for a check.
    pub(crate) async fn queue(&self, config: InletConfig) -> Result<Name> {
        let name: Name = format!("check-{}", self.next()).parse()?;
        self.declare(&name, config, false).await?;
        Ok(name)
    }

    pub(crate) async fn declare(
        &self,
        name: &Name,
        config: InletConfig,
        update: bool,
    ) -> Result<onward_core::TopologyDiff> {
        let change = TopologyChange::Queue { name: name.clone(), config: Box::new(config), update };
        self.engine().declare(change).await
    }

    /// One operation committed alone.
    pub(crate) async fn op(&self, op: Op) -> Result<Receipt> {
        let receipts = self.commit(vec![op]).await?;
        Ok(receipts.into_iter().next().unwrap_or(Receipt::Done))
    }

    pub(crate) async fn commit(&self, ops: Vec<Op>) -> Result<Vec<Receipt>> {
        commit(&*self.engine(), ops).await
    }

    pub(crate) async fn enqueue(&self, queue: &Name, message: Message) -> Result<Accepted> {
        accepted(self.op(enqueue(queue, message)).await?)
    }

    /// Enqueues a message of a given id and tells nothing.
    pub(crate) async fn put(&self, queue: &Name, id: &str) -> Result<()> {
        self.enqueue(queue, self.message(id).build(self.env())?).await.map(drop)
    }

    /// Enqueues a message with an order key.
    pub(crate) async fn put_keyed(&self, queue: &Name, id: &str, key: &str) -> Result<()> {
        self.enqueue(queue, self.message(id).order_key(key).build(self.env())?).await.map(drop)
    }

    /// A message of a given id; its data names the id.
    pub(crate) fn message(&self, id: &str) -> MessageBuilder {
        Message::builder("check").id(self.id(id)).json(&id)
    }

    /// An id from a text that a check wrote.
    pub(crate) fn id(&self, id: &str) -> MessageId {
        MessageId::try_from(id).expect("checks write short ids without control characters")
    }

    /// A request for one delivery without waiting, by a worker `w` in the process `p`.
    pub(crate) fn request(&self, queue: &Name) -> LeaseRequest {
        let request = RequestId::generate(self.env());
        LeaseRequest::one(Inlet::Queue(queue.clone()), holder("w", "p"), request)
    }

    /// What is there at once, if anything.
    pub(crate) async fn take(&self, queue: &Name) -> Result<Option<Delivery>> {
        Ok(self.engine().lease(self.request(queue)).await?.into_iter().next())
    }

    /// As many as are there at once.
    pub(crate) async fn take_many(&self, queue: &Name, count: u32) -> Result<Vec<Delivery>> {
        self.engine().lease(LeaseRequest { count_max: count, ..self.request(queue) }).await
    }

    /// What is there now, or a failure.
    pub(crate) async fn must_take(&self, queue: &Name) -> Answer<Delivery> {
        self.take(queue).await?.ok_or_else(|| Stop::Failed(format!("nothing was handed out of {queue}")))
    }

    /// The delivery that this request gets within [`PATIENCE`].
    pub(crate) async fn await_request(&self, request: LeaseRequest) -> Answer<Delivery> {
        self.await_from(&*self.engine(), request).await
    }

    /// The same from an engine that wraps the one under test.
    pub(crate) async fn await_from(&self, engine: &dyn Engine, request: LeaseRequest) -> Answer<Delivery> {
        let start = self.monotonic();
        while self.monotonic().saturating_sub(start) < PATIENCE {
            let wait = match self.clock {
                Clock::Stepped(_) => Duration::ZERO,
                Clock::Real(_) => PATIENCE,
            };
            let request_id = RequestId::generate(self.env());
            let request = LeaseRequest { wait, request_id, ..request.clone() };
            if let Some(delivery) = engine.lease(request).await?.into_iter().next() {
                return Ok(delivery);
            }
            self.pass(self.step(self.monotonic() - start)).await;
        }
        let inlets = request.inlets.into_iter().map(|weighted| weighted.inlet).collect();
        let books: Vec<_> = self.engine().stats(inlets).await?.into_iter().map(|s| s.books).collect();
        Err(Stop::Failed(format!("nothing was handed out within {PATIENCE:?}; the books say {books:?}")))
    }

    /// Small steps, since a due time is to be met closely; large ones later, unless threads need the time.
    fn step(&self, waited: Duration) -> Duration {
        let slow = self.clock.stepped().is_ok_and(|clock| !clock.has_threads());
        if slow && waited > Duration::from_secs(1) { STEP * 20 } else { STEP }
    }

    /// The delivery that comes within [`PATIENCE`].
    pub(crate) async fn await_take(&self, queue: &Name) -> Answer<Delivery> {
        self.await_request(self.request(queue)).await
    }

    /// Nothing is handed out for so long.
    pub(crate) async fn nothing_for(&self, queue: &Name, span: Duration) -> Answer<()> {
        let unexpected = |d: &Delivery| Stop::Failed(format!("{} was handed out and must not", d.message.id));
        if let Clock::Real(_) = self.clock {
            let request = LeaseRequest { wait: span, ..self.request(queue) };
            let got = self.engine().lease(request).await?;
            return got.first().map_or(Ok(()), |delivery| Err(unexpected(delivery)));
        }
        let end = self.monotonic() + span;
        loop {
            if let Some(delivery) = self.take(queue).await? {
                return Err(unexpected(&delivery));
            }
            let left = end.saturating_sub(self.monotonic());
            if left.is_zero() {
                return Ok(());
            }
            self.pass(left.min(span / 20 + STEP)).await;
        }
    }

    pub(crate) async fn settle(&self, token: &LeaseToken, outcome: Outcome) -> Result<SettledAs> {
        match self.op(Op::Settle { token: token.clone(), outcome }).await? {
            Receipt::Settled(settled) => Ok(settled),
            other => Err(onward_core::Error::internal(format!("settle answered {other:?}"))),
        }
    }

    pub(crate) async fn ack(&self, delivery: &Delivery) -> Result<SettledAs> {
        self.settle(&delivery.token, ack()).await
    }

    pub(crate) async fn find(&self, queue: &Name, id: &str) -> Result<Option<MessageView>> {
        let query = MessageQuery::id(Inlet::Queue(queue.clone()), self.id(id));
        Ok(self.engine().find(query).await?.items.into_iter().next())
    }

    /// What is known of a message that must be there.
    pub(crate) async fn must_find(&self, queue: &Name, id: &str) -> Answer<MessageView> {
        self.find(queue, id).await?.ok_or_else(|| Stop::Failed(format!("{id} is not found in {queue}")))
    }

    pub(crate) async fn stats(&self, queue: &Name) -> Answer<Stats> {
        let found = self.engine().stats(vec![Inlet::Queue(queue.clone())]).await?;
        found.into_iter().next().ok_or_else(|| Stop::Failed(format!("no stats of {queue}")))
    }
}
