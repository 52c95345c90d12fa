//! A small engine in memory, for tests only: one lock, everything copied before a commit so that it is all or nothing.

use onward::core::*;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Debug, Clone)]
struct Kept {
    message: Message,
    state: MessageState,
    ready_at: Duration,
    lease: Option<(LeaseToken, Duration, Holder)>,
    attempts: u32,
    crashes: u32,
    suspect: bool,
    cancel_requested: bool,
    causes: Vec<Cause>,
    progress: Option<Payload>,
    settled: Option<(LeaseToken, Outcome)>,
    result: Option<Payload>,
}

#[derive(Debug, Clone, Default)]
struct Box_ {
    config: InletConfig,
    kept: Vec<Kept>,
    paused: bool,
}

#[derive(Debug, Clone, Default)]
struct State {
    inlets: BTreeMap<Inlet, Box_>,
    records: BTreeMap<RecordKey, (Record, Option<Duration>)>,
    revision: u64,
    handles: u64,
    leased: Vec<(RequestId, Vec<Delivery>)>,
}

#[derive(Debug)]
pub struct Stub {
    env: Arc<dyn Env>,
    capabilities: Capabilities,
    state: Mutex<State>,
    hints: tokio::sync::broadcast::Sender<()>,
}

impl Stub {
    pub fn new(env: Arc<dyn Env>, atomic: AtomicScope) -> Self {
        let limits = EngineLimits {
            payload_bytes_max: 1 << 20,
            delay_max: None,
            lease_total_max: None,
            dedup_window_max: None,
            ops_max: OPS_MAX,
        };
        let capabilities = Capabilities::all("stub", Durability::Memory, atomic, limits);
        Self { env, capabilities, state: Mutex::default(), hints: tokio::sync::broadcast::channel(16).0 }
    }

    fn with<T>(&self, run: impl FnOnce(&mut State, Duration) -> Result<T>) -> Fut<'_, T>
    where
        T: Send + 'static,
    {
        let mut state = self.state.lock().unwrap();
        let now = self.env.monotonic();
        state.expire(now, &*self.env);
        let mut copy = state.clone();
        let answer = run(&mut copy, now);
        if answer.is_ok() {
            *state = copy;
        }
        drop(self.hints.send(()));
        Box::pin(async move { answer })
    }
}

impl State {
    fn expire(&mut self, now: Duration, env: &dyn Env) {
        self.records.retain(|_, (_, until)| until.is_none_or(|until| until > now));
        for inlet in self.inlets.values_mut() {
            let retry = inlet.config.retry.clone();
            for kept in &mut inlet.kept {
                if let Some((_, _, holder)) = kept.lease.take_if(|(_, until, _)| *until <= now) {
                    let failure = Failure::new(CauseKind::LeaseExpired, "the lease ended");
                    kept.fail(failure, &holder, RetryDelay::Policy, &retry, now, env);
                }
                if kept.state == MessageState::Delayed && kept.ready_at <= now {
                    kept.state = MessageState::Waiting;
                }
            }
        }
    }

    fn find(&mut self, token: &LeaseToken) -> Result<(&mut Kept, RetryPolicy)> {
        let lost = || Error::lease_lost("stale").at(format!("{token:?}"));
        let inlet = self.inlets.get_mut(&token.inlet).ok_or_else(lost)?;
        let retry = inlet.config.retry.clone();
        let kept = inlet.kept.iter_mut().find(|kept| kept.message.id == token.id).ok_or_else(lost)?;
        Ok((kept, retry))
    }

    fn held(&self, process: &ProcessId) -> impl Iterator<Item = &Kept> {
        self.inlets.values().flat_map(|inlet| &inlet.kept).filter(move |kept| {
            kept.lease.as_ref().is_some_and(|(_, _, holder)| holder.process == *process)
        })
    }

