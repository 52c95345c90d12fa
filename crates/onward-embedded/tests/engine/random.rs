//! Random operations: the books balance, a message has one holder, keys keep their order, and the state is a pure
//! function of the facts.

use crate::{
    recording::{Recording, pieces, wait},
    support::*,
};
use onward_core::*;
use onward_embedded::{Embedded, Options, State};
use onward_proves::proves;
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a run does next; the numbers choose among ids, leases and spans.
#[derive(Debug, Clone)]
enum Step {
    Enqueue { id: u8, key: u8, kind: u8, priority: u8, delay: u8, ttl: u8, unique: bool },
    Lease { process: u8, count: u8, accepts: bool },
    Settle { which: u8, how: u8 },
    Extend { which: u8 },
    Progress { which: u8 },
    EndProcess { process: u8, died: bool },
    Cancel { id: u8 },
    Reschedule { id: u8, delay: u8 },
    Edit { id: u8 },
    Redrive { limit: u8 },
    Purge { dead: bool, limit: u8 },
    Record { key: u8, ttl: bool, delete: bool },
    Pause { paused: bool },
    Pass { secs: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0..4u8, 0..3u8, 0..10u8, 0..8u8, 0..8u8, any::<bool>()).prop_map(
            |(id, key, kind, priority, delay, ttl, unique)| Step::Enqueue { id, key, kind, priority, delay, ttl, unique }
        ),
        8 => (0..4u8, 1..4u8, any::<bool>()).prop_map(|(process, count, accepts)| Step::Lease { process, count, accepts }),
        8 => (any::<u8>(), 0..5u8).prop_map(|(which, how)| Step::Settle { which, how }),
        1 => any::<u8>().prop_map(|which| Step::Extend { which }),
        1 => any::<u8>().prop_map(|which| Step::Progress { which }),
        1 => (0..4u8, any::<bool>()).prop_map(|(process, died)| Step::EndProcess { process, died }),
        1 => any::<u8>().prop_map(|id| Step::Cancel { id }),
        1 => (any::<u8>(), 0..8u8).prop_map(|(id, delay)| Step::Reschedule { id, delay }),
        1 => any::<u8>().prop_map(|id| Step::Edit { id }),
        1 => (1..5u8).prop_map(|limit| Step::Redrive { limit }),
        1 => (any::<bool>(), 1..5u8).prop_map(|(dead, limit)| Step::Purge { dead, limit }),
        1 => (0..4u8, any::<bool>(), any::<bool>()).prop_map(|(key, ttl, delete)| Step::Record { key, ttl, delete }),
        1 => any::<bool>().prop_map(|paused| Step::Pause { paused }),
        3 => (0..20u8).prop_map(|secs| Step::Pass { secs }),
    ]
}

fn config() -> impl Strategy<Value = InletConfig> {
    (0..3u8, any::<bool>(), any::<bool>(), 0..3u8).prop_map(|(order, once, results, bounds)| InletConfig {
        lease_ms: 5_000,
        order: match order {
            0 => OrderPolicy::Unordered,
            1 => OrderPolicy::ByKey { stuck_head: StuckHead::Wait },
            _ => OrderPolicy::ByKey { stuck_head: StuckHead::SetAside },
        },
        guarantee: if once && order == 0 {
            DeliveryGuarantee::AtMostOnce
        } else {
            DeliveryGuarantee::AtLeastOnce
        },
        result_retention_ms: if results { 10_000 } else { 0 },
        retry: RetryPolicy { attempts_max: 3, ..RetryPolicy::default() },
        dedup_window_ms: 15_000,
        dedup_entries_max: 20,
        dead_retention_ms: results.then_some(30_000),
        depth_max: if bounds == 1 { 12 } else { 1_000 },
        overflow: Overflow::ShedLowest,
        concurrency_max: (bounds == 2).then_some(4),
        ageing_ms: 3_000,
        ..InletConfig::default()
    })
}

struct Run {
    clock: Arc<HandClock>,
    env: Arc<dyn Env>,
    engine: Embedded<Recording>,
    held: Vec<Delivery>,
    bulk: u128,
    keyed: bool,
    positions: BTreeMap<Position, u32>,
    rescheduled: BTreeSet<MessageId>,
}

