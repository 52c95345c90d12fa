//! A clock that tests move by hand, and short ways to call an engine.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use onward_core::*;
use onward_embedded::{MemoryEngine, Options};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

/// 2024-03-15T10:00:00Z.
const START_US: i64 = 1_710_496_800_000_000;

/// A clock that stands still until it is moved, with counted randomness.
#[derive(Debug, Default)]
pub struct HandClock {
    monotonic_us: AtomicU64,
    wall_jump_us: AtomicI64,
    random: AtomicU64,
    sleepers: Mutex<BTreeMap<(u64, u64), Waker>>,
    count: AtomicU64,
}

impl HandClock {
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Moves the clock on and wakes those whose sleep is over.
    pub fn advance(&self, span: Duration) {
        let now =
            self.monotonic_us.fetch_add(span.as_micros() as u64, Ordering::SeqCst) + span.as_micros() as u64;
        let woken = {
            let mut sleepers = self.sleepers.lock();
            let later = sleepers.split_off(&(now + 1, 0));
            std::mem::replace(&mut *sleepers, later)
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// Lets the wall clock jump; the monotonic one goes on.
    pub fn jump_wall(&self, micros: i64) {
        self.wall_jump_us.fetch_add(micros, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct Clock(Arc<HandClock>);

/// The clock as an environment.
pub fn env(clock: &Arc<HandClock>) -> Arc<dyn Env> {
    Arc::new(Clock(clock.clone()))
}

impl Env for Clock {
    fn now(&self) -> Timestamp {
        let jump = self.0.wall_jump_us.load(Ordering::SeqCst);
        Timestamp::from_micros(START_US + jump + self.0.monotonic_us.load(Ordering::SeqCst) as i64)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.monotonic_us.load(Ordering::SeqCst))
    }

    fn random(&self) -> u64 {
        // A fixed sequence that is spread over all bits.
        let n = self.0.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst);
        (n ^ (n >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let until = self.0.monotonic_us.load(Ordering::SeqCst) + span.as_micros() as u64;
        let number = self.0.count.fetch_add(1, Ordering::SeqCst);
        Box::pin(Sleep { clock: self.0.clone(), key: (until, number) })
    }
}

struct Sleep {
    clock: Arc<HandClock>,
    key: (u64, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut sleepers = self.clock.sleepers.lock();
        if self.clock.monotonic_us.load(Ordering::SeqCst) >= self.key.0 {
            return Poll::Ready(());
        }
        sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.sleepers.lock().remove(&self.key);
    }
}

/// An engine in memory under a clock that the test moves, whose own steps are taken by [`Bench::step`].
pub struct Bench {
    pub clock: Arc<HandClock>,
    pub env: Arc<dyn Env>,
    pub engine: MemoryEngine,
}

pub const QUEUE: &str = "work";

impl Bench {
    pub fn new() -> Self {
        Self::with(Options { manual_clock: true, ..Options::default() })
    }

    pub fn with(options: Options) -> Self {
        let clock = HandClock::shared();
        let env = env(&clock);
        let engine = MemoryEngine::new(env.clone(), options);
        Self { clock, env, engine }
    }

    /// An engine with one queue of these rules.
    pub async fn queue(config: InletConfig) -> Self {
        let bench = Self::new();
        bench.declare(config).await;
        bench
    }

    pub async fn declare(&self, config: InletConfig) -> TopologyDiff {
        let change = TopologyChange::Queue { name: name(), config: Box::new(config), update: true };
        self.engine.declare(change).await.unwrap()
    }

    /// Moves the clock and lets the engine do what is due.
    pub fn step(&self, span: Duration) {
        self.clock.advance(span);
        self.engine.tick();
    }

    pub fn message(&self, id: &str) -> MessageBuilder {
        Message::builder("test.made").id(id.try_into().unwrap()).json(&id)
    }

    pub async fn commit(&self, ops: Vec<Op>) -> Result<Vec<Receipt>> {
        self.engine.commit(self.engine.prepare(ops)?).await
    }

    pub async fn one(&self, op: Op) -> Result<Receipt> {
        Ok(self.commit(vec![op]).await?.remove(0))
    }

    pub async fn enqueue(&self, message: MessageBuilder) -> Result<Accepted> {
        let message = Box::new(message.build(&*self.env)?);
        match self.one(Op::Enqueue { queue: name(), message }).await? {
            Receipt::Accepted(accepted) => Ok(accepted),
            other => panic!("{other:?}"),
        }
    }

    pub async fn put(&self, id: &str) -> Accepted {
        self.enqueue(self.message(id)).await.unwrap()
    }

    pub fn request(&self, process: &str) -> LeaseRequest {
        LeaseRequest::one(inlet(), holder(process), RequestId::generate(&*self.env))
    }

    pub async fn lease_many(&self, process: &str, count: u32) -> Vec<Delivery> {
        let request = LeaseRequest { count_max: count, ..self.request(process) };
        self.engine.lease(request).await.unwrap()
    }

    pub async fn lease(&self) -> Option<Delivery> {
        self.lease_many("p1", 1).await.pop()
    }

    /// The ids handed out to one request.
    pub async fn lease_ids(&self, count: u32) -> Vec<String> {
        self.lease_many("p1", count).await.iter().map(|d| d.message.id.to_string()).collect()
    }

    pub async fn settle(&self, token: &LeaseToken, outcome: Outcome) -> Result<SettledAs> {
        match self.one(Op::Settle { token: token.clone(), outcome }).await? {
            Receipt::Settled(settled) => Ok(settled),
            other => panic!("{other:?}"),
        }
    }

    pub async fn ack(&self, delivery: &Delivery) -> SettledAs {
        self.settle(&delivery.token, ack()).await.unwrap()
    }

    pub async fn stats(&self) -> Stats {
        let stats = self.engine.stats(vec![inlet()]).await.unwrap().remove(0);
        assert!(stats.books.balance(), "{:?}", stats.books);
        stats
    }

    pub async fn view(&self, id: &str) -> Option<MessageView> {
        let query = MessageQuery::id(inlet(), id.try_into().unwrap());
        self.engine.find(query).await.unwrap().items.pop()
    }

    pub async fn ids(&self, state: MessageState) -> Vec<String> {
        let page = self.engine.find(MessageQuery::state(inlet(), state, 1000)).await.unwrap();
        page.items.iter().map(|view| view.message.id.to_string()).collect()
    }
}

pub fn name() -> Name {
    QUEUE.parse().unwrap()
}

pub fn inlet() -> Inlet {
    Inlet::Queue(name())
}

pub fn holder(process: &str) -> Holder {
    Holder { worker: "worker".into(), process: ProcessId(process.into()) }
}

pub fn ack() -> Outcome {
    Outcome::Ack { result: None }
}

pub fn retry() -> Outcome {
    Outcome::Retry { delay: RetryDelay::Policy, failure: Failure::new(CauseKind::Transient, "no luck") }
}

pub fn retry_after(wait: Duration) -> Outcome {
    Outcome::Retry { delay: RetryDelay::After(wait), failure: Failure::new(CauseKind::Transient, "no luck") }
}

pub fn reject() -> Outcome {
    Outcome::Reject { failure: Failure::new(CauseKind::Permanent, "never") }
}

pub fn release() -> Outcome {
    Outcome::Release { delay: Duration::ZERO }
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}