    fn apply(&mut self, op: Op, now: Duration, env: &dyn Env) -> Result<Receipt> {
        match op {
            Op::Enqueue { queue, message } => {
                let inlet = self.inlets.entry(Inlet::Queue(queue)).or_default();
                let duplicate = inlet.kept.iter().any(|kept| kept.message.id == message.id);
                let due = message.due.map(|due| due.since(env.now())).unwrap_or_default();
                let id = message.id.clone();
                if !duplicate {
                    inlet.kept.push(Kept::new(*message, now + due));
                }
                Ok(Receipt::Accepted(Accepted {
                    id,
                    duplicate,
                    declared: false,
                    position: None,
                    durability: Durability::Memory,
                }))
            }
            Op::Settle { token, outcome } => self.settle(token, outcome, now, env),
            Op::Cancel { inlet, id } => {
                let inlet = self.inlets.get_mut(&inlet).ok_or_else(|| Error::not_found("no such inlet"))?;
                let kept = inlet.kept.iter_mut().find(|kept| kept.message.id == id);
                let kept = kept.ok_or_else(|| Error::not_found("no such message"))?;
                Ok(Receipt::Cancelled(match kept.state {
                    MessageState::Leased => {
                        kept.cancel_requested = true;
                        CancelOutcome::Requested
                    }
                    MessageState::Waiting | MessageState::Delayed => {
                        kept.state = MessageState::Cancelled;
                        CancelOutcome::Cancelled
                    }
                    _ => CancelOutcome::AlreadyFinished,
                }))
            }
            Op::Progress { token, detail } => {
                self.live(&token)?;
                self.find(&token)?.0.progress = Some(detail);
                Ok(Receipt::Done)
            }
            Op::Guard(Guarded::Lease { token }) => self.live(&token).map(|()| Receipt::Done),
            Op::PutRecord { key, value, expect, ttl } => {
                self.expect(&key, expect)?;
                self.revision += 1;
                let revision = self.revision;
                let record =
                    Record { key: key.clone(), value, revision, expires: None, written: env.now(), position: None };
                self.records.insert(key, (record, ttl.map(|ttl| now + ttl)));
                Ok(Receipt::Recorded { revision })
            }
            Op::DeleteRecord { key, expect } => {
                self.expect(&key, expect)?;
                self.records.remove(&key);
                Ok(Receipt::Done)
            }
            Op::Guard(Guarded::Record { key, expect }) => self.expect(&key, expect).map(|()| Receipt::Done),
            Op::Pause { inlet } => {
                self.inlets.entry(inlet).or_default().paused = true;
                Ok(Receipt::Done)
            }
            Op::Resume { inlet } => {
                self.inlets.entry(inlet).or_default().paused = false;
                Ok(Receipt::Done)
            }
            Op::EndProcess { process, died } => {
                let held: Vec<LeaseToken> =
                    self.held(&process).filter_map(|kept| kept.lease.as_ref()).map(|l| l.0.clone()).collect();
                for token in &held {
                    let crashes_max = self.inlets[&token.inlet].config.crashes_max;
                    let (kept, retry) = self.find(token)?;
                    let (_, _, holder) = kept.lease.take().expect("it was held");
                    if died && held.len() == 1 && kept.suspect {
                        kept.crashes += 1;
                        let failure = Failure::new(CauseKind::Crashed, "the process died");
                        let policy = RetryPolicy {
                            attempts_max: if kept.crashes >= crashes_max { 1 } else { u32::MAX },
                            ..retry
                        };
                        kept.fail(failure, &holder, RetryDelay::Policy, &policy, now, env);
                    } else {
                        kept.attempts -= 1;
                        kept.state = MessageState::Waiting;
                        kept.suspect |= died;
                    }
                }
                Ok(Receipt::ProcessEnded { leases: held.len() as u64 })
            }
            other => Err(Error::unsupported(format!("the stub does not do {}", other.name()))),
        }
    }

    fn live(&mut self, token: &LeaseToken) -> Result<()> {
        let (kept, _) = self.find(token)?;
        match &kept.lease {
            Some((held, _, _)) if held == token => Ok(()),
            _ => Err(Error::lease_lost("stale")),
        }
    }

    fn expect(&self, key: &RecordKey, expect: RecordExpect) -> Result<()> {
        let stands = self.records.get(key).map(|(record, _)| record.revision);
        let holds = match expect {
            RecordExpect::Any => true,
            RecordExpect::Absent => stands.is_none(),
            RecordExpect::Present => stands.is_some(),
            RecordExpect::Revision(revision) => stands == Some(revision),
        };
        holds.then_some(()).ok_or_else(|| Error::conflict(format!("{stands:?} stands there")).at(key))
    }

