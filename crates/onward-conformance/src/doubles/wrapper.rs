//! The engine with one rule broken, and the harness that wraps another one's engines.
#![deny(clippy::missing_trait_methods)]

use super::{Fault, Rule};
use crate::{Answer, Clock, Harness, Later, Subject};
use onward_core::{
    Accepted, BoxStream, CancelOutcome, Capabilities, Cause, CauseKind, Cursor, Delivery, DeliveryGuarantee,
    Engine, Error, ErrorKind, EventRead, EventSlice, Extended, Failure, Fut, Guarded, Health, Hint, Inlet,
    Interest, LeaseRequest, LeaseToken, Message, MessageId, MessageQuery, MessageState, MessageView, Name,
    Op, OrderPolicy, Outcome, Overflow, Page, Payload, Prepared, Priority, Receipt, Record, RecordExpect,
    RecordQuery, RequestId, Result, RetryDelay, SettledAs, Stats, StuckHead, Topology, TopologyChange,
    TopologyDiff,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The term of the deliveries that some faults keep to.
const LONG: Duration = crate::bench::PATIENCE;

/// An engine that breaks one rule and keeps the others.
#[derive(Debug)]
pub struct Double {
    inner: Arc<dyn Engine>,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
}

/// What a double must remember to be wrong.
#[derive(Debug, Default)]
struct Memory {
    /// Configurations as they were declared, where the double declares others.
    declared: BTreeMap<Inlet, onward_core::InletConfig>,
    /// Messages as they came, where the double passes others on.
    messages: BTreeMap<(Inlet, MessageId), Message>,
    /// Receipts by id over all queues.
    receipts: BTreeMap<MessageId, Accepted>,
    /// Deliveries that are out, in their order.
    out: Vec<Delivery>,
    /// To be handed out once more.
    again: Vec<Delivery>,
    count: u64,
}

impl Double {
    /// Breaks one rule of an engine.
    pub fn new(inner: Arc<dyn Engine>, fault: Fault) -> Self {
        Self { inner, fault, memory: Arc::default() }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Faults that would show everywhere are kept to deliveries of one term, so that one check shows them.
    fn was_asked_long(&self, token: &LeaseToken) -> bool {
        self.memory.lock().out.iter().any(|d| d.token == *token && d.lease == LONG)
    }

    fn next(&self) -> u64 {
        let mut memory = self.memory.lock();
        memory.count += 1;
        memory.count
    }

    /// What the double makes of the operations before the engine sees them.
    fn bend(&self, op: Op) -> Op {
        match op {
            Op::Enqueue { queue, message } => self.bend_message(queue, *message),
            Op::Settle { token, outcome } => Op::Settle { outcome: self.bend_outcome(outcome), token },
            Op::PutRecord { key, value, expect, ttl } => Op::PutRecord {
                key,
                value,
                expect: if self.is(Fault::IgnoresExpectation) { RecordExpect::Any } else { expect },
                ttl: ttl.filter(|_| !self.is(Fault::IgnoresTtl)),
            },
            Op::DeleteRecord { key, .. } if self.is(Fault::IgnoresExpectation) => {
                Op::DeleteRecord { key, expect: RecordExpect::Any }
            }
            Op::EndProcess { process, .. } if self.is(Fault::IgnoresCrashes) => {
                Op::EndProcess { process, died: false }
            }
            Op::Redrive { .. } | Op::Purge { .. } => self.bend_bulk(op),
            other => other,
        }
    }

    fn bend_message(&self, queue: Name, original: Message) -> Op {
        let mut message = original.clone();
        match self.fault {
            Fault::IgnoresOrderKey => message.order_key = None,
            Fault::IgnoresPriority => message.priority = Priority::default(),
            Fault::IgnoresExpiry => message.expiry = None,
            Fault::IgnoresDue => message.due = None,
            Fault::IgnoresFairness => message.fairness_key = None,
            Fault::IgnoresUnique => message.unique_key = None,
            Fault::EndsAtNul => message.data = until_nul(&message.data),
            Fault::AsciiHeaders => {
                let ascii = |text: String| text.chars().filter(char::is_ascii).collect::<String>();
                message.headers = message.headers.into_iter().map(|(n, v)| (n, ascii(v))).collect();
            }
            Fault::CutsOversize => message.data = self.cut(&queue, &message),
            _ => {}
        }
        let is_kept = matches!(
            self.fault,
            Fault::IgnoresOrderKey
                | Fault::IgnoresPriority
                | Fault::IgnoresExpiry
                | Fault::IgnoresDue
                | Fault::IgnoresFairness
                | Fault::IgnoresUnique
        );
        if is_kept {
            let key = (Inlet::Queue(queue.clone()), original.id.clone());
            self.memory.lock().messages.entry(key).or_insert(original);
        }
        Op::Enqueue { queue, message: Box::new(message) }
    }

    /// Shows the field that was left out on the way in: only the rule is broken, not the message.
    fn restore(&self, message: &mut Message, original: &Message) {
        match self.fault {
            Fault::IgnoresOrderKey => message.order_key = original.order_key.clone(),
            Fault::IgnoresPriority => message.priority = original.priority,
            Fault::IgnoresExpiry => message.expiry = original.expiry,
            Fault::IgnoresDue => message.due = original.due,
            Fault::IgnoresFairness => message.fairness_key = original.fairness_key.clone(),
            Fault::IgnoresUnique => message.unique_key = original.unique_key.clone(),
            _ => {}
        }
    }

    /// The data within the bound of the queue, silently.
    fn cut(&self, queue: &Name, message: &Message) -> Payload {
        let memory = self.memory.lock();
        let most =
            memory.declared.get(&Inlet::Queue(queue.clone())).map_or(u64::MAX, |c| c.payload_bytes_max);
        let over = (message.size() as u64).saturating_sub(most) as usize;
        let bytes = message.data.as_bytes();
        let kept = bytes.slice(..bytes.len().saturating_sub(over));
        let content_type = (!message.data.is_json()).then(|| message.data.content_type().into());
        Payload::trusted(kept, content_type)
    }

    fn bend_outcome(&self, outcome: Outcome) -> Outcome {
        let released = || Failure::new(CauseKind::Transient, "released");
        match (self.fault, outcome) {
            (Fault::NoDelayOnRetry, Outcome::Retry { failure, .. }) => {
                Outcome::Retry { delay: RetryDelay::After(Duration::ZERO), failure }
            }
            (Fault::DropsUndecodable, Outcome::Reject { failure })
                if failure.kind == CauseKind::Undecodable =>
            {
                Outcome::Ack { result: None }
            }
            (Fault::LosesResult, Outcome::Ack { .. }) => Outcome::Ack { result: None },
            (Fault::ReleaseCounts, Outcome::Release { delay }) => {
                Outcome::Retry { delay: RetryDelay::After(delay), failure: released() }
            }
            (_, outcome) => outcome,
        }
    }

    fn bend_bulk(&self, op: Op) -> Op {
        let mut op = op;
        if let Op::Redrive { selection, bulk, dry_run, .. } | Op::Purge { selection, bulk, dry_run, .. } =
            &mut op
        {
            match self.fault {
                Fault::RepeatsBulk => bulk.0 = bulk.0.wrapping_add(u128::from(self.next())),
                Fault::IgnoresSelection => *selection = onward_core::Selection::default(),
                Fault::DryRunIsWet => *dry_run = false,
                _ => {}
            }
        }
        op
    }

    /// An answer without the operation, where the fault is to answer and do nothing.
    fn skips(&self, op: &Op) -> Option<Receipt> {
        let done = SettledAs { state: MessageState::Done, due: None, already: false };
        match (self.fault, op) {
            (Fault::LosesAck, Op::Settle { token, outcome: Outcome::Ack { .. } })
                if self.was_asked_long(token) =>
            {
                Some(Receipt::Settled(done))
            }
            (Fault::IgnoresCancel, Op::Cancel { .. }) => Some(Receipt::Cancelled(CancelOutcome::Cancelled)),
            (Fault::IgnoresReschedule, Op::Reschedule { .. })
            | (Fault::IgnoresPause, Op::Pause { .. })
            | (Fault::IgnoresGuards, Op::Guard(_)) => Some(Receipt::Done),
            (Fault::IgnoresEdit, Op::EditDead { .. }) => Some(Receipt::Edited { edition: 2 }),
            _ => None,
        }
    }

    async fn commit_all(&self, ops: Prepared) -> Result<Vec<Receipt>> {
        let mut receipts: Vec<Option<Receipt>> = ops.ops().iter().map(|op| self.skips(op)).collect();
        let kept: Vec<Op> = ops
            .ops()
            .iter()
            .zip(&receipts)
            .filter(|(_, r)| r.is_none())
            .map(|(op, _)| self.bend(op.clone()))
            .collect();
        let answers = if kept.is_empty() { Vec::new() } else { self.pass_on(kept).await? };
        let mut answers = answers.into_iter();
        receipts.iter_mut().filter(|r| r.is_none()).for_each(|receipt| *receipt = answers.next());
        Ok(receipts.into_iter().map(|receipt| receipt.unwrap_or(Receipt::Done)).collect())
    }

    async fn pass_on(&self, ops: Vec<Op>) -> Result<Vec<Receipt>> {
        if self.is(Fault::PartialCommit) {
            let mut receipts = Vec::new();
            for op in ops {
                receipts.extend(self.inner.commit(self.inner.prepare(vec![op])?).await?);
            }
            return Ok(receipts);
        }
        if let [op] = ops.as_slice() {
            return self.one(op.clone()).await.map(|receipt| vec![receipt]);
        }
        self.inner.commit(self.inner.prepare(ops)?).await
    }

    /// The honest engine's word on a lease.
    async fn is_live(&self, token: &LeaseToken) -> Result<()> {
        self.commit_one(Op::Guard(Guarded::Lease { token: token.clone() })).await.map(drop)
    }

    async fn commit_one(&self, op: Op) -> Result<Receipt> {
        let receipts = self.inner.commit(self.inner.prepare(vec![op])?).await?;
        receipts.into_iter().next().ok_or_else(|| Error::internal("a commit without a receipt"))
    }

    /// One operation alone, with the faults that look at its answer.
    async fn one(&self, op: Op) -> Result<Receipt> {
        match &op {
            Op::Enqueue { queue, message } => {
                let (queue, message) = (queue.clone(), message.clone());
                let answer = self.commit_one(op).await;
                self.enqueued(queue, *message, answer).await
            }
            Op::Settle { token, outcome } => {
                let (token, outcome) = (token.clone(), outcome.clone());
                self.before_settle(&token, &outcome).await?;
                let answer = self.commit_one(op).await;
                self.settled(&token, answer)
            }
            Op::Progress { token, .. } if self.is(Fault::LosesProgress) => {
                self.is_live(token).await.map(|()| Receipt::Done)
            }
            _ => self.commit_one(op).await,
        }
    }

    async fn enqueued(&self, queue: Name, message: Message, answer: Result<Receipt>) -> Result<Receipt> {
        let first = self.memory.lock().receipts.get(&message.id).cloned();
        match (self.fault, answer) {
            (Fault::ForgetsDedup, Ok(Receipt::Accepted(accepted))) if accepted.duplicate => {
                let id = MessageId::try_from(format!("{}-{}", message.id, self.next()))?;
                self.commit_one(Op::Enqueue {
                    queue,
                    message: Box::new(Message { id, dedup_key: None, ..message }),
                })
                .await
            }
            (Fault::IgnoresFingerprint, Err(error)) if error.kind() == ErrorKind::Conflict => {
                first.map(|a| Receipt::Accepted(Accepted { duplicate: true, ..a })).ok_or(error)
            }
            (Fault::DedupsOverQueues, Ok(_)) if first.is_some() => Ok(Receipt::Accepted(Accepted {
                duplicate: true,
                ..first.ok_or_else(|| Error::internal("seen"))?
            })),
            (_, Ok(Receipt::Accepted(accepted))) => {
                self.memory.lock().receipts.entry(message.id).or_insert(accepted.clone());
                Ok(Receipt::Accepted(accepted))
            }
            (_, answer) => answer,
        }
    }

    async fn before_settle(&self, token: &LeaseToken, outcome: &Outcome) -> Result<()> {
        let is_ack = matches!(outcome, Outcome::Ack { .. });
        let mut earlier = Vec::new();
        {
            let mut memory = self.memory.lock();
            let Some(place) = memory.out.iter().position(|d| d.token == *token) else { return Ok(()) };
            if self.is(Fault::CumulativeAck) && is_ack {
                earlier = memory
                    .out
                    .drain(..=place)
                    .map(|d| d.token)
                    .filter(|t| t != token && t.inlet == token.inlet)
                    .collect();
            } else {
                let delivery = memory.out.remove(place);
                let is_reject = matches!(outcome, Outcome::Reject { .. });
                let long = delivery.lease == LONG;
                let twice = self.is(Fault::DeliversTwice) && is_ack && long
                    || self.is(Fault::DeadComesAgain) && is_reject && long;
                if twice {
                    memory.again.push(delivery);
                }
            }
        }
        for token in earlier {
            self.commit_one(Op::Settle { token, outcome: Outcome::Ack { result: None } })
                .await
                .map(drop)
                .or_else(|e| if e.kind() == ErrorKind::Internal { Err(e) } else { Ok(()) })?;
        }
        Ok(())
    }

    fn settled(&self, token: &LeaseToken, answer: Result<Receipt>) -> Result<Receipt> {
        let done = SettledAs { state: MessageState::Done, due: None, already: false };
        match (self.fault, answer) {
            (Fault::AcceptsStaleTokens, Err(error)) if error.kind() == ErrorKind::LeaseLost => {
                Ok(Receipt::Settled(done))
            }
            (Fault::SwallowsConflict, Err(error)) if error.kind() == ErrorKind::Conflict => {
                Ok(Receipt::Settled(SettledAs { already: true, ..done }))
            }
            (Fault::ForgetsSettlements, Ok(Receipt::Settled(settled))) if settled.already => {
                Err(Error::lease_lost(format!("the lease of {} ended", token.id)))
            }
            (_, answer) => answer,
        }
    }

    fn bend_config(&self, name: &Name, config: &mut onward_core::InletConfig) {
        self.memory.lock().declared.insert(Inlet::Queue(name.clone()), config.clone());
        match self.fault {
            Fault::WindowNeverEnds => config.dedup_window_ms = 1_000_000_000,
            Fault::SetsAsideInsteadOfWaiting if config.order != OrderPolicy::Unordered => {
                config.order = OrderPolicy::ByKey { stuck_head: StuckHead::SetAside };
            }
            Fault::WaitsInsteadOfSettingAside if config.order != OrderPolicy::Unordered => {
                config.order = OrderPolicy::ByKey { stuck_head: StuckHead::Wait };
            }
            Fault::NeverAges => config.ageing_ms = u64::MAX / 4,
            Fault::AtMostOnceRedelivers => config.guarantee = DeliveryGuarantee::AtLeastOnce,
            Fault::IgnoresBounds => (config.depth_max, config.bytes_max) = (1_000_000, 1 << 40),
            Fault::NeverSheds => config.overflow = Overflow::Refuse,
            Fault::IgnoresConcurrency => config.concurrency_max = None,
            Fault::IgnoresRate => (config.rate, config.rate_per_key) = (None, None),
            Fault::IgnoresDeadMax if config.dead_max > 0 => config.dead_max = 1_000_000,
            Fault::RetriesForEver => config.retry.attempts_max = 1_000_000,
            Fault::IgnoresLeaseTotal => config.lease_total_max_ms = None,
            Fault::NoDelayOnRetry => config.retry.delay_min_ms = 1,
            _ => {}
        }
    }

    fn bend_request(&self, mut request: LeaseRequest) -> LeaseRequest {
        match self.fault {
            Fault::ForgetsRequestId => {
                request.request_id = RequestId(request.request_id.0.wrapping_add(u128::from(self.next())));
            }
            Fault::OneTooMany if (2..100).contains(&request.count_max) => request.count_max += 1,
            Fault::IgnoresAccepts => request.accepts.clear(),
            Fault::LeaseEndsEarly => request.lease = request.lease.map(|asked| asked / 2),
            _ => {}
        }
        request
    }

    fn bend_delivery(&self, mut delivery: Delivery) -> Delivery {
        match self.fault {
            Fault::DropsCauses => keep_last(&mut delivery.causes),
            Fault::AttemptsFromZero if delivery.lease == LONG => delivery.attempt -= 1,
            _ => {}
        }
        let memory = self.memory.lock();
        let key = (delivery.token.inlet.clone(), delivery.token.id.clone());
        if let Some(original) = memory.messages.get(&key) {
            self.restore(&mut delivery.message, original);
        }
        delivery
    }

    async fn hand_out(&self, request: LeaseRequest) -> Result<Vec<Delivery>> {
        let asked = request.lease;
        if let Some(again) = self.memory.lock().again.pop() {
            return Ok(vec![again]);
        }
        let deliveries = self.inner.lease(self.bend_request(request)).await?;
        let mut deliveries: Vec<Delivery> = deliveries.into_iter().map(|d| self.bend_delivery(d)).collect();
        match self.fault {
            Fault::LeaseEndsEarly => deliveries.iter_mut().for_each(|d| d.lease = asked.unwrap_or(d.lease)),
            Fault::BatchBackward => deliveries.reverse(),
            Fault::LosesAMessage => self.lose_one(&mut deliveries).await?,
            _ => {}
        }
        self.memory.lock().out.extend(deliveries.iter().cloned());
        Ok(deliveries)
    }

    /// One hand-out in a hundred is acknowledged unseen.
    async fn lose_one(&self, deliveries: &mut Vec<Delivery>) -> Result<()> {
        for index in (0..deliveries.len()).rev() {
            if self.next().is_multiple_of(97) {
                let token = deliveries.remove(index).token;
                self.commit_one(Op::Settle { token, outcome: Outcome::Ack { result: None } }).await?;
            }
        }
        Ok(())
    }

    fn bend_view(&self, mut view: MessageView) -> MessageView {
        match self.fault {
            Fault::DropsCauses => keep_last(&mut view.causes),
            Fault::DeadLetterLosesHeaders if view.state == MessageState::Dead => view.message.headers.clear(),
            _ => {}
        }
        let memory = self.memory.lock();
        if let Some(message) = memory.messages.get(&(view.inlet.clone(), view.message.id.clone())) {
            self.restore(&mut view.message, message);
        }
        view
    }
}

fn keep_last(causes: &mut Vec<Cause>) {
    causes.drain(..causes.len().saturating_sub(1));
}

fn until_nul(data: &Payload) -> Payload {
    let bytes = data.as_bytes();
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    Payload::trusted(bytes.slice(..end), (!data.is_json()).then(|| data.content_type().into()))
}

impl Engine for Double {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        self.inner.prepare(ops)
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        let change = match change {
            TopologyChange::Queue { name, mut config, update } => {
                self.bend_config(&name, &mut config);
                TopologyChange::Queue { name, config, update: update || self.is(Fault::UpdatesSilently) }
            }
            TopologyChange::DropInlet { inlet, only_if_empty } => TopologyChange::DropInlet {
                inlet,
                only_if_empty: only_if_empty && !self.is(Fault::DropsWhatIsFull),
            },
            other => other,
        };
        self.inner.declare(change)
    }

    fn topology(&self) -> Fut<'_, Topology> {
        Box::pin(async move {
            let mut topology = self.inner.topology().await?;
            let memory = self.memory.lock();
            for (inlet, config) in &mut topology.inlets {
                *config = memory.declared.get(inlet).unwrap_or(config).clone();
            }
            Ok(topology)
        })
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        Box::pin(self.commit_all(ops))
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            let mut stopped = false;
            for commit in commits {
                let answer = match stopped {
                    true => Err(Error::conflict("an earlier one failed")),
                    false => self.commit_all(commit).await,
                };
                stopped = self.is(Fault::SubmitStops) && (stopped || answer.is_err());
                answers.push(answer);
            }
            Ok(answers)
        })
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        Box::pin(self.hand_out(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        if self.is(Fault::IgnoresExtend) {
            return Box::pin(async move {
                let mut answers = Vec::new();
                for token in leases {
                    let live = self.is_live(&token).await;
                    answers.push(live.map(|()| Extended { lease: by, cancel_requested: false }));
                }
                Ok(answers)
            });
        }
        self.inner.extend(leases, by)
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        Box::pin(async move {
            let page = self.inner.find(query).await?;
            Ok(Page { items: page.items.into_iter().map(|v| self.bend_view(v)).collect(), next: page.next })
        })
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        self.inner.read_events(read)
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        let query = match query {
            RecordQuery::Prefix { prefix, after, limit } => {
                let after: Option<Cursor> = after.filter(|_| !self.is(Fault::SamePageAgain));
                RecordQuery::Prefix { prefix, after, limit }
            }
            keys => keys,
        };
        self.inner.get_records(query)
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        Box::pin(async move {
            let mut stats = self.inner.stats(inlets).await?;
            if self.is(Fault::BooksLosePurged) {
                stats.iter_mut().for_each(|s| s.books.purged = 0);
            }
            Ok(stats)
        })
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        self.inner.watch(interest)
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        if self.is(Fault::NeverCloses) {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inner.close(drain)
    }
}

/// Wraps every engine of another harness into one double.
#[derive(Debug)]
pub struct DoubleHarness {
    inner: Arc<dyn Harness>,
    rule: Rule,
}

impl DoubleHarness {
    /// The doubles of one rule.
    pub fn new(inner: Arc<dyn Harness>, rule: Rule) -> Self {
        Self { inner, rule }
    }
}

impl Harness for DoubleHarness {
    fn name(&self) -> &str {
        self.rule.name
    }

    fn has_server(&self) -> bool {
        self.inner.has_server()
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        Box::pin(async move {
            let inner = self.inner.fresh().await?;
            let fault = self.rule.fault;
            let double = Double::new(inner.engine(), fault);
            let memory = double.memory.clone();
            Ok(Box::new(DoubleSubject { inner, engine: Arc::new(double), fault, memory }) as Box<dyn Subject>)
        })
    }
}

struct DoubleSubject {
    inner: Box<dyn Subject>,
    engine: Arc<dyn Engine>,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
}

impl DoubleSubject {
    /// The same double around another opening of the same data.
    fn wrap(&self, inner: Arc<dyn Engine>) -> Arc<dyn Engine> {
        Arc::new(Double { inner, fault: self.fault, memory: self.memory.clone() })
    }
}

impl Subject for DoubleSubject {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Clock {
        self.inner.clock()
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async move {
            self.inner.restart().await?;
            self.engine = self.wrap(self.inner.engine());
            Ok(())
        })
    }

    fn crash(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async move {
            self.inner.crash().await?;
            self.engine = self.wrap(self.inner.engine());
            Ok(())
        })
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        Box::pin(async move {
            let second = self.inner.second().await?;
            Ok(self.wrap(second))
        })
    }

    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        self.inner.bounce_server()
    }
}