impl Run {
    fn new(config: InletConfig) -> Self {
        let clock = HandClock::shared();
        let env = env(&clock);
        let options = Options { manual_clock: true, ..Options::default() };
        let (store, state) = (Recording::default(), State::new());
        let engine =
            Embedded::open(env.clone(), store, state, options, "memory", AtomicScope::Store).unwrap();
        let keyed = matches!(config.order, OrderPolicy::ByKey { .. });
        let change = TopologyChange::Queue { name: name(), config: Box::new(config), update: true };
        wait(engine.declare(change)).unwrap();
        Self {
            clock,
            env,
            engine,
            held: Vec::new(),
            bulk: 0,
            keyed,
            positions: BTreeMap::new(),
            rescheduled: BTreeSet::new(),
        }
    }

    /// Commits one operation; that it may be refused is part of the run.
    fn commit(&self, op: Op) -> Option<Receipt> {
        let prepared = self.engine.prepare(vec![op]).ok()?;
        wait(self.engine.commit(prepared)).ok().map(|mut receipts| receipts.remove(0))
    }

    fn id(id: u8) -> MessageId {
        format!("m{}", id % 40).as_str().try_into().unwrap()
    }

    fn take(&mut self, which: u8) -> Option<Delivery> {
        let count = self.held.len();
        (count > 0).then(|| self.held.swap_remove(which as usize % count))
    }