    fn settle(&mut self, token: LeaseToken, outcome: Outcome, now: Duration, env: &dyn Env) -> Result<Receipt> {
        let (kept, retry) = self.find(&token)?;
        if let Some((by, how)) = &kept.settled
            && *by == token
        {
            return match *how == outcome {
                true => Ok(Receipt::Settled(SettledAs { state: kept.state, due: None, already: true })),
                false => Err(Error::conflict("settled with another outcome")),
            };
        }
        match kept.lease.take() {
            Some((held, _, holder)) if held == token => {
                kept.settled = Some((token, outcome.clone()));
                match outcome {
                    Outcome::Ack { result } => {
                        kept.state = MessageState::Done;
                        kept.result = result;
                    }
                    Outcome::Release { delay } => {
                        kept.attempts -= 1;
                        kept.again(now + delay);
                    }
                    Outcome::Retry { delay, failure } => kept.fail(failure, &holder, delay, &retry, now, env),
                    Outcome::Reject { failure } => {
                        let last = RetryPolicy { attempts_max: 1, ..retry };
                        kept.fail(failure, &holder, RetryDelay::Policy, &last, now, env);
                    }
                }
                if kept.cancel_requested && kept.state != MessageState::Done {
                    kept.state = MessageState::Cancelled;
                }
                Ok(Receipt::Settled(SettledAs { state: kept.state, due: None, already: false }))
            }
            other => {
                kept.lease = other;
                Err(Error::lease_lost("stale"))
            }
        }
    }
}

impl Kept {
    fn new(message: Message, ready_at: Duration) -> Self {
        Self {
            message,
            state: MessageState::Delayed,
            ready_at,
            lease: None,
            attempts: 0,
            crashes: 0,
            suspect: false,
            cancel_requested: false,
            causes: Vec::new(),
            progress: None,
            settled: None,
            result: None,
        }
    }

    fn again(&mut self, at: Duration) {
        (self.state, self.ready_at) = (MessageState::Delayed, at);
    }

    fn fail(
        &mut self,
        failure: Failure,
        holder: &Holder,
        delay: RetryDelay,
        retry: &RetryPolicy,
        now: Duration,
        env: &dyn Env,
    ) {
        let cause = Cause { failure, attempt: self.attempts, at: env.now(), worker: holder.worker.clone() };
        self.causes.push(cause);
        let wait = match delay {
            RetryDelay::Policy => retry.delay(self.attempts, env.random()),
            RetryDelay::After(span) => retry.at_least_min(span),
        };
        self.again(now + wait);
        if self.attempts >= retry.attempts_max {
            self.state = MessageState::Dead;
        }
    }

    fn view(&self, inlet: &Inlet, env: &dyn Env) -> MessageView {
        MessageView {
            inlet: inlet.clone(),
            message: self.message.clone(),
            original: None,
            state: self.state,
            attempts: self.attempts,
            crashes: self.crashes,
            blocked: false,
            suspect: self.suspect,
            cancel_requested: self.cancel_requested,
            accepted_at: env.now(),
            due: None,
            ended_at: None,
            lease: None,
            causes: self.causes.clone(),
            progress: self.progress.clone(),
            result: self.result.clone(),
            position: None,
        }
    }
}

