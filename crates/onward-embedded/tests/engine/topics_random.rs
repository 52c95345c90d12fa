//! Random operations on a topic with several subscriptions: books balance, what was acknowledged comes again only after
//! a rewind, bodies are kept just as long as they are needed, and the state is a pure function of the facts.

use crate::{
    recording::{Recording, pieces, wait},
    support::*,
    topics_steps::*,
};
use onward_core::*;
use onward_embedded::{Embedded, Options, Piece, State};
use onward_proves::proves;
use proptest::prelude::*;
use std::{collections::BTreeSet, sync::Arc};

struct Run {
    clock: Arc<HandClock>,
    env: Arc<dyn Env>,
    engine: Embedded<Recording>,
    held: Vec<Delivery>,
    /// What each subscription has acknowledged, by replay epoch.
    acked: BTreeSet<(Inlet, MessageId, Position, u32)>,
    positions: Vec<Position>,
    bulk: u128,
    bounded: bool,
}

impl Run {
    fn new(config: TopicConfig, bounded: bool) -> Self {
        let clock = HandClock::shared();
        let env = env(&clock);
        let options = Options { manual_clock: true, ..Options::default() };
        let (store, state) = (Recording::default(), State::new());
        let engine =
            Embedded::open(env.clone(), store, state, options, "memory", AtomicScope::Store).unwrap();
        let change = TopologyChange::Topic { name: topic(), config, update: false };
        wait(engine.declare(change)).unwrap();
        let mut run = Self {
            clock,
            env,
            engine,
            held: Vec::new(),
            acked: BTreeSet::new(),
            positions: Vec::new(),
            bulk: 0,
            bounded,
        };
        (0..SUBS.len() as u8).for_each(|number| run.subscribe(number, StartFrom::Now));
        run
    }

    fn subscribe(&mut self, number: u8, start: StartFrom) {
        let name = SUBS[number as usize];
        let change = TopologyChange::Subscription {
            topic: topic(),
            name: name.into(),
            config: Box::new(rules(name, self.bounded)),
            filter: filter(name),
            start,
            update: false,
        };
        wait(self.engine.declare(change)).unwrap();
    }

    /// Commits one operation; that it may be refused is part of the run.
    fn commit(&self, op: Op) -> Option<Receipt> {
        let prepared = self.engine.prepare(vec![op]).ok()?;
        wait(self.engine.commit(prepared)).ok().map(|mut receipts| receipts.remove(0))
    }

    fn id(id: u8) -> MessageId {
        format!("m{}", id % 60).as_str().try_into().unwrap()
    }