    fn next_bulk(&mut self) -> BulkId {
        self.bulk += 1;
        BulkId(self.bulk)
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Enqueue { id, key, kind, priority, delay, ttl, unique } => {
                let mut message = Message::builder(["a", "b", "c"][kind as usize])
                    .id(Self::id(id))
                    .json(&(id % 40))
                    .priority(priority)
                    .delay(secs(u64::from(delay / 2)));
                if key > 0 {
                    message = message.order_key(&format!("k{key}")).fairness_key(&format!("f{key}"));
                }
                if ttl > 5 {
                    message = message.ttl(secs(u64::from(ttl) * 2));
                }
                if unique {
                    message = message.unique_key(&format!("u{}", id % 7));
                }
                let message = Box::new(message.build(&*self.env).unwrap());
                self.commit(Op::Enqueue { queue: name(), message });
            }
            Step::Lease { process, count, accepts } => self.lease(process, count, accepts),
            Step::Settle { which, how } => {
                let Some(delivery) = self.take(which) else { return };
                let outcome = match how {
                    0 => Outcome::Ack { result: Some(Payload::json(&1).unwrap()) },
                    1 => retry(),
                    2 => release(),
                    3 => reject(),
                    _ => Outcome::Release { delay: secs(2) },
                };
                self.commit(Op::Settle { token: delivery.token, outcome });
            }
            Step::Extend { which } => {
                let tokens: Vec<_> =
                    self.held.iter().skip(which as usize % 5).map(|d| d.token.clone()).collect();
                wait(self.engine.extend(tokens, secs(7))).unwrap();
            }
            Step::Progress { which } => {
                let Some(delivery) = self.held.get(which as usize % self.held.len().max(1)) else { return };
                let detail = Payload::json(&which).unwrap();
                self.commit(Op::Progress { token: delivery.token.clone(), detail });
            }
            Step::EndProcess { process, died } => {
                self.commit(Op::EndProcess { process: ProcessId(format!("p{process}").into()), died });
            }
            Step::Cancel { id } => drop(self.commit(Op::Cancel { inlet: inlet(), id: Self::id(id) })),
            Step::Reschedule { id, delay } => {
                let due = self.env.now().plus(secs(u64::from(delay)));
                self.rescheduled.insert(Self::id(id));
                self.commit(Op::Reschedule { inlet: inlet(), id: Self::id(id), due });
            }
            Step::Edit { id } => {
                let edit = DeadEdit { kind: Some("edited".into()), ..DeadEdit::default() };
                self.commit(Op::EditDead { inlet: inlet(), id: Self::id(id), edit });
            }
            Step::Redrive { limit } => {
                let selection = Selection { limit: Some(u64::from(limit)), ..Selection::default() };
                let bulk = self.next_bulk();
                let op =
                    Op::Redrive { inlet: inlet(), selection, spacing: millis(500), bulk, dry_run: false };
                self.commit(op);
            }
            Step::Purge { dead, limit } => {
                let selection = Selection { limit: Some(u64::from(limit)), ..Selection::default() };
                let what = if dead { PurgeWhat::Dead } else { PurgeWhat::Waiting };
                let bulk = self.next_bulk();
                self.commit(Op::Purge { inlet: inlet(), what, selection, bulk, dry_run: false });
            }
            Step::Record { key, ttl, delete } => {
                let key: RecordKey = format!("r{key}").as_str().try_into().unwrap();
                let ttl = ttl.then_some(secs(5));
                self.commit(match delete {
                    true => Op::DeleteRecord { key, expect: RecordExpect::Any },
                    false => Op::PutRecord { key, value: "v".into(), expect: RecordExpect::Any, ttl },
                });
            }
            Step::Pause { paused: true } => drop(self.commit(Op::Pause { inlet: inlet() })),
            Step::Pause { paused: false } => drop(self.commit(Op::Resume { inlet: inlet() })),
            Step::Pass { secs: span } => {
                self.clock.advance(secs(u64::from(span)));
                self.engine.tick();
            }
        }
    }

    fn lease(&mut self, process: u8, count: u8, accepts: bool) {
        let accepts = if accepts { vec!["a".into(), "edited".into()] } else { Vec::new() };
        let request = LeaseRequest {
            count_max: u32::from(count),
            accepts: accepts.clone(),
            ..LeaseRequest::one(inlet(), holder(&format!("p{process}")), RequestId::generate(&*self.env))
        };
        let deliveries = wait(self.engine.lease(request)).unwrap();
        for delivery in &deliveries {
            let last = self.positions.insert(delivery.position.unwrap(), delivery.attempt);
            assert!(
                delivery.attempt >= 1 && delivery.attempt <= 3,
                "attempt {} after {last:?}",
                delivery.attempt
            );
            assert!(accepts.is_empty() || accepts.contains(&delivery.message.kind));
            let moved = self.rescheduled.contains(&delivery.message.id);
            assert!(moved || delivery.message.due.is_none_or(|due| due <= self.env.now()));
            assert!(delivery.message.expiry.is_none_or(|expiry| expiry > self.env.now()));
            assert!(!delivery.suspect || deliveries.len() == 1, "a suspect is alone");
        }
        self.held.extend(deliveries);
    }

    /// What must hold after every step.
    fn check(&mut self) {
        let stats = wait(self.engine.stats(vec![inlet()])).unwrap().remove(0);
        assert!(stats.books.balance(), "{:?}", stats.books);
        let live: Vec<&str> = stats.leases.iter().map(|lease| lease.id.as_str()).collect();
        let distinct: BTreeSet<&str> = live.iter().copied().collect();
        assert_eq!(live.len(), distinct.len(), "one holder per message");
        if self.keyed {
            let mut keys = BTreeSet::new();
            for state in [MessageState::Leased] {
                let page = wait(self.engine.find(MessageQuery::state(inlet(), state, 1000))).unwrap();
                for view in page.items {
                    if let Some(key) = view.message.order_key {
                        assert!(keys.insert(key.clone()), "two of the key {key} are leased");
                    }
                }
            }
        }
    }

    /// The facts alone make the same state, and so does a snapshot of it.
    fn replay(&self) {
        let time = self.engine.with_state(|state| state.time());
        let mut replayed = State::new();
        for (fact, position, time) in self.engine.store().facts.lock().iter() {
            replayed.apply(fact, *position, *time);
        }
        let live = self.engine.with_state(pieces);
        replayed.advance(self.now_of_engine());
        assert_eq!(pieces(&replayed), live, "the replayed facts make another state");
        let mut restored = State::new();
        live.iter().cloned().for_each(|piece| restored.restore(piece));
        assert_eq!(pieces(&restored), live, "the restored snapshot is another state");
        assert_eq!(restored.time(), time);
    }

    fn now_of_engine(&self) -> Timestamp {
        self.env.now()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[proves("L4", "LOG17", "J2", "B1")]
    fn random_operations_keep_every_promise_and_replay_to_the_same_state(
        config in config(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut run = Run::new(config);
        for step in steps {
            run.apply(step);
            run.check();
        }
        run.replay();
    }
}