impl Engine for Stub {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        Prepared::check(ops, &self.capabilities, self.env.now())
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        self.with(|state, _| match change {
            TopologyChange::Queue { name, config, .. } => {
                state.inlets.entry(Inlet::Queue(name)).or_default().config = *config;
                Ok(TopologyDiff { created: true, ..TopologyDiff::default() })
            }
            _ => Err(Error::unsupported("the stub has queues only")),
        })
    }

    fn topology(&self) -> Fut<'_, Topology> {
        self.with(|state, _| {
            let inlets = state.inlets.iter().map(|(inlet, b)| (inlet.clone(), b.config.clone())).collect();
            Ok(Topology { inlets, ..Topology::default() })
        })
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        self.with(|state, now| ops.into_ops().into_iter().map(|op| state.apply(op, now, &*self.env)).collect())
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for commit in commits {
                answers.push(self.commit(commit).await);
            }
            Ok(answers)
        })
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        self.with(|state, now| {
            if let Some((_, given)) = state.leased.iter().find(|(id, _)| *id == request.request_id) {
                return Ok(given.clone());
            }
            let process = request.holder.process.clone();
            if state.held(&process).any(|kept| kept.suspect) {
                return Ok(Vec::new());
            }
            let busy = state.held(&process).next().is_some();
            let mut given = Vec::new();
            for weighted in &request.inlets {
                let inlet = state.inlets.entry(weighted.inlet.clone()).or_default();
                if inlet.paused {
                    continue;
                }
                let lease = request.lease.unwrap_or(Duration::from_millis(inlet.config.lease_ms));
                for kept in inlet.kept.iter_mut().filter(|kept| kept.state == MessageState::Waiting) {
                    let full = given.len() >= request.count_max as usize;
                    if full || (kept.suspect && (busy || !given.is_empty())) {
                        continue;
                    }
                    let accepted = request.accepts.is_empty() || request.accepts.contains(&kept.message.kind);
                    if !accepted {
                        continue;
                    }
                    state.handles += 1;
                    let handle = state.handles.to_be_bytes().to_vec().into();
                    let token = LeaseToken { inlet: weighted.inlet.clone(), id: kept.message.id.clone(), handle };
                    kept.attempts += 1;
                    kept.state = MessageState::Leased;
                    kept.lease = Some((token.clone(), now + lease, request.holder.clone()));
                    given.push(Delivery {
                        token,
                        message: kept.message.clone(),
                        attempt: kept.attempts,
                        lease,
                        accepted_at: self.env.now(),
                        position: None,
                        progress: kept.progress.clone(),
                        causes: kept.causes.clone(),
                        suspect: kept.suspect,
                    });
                    if kept.suspect {
                        state.leased.push((request.request_id, given.clone()));
                        return Ok(given);
                    }
                }
            }
            if !given.is_empty() {
                state.leased.push((request.request_id, given.clone()));
            }
            Ok(given)
        })
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        self.with(|state, now| {
            let extend = |token: &LeaseToken| {
                state.live(token)?;
                let (kept, _) = state.find(token)?;
                let lease = kept.lease.as_mut().expect("it lives");
                lease.1 = now + by;
                Ok(Extended { lease: by, cancel_requested: kept.cancel_requested })
            };
            Ok(leases.iter().map(extend).collect())
        })
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        self.with(|state, _| {
            let kept = state.inlets.get(&query.inlet).map(|inlet| &inlet.kept[..]).unwrap_or_default();
            let matches = |kept: &&Kept| match &query.by {
                FindBy::Id(id) => kept.message.id == *id,
                FindBy::State(state) => kept.state == *state,
                FindBy::Correlation(id) => kept.message.correlation_id.as_ref() == Some(id),
                FindBy::OrderKey(_) => false,
            };
            let views = kept.iter().filter(matches).map(|kept| kept.view(&query.inlet, &*self.env));
            Ok(Page::whole(views.take(query.limit).collect()))
        })
    }

    fn read_events(&self, _: EventRead) -> Fut<'_, EventSlice> {
        Box::pin(async { Err(Error::unsupported("no events")) })
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        self.with(|state, _| match query {
            RecordQuery::Keys(keys) => {
                let found = keys.iter().filter_map(|key| state.records.get(key));
                Ok(Page::whole(found.map(|(record, _)| record.clone()).collect()))
            }
            RecordQuery::Prefix { prefix, .. } => {
                let found = state.records.iter().filter(|(key, _)| key.as_str().starts_with(&prefix));
                Ok(Page::whole(found.map(|(_, (record, _))| record.clone()).collect()))
            }
        })
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        self.with(|state, _| {
            let stats = |inlet: Inlet| {
                let found = state.inlets.get(&inlet).ok_or_else(|| Error::not_found("no such inlet"))?;
                let count = |state| found.kept.iter().filter(|kept| kept.state == state).count() as u64;
                let books = Books {
                    accepted: found.kept.len() as u64,
                    done: count(MessageState::Done),
                    dead: count(MessageState::Dead),
                    waiting: count(MessageState::Waiting),
                    leased: count(MessageState::Leased),
                    delayed: count(MessageState::Delayed),
                    cancelled: count(MessageState::Cancelled),
                    ..Books::default()
                };
                Ok(Stats {
                    inlet,
                    books,
                    approximate: false,
                    blocked: 0,
                    bytes: 0,
                    oldest_waiting: None,
                    next_due: None,
                    deliveries: 0,
                    failures: 0,
                    lost_at_most_once: 0,
                    duplicates: 0,
                    dedup_entries: 0,
                    dedup_window_ms: 0,
                    paused: found.paused,
                    stopped_dead_full: false,
                    leases: Vec::new(),
                })
            };
            inlets.into_iter().map(stats).collect()
        })
    }

    fn watch(&self, _: Interest) -> BoxStream<Hint> {
        Box::pin(futures::stream::pending())
    }

    fn health(&self) -> Health {
        Health { readable: true, writable: true, durability: Durability::Memory, problems: Vec::new() }
    }

    fn close(&self, _: Duration) -> Fut<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