    fn bulk(&mut self) -> BulkId {
        self.bulk += 1;
        BulkId(self.bulk)
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Publish { id, key, kind, region, ttl } => {
                let mut message =
                    Message::builder(["a", "ab", "b"][kind as usize]).id(Self::id(id)).json(&(id % 60));
                if key > 0 {
                    message = message.order_key(&format!("k{key}"));
                }
                if region {
                    message = message.header("region", "eu");
                }
                if ttl {
                    message = message.ttl(secs(12));
                }
                let message = Box::new(message.build(&*self.env).unwrap());
                if let Some(Receipt::Accepted(accepted)) =
                    self.commit(Op::Publish { topic: topic(), message })
                {
                    self.positions.extend(accepted.position);
                }
            }
            Step::Lease { sub: number, process, count, accepts } => {
                self.lease(number, process, count, accepts)
            }
            Step::Settle { which, how } => self.settle(which, how),
            Step::EndProcess { process, died } => {
                self.commit(Op::EndProcess { process: ProcessId(format!("p{process}").into()), died });
            }
            Step::Seek { sub: number, to, place, again } => self.seek(number, to, place, again),
            Step::Purge { sub: number, dead, all } => {
                let what = if dead { PurgeWhat::Dead } else { PurgeWhat::Waiting };
                let selection = Selection { limit: (!all).then_some(2), ..Selection::default() };
                let (inlet, bulk) = (sub(number), self.bulk());
                self.commit(Op::Purge { inlet, what, selection, bulk, dry_run: false });
            }
            Step::Redrive { sub: number } => {
                let (inlet, bulk) = (sub(number), self.bulk());
                let selection = Selection::default();
                self.commit(Op::Redrive { inlet, selection, spacing: secs(0), bulk, dry_run: false });
            }
            Step::Cancel { sub: number, id } => {
                self.commit(Op::Cancel { inlet: sub(number), id: Self::id(id) });
            }
            Step::Renew { sub: number } => {
                let inlet = sub(number);
                self.acked.retain(|(of, ..)| *of != inlet);
                let gone = TopologyChange::DropInlet { inlet, only_if_empty: false };
                wait(self.engine.declare(gone)).unwrap();
                self.subscribe(number, StartFrom::Beginning);
            }
            Step::Pass { secs: span } => {
                self.clock.advance(secs(u64::from(span)));
                self.engine.tick();
            }
        }
    }

    fn seek(&mut self, number: u8, to: u8, place: u8, again: bool) {
        let to = match to {
            0 => SeekTo::Beginning,
            1 => SeekTo::End,
            2 => SeekTo::Time(self.env.now().minus(secs(u64::from(place % 30)))),
            _ => match self.positions.get(place as usize % self.positions.len().max(1)) {
                Some(position) => SeekTo::Position(*position),
                None => SeekTo::Beginning,
            },
        };
        let mode = if again { SeekMode::Reprocess } else { SeekMode::FillGaps };
        let before = self.held.len();
        let answer = self.commit(Op::Seek { inlet: sub(number), to, mode });
        assert!(matches!(answer, Some(Receipt::Sought(_))), "{answer:?} with {before} held");
    }

    fn settle(&mut self, which: u8, how: u8) {
        let count = self.held.len();
        if count == 0 {
            return;
        }
        let delivery = self.held.swap_remove(which as usize % count);
        let outcome = match how {
            0 | 4 => ack(),
            1 => retry(),
            2 => release(),
            _ => reject(),
        };
        let is_ack = matches!(outcome, Outcome::Ack { .. });
        let settled = self.commit(Op::Settle { token: delivery.token.clone(), outcome });
        if is_ack && matches!(settled, Some(Receipt::Settled(SettledAs { already: false, .. }))) {
            let key =
                (delivery.token.inlet, delivery.message.id, delivery.position.unwrap(), delivery.replay);
            assert!(self.acked.insert(key.clone()), "{key:?} is acknowledged twice");
        }
    }

    fn lease(&mut self, number: u8, process: u8, count: u8, accepts: bool) {
        let inlet = sub(number);
        let request = LeaseRequest {
            count_max: u32::from(count),
            accepts: if accepts { vec!["b".into()] } else { Vec::new() },
            ..LeaseRequest::one(
                inlet.clone(),
                holder(&format!("p{process}")),
                RequestId::generate(&*self.env),
            )
        };
        let filter = filter(SUBS[number as usize]);
        for delivery in wait(self.engine.lease(request)).unwrap() {
            let message = &delivery.message;
            assert!(filter.takes(&message.kind, &message.source) && filter.takes_headers(&message.headers));
            assert!(!accepts || &*message.kind == "b");
            assert!(message.expiry.is_none_or(|expiry| expiry > self.env.now()));
            let key = (inlet.clone(), message.id.clone(), delivery.position.unwrap(), delivery.replay);
            assert!(!self.acked.contains(&key), "{key:?} was acknowledged and comes again");
            self.held.push(delivery);
        }
    }

    fn check(&self) {
        let inlets: Vec<Inlet> = (0..SUBS.len() as u8).map(sub).collect();
        for stats in wait(self.engine.stats(inlets)).unwrap() {
            assert!(stats.books.balance(), "{}: {:?}", stats.inlet, stats.books);
        }
    }

    /// Bodies are there just for what a topic keeps or a subscription has in hand.
    fn bodies(&self) {
        let needed: BTreeSet<u64> = self
            .engine
            .with_state(pieces)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Shelved(image) => Some(image.seq),
                Piece::Message(image) => Some(image.seq),
                _ => None,
            })
            .collect();
        assert_eq!(*self.engine.store().bodies.lock(), needed, "bodies that are kept, and needed");
    }

    fn replay(&self) {
        let mut replayed = State::new();
        for (fact, position, time) in self.engine.store().facts.lock().iter() {
            replayed.apply(fact, *position, *time);
        }
        replayed.advance(self.env.now());
        let live = self.engine.with_state(pieces);
        assert_eq!(pieces(&replayed), live, "the replayed facts make another state");
        let mut restored = State::new();
        live.iter().cloned().for_each(|piece| restored.restore(piece));
        assert_eq!(pieces(&restored), live, "the restored snapshot is another state");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[proves("C1", "C5", "L4", "LOG16", "LOG17")]
    fn random_operations_on_subscriptions_keep_every_promise_and_replay_to_the_same_state(
        config in topic_config(),
        bounded in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut run = Run::new(config, bounded);
        for step in steps {
            run.apply(step);
            run.check();
        }
        run.bodies();
        run.replay();
    }
}
