//! The reference model beside the engine: the same random operations, every answer compared.

use crate::bench::{ack, enqueue, millis, reject, release, retry_after, rules};
use crate::check::{checks, ensure_eq};
use crate::clock::mix;
use crate::model::{Item, Model};
use crate::{Bench, Done, Need::Has, Stop};
use onward_core::{
    BulkId, Capability, Capability::Queues, Inlet, InletConfig, LeaseToken, MessageId, MessageState, Name,
    Op, OrderPolicy, Outcome, ProcessId, PurgeWhat, Receipt, Result, Selection, StuckHead, TopologyChange,
};
use std::time::Duration;

mod answers;
mod leasing;

use answers::{answer, brief, now};

const STEPS: u64 = 60;
/// How often the books are looked at until they must agree.
const LOOKS: u32 = 200;

checks! { group "model";
    model_agreement,
        "Over random sequences of operations the engine answers what the reference model answers.",
        [
            Has(Queues), Has(Capability::Fifo), Has(Capability::Delay), Has(Capability::Priority),
            Has(Capability::OrderByKey), Has(Capability::Dedup), Has(Capability::Expiry), Has(Capability::Release),
            Has(Capability::DeadLetters), Has(Capability::Cancel), Has(Capability::Pause), Has(Capability::Purge),
            Has(Capability::Bounds)
        ], [];
}

async fn model_agreement(b: &mut Bench) -> Done {
    b.clock().stepped()?;
    for seed in 0..b.seeds {
        let mut pair = Pair::new(b, seed).await?;
        for step in 0..STEPS {
            if let Err(stop) = pair.step(b).await {
                let told = pair.told.join("\n    ");
                return Err(match stop {
                    Stop::Failed(why) => {
                        Stop::Failed(format!("seed {seed}, step {step}: {why}; so far:\n    {told}"))
                    }
                    other => other,
                });
            }
        }
        let gone = TopologyChange::DropInlet { inlet: pair.inlet.clone(), only_if_empty: false };
        b.engine().declare(gone).await?;
    }
    b.note(format!("{} sequences of {STEPS} operations", b.seeds));
    Ok(())
}

/// The engine and the model with one queue of the same rules.
struct Pair {
    seed: u64,
    queue: Name,
    inlet: Inlet,
    model: Model,
    set_aside: bool,
    ordered: bool,
    /// Messages have fairness keys: then turns decide, not arrival.
    fair: bool,
    /// Leases so far, as the engine and as the model name them.
    tokens: Vec<(LeaseToken, LeaseToken)>,
    told: Vec<String>,
}

impl Pair {
    async fn new(b: &Bench, seed: u64) -> Result<Self> {
        let mut random = seed.wrapping_mul(7_919) + 1;
        let order = match mix(&mut random) % 3 {
            0 => OrderPolicy::Unordered,
            1 => OrderPolicy::ByKey { stuck_head: StuckHead::Wait },
            _ => OrderPolicy::ByKey { stuck_head: StuckHead::SetAside },
        };
        let mut config = InletConfig { order, ageing_ms: 3_600_000, ..rules() };
        config.retry.attempts_max = 1 + (mix(&mut random) % 3) as u32;
        config.depth_max = if mix(&mut random).is_multiple_of(4) { 4 } else { 1_000 };
        if b.engine().capabilities().has(Capability::ConcurrencyLimit) && mix(&mut random).is_multiple_of(4) {
            config.concurrency_max = Some(2);
        }
        let keys = [Capability::ConcurrencyLimit, Capability::Fairness];
        let fair =
            keys.iter().all(|c| b.engine().capabilities().has(*c)) && mix(&mut random).is_multiple_of(4);
        if fair {
            config.concurrency_per_key_max = Some(1 + (mix(&mut random) % 2) as u32);
        }
        let queue = b.queue(config.clone()).await?;
        let mut model = Model::default();
        let change = TopologyChange::Queue { name: queue.clone(), config: Box::new(config), update: false };
        model.declare(change, now(b))?;
        Ok(Self {
            seed: random,
            inlet: Inlet::Queue(queue.clone()),
            queue,
            model,
            set_aside: order == OrderPolicy::ByKey { stuck_head: StuckHead::SetAside },
            ordered: order != OrderPolicy::Unordered,
            fair,
            tokens: Vec::new(),
            told: Vec::new(),
        })
    }

    fn random(&mut self, below: u64) -> u64 {
        mix(&mut self.seed) % below
    }

    /// One of the processes at this queue alone.
    fn process(&mut self) -> String {
        let number = self.random(3);
        format!("{}-p{number}", self.queue)
    }

    fn tell(&mut self, text: String) {
        self.told.push(text);
    }

    async fn step(&mut self, b: &Bench) -> Done {
        match self.random(16) {
            0..=4 => self.enqueue(b).await?,
            5..=8 => self.lease(b).await?,
            9..=11 => self.settle(b).await?,
            12 => self.pass(b).await,
            13 => self.extend(b).await?,
            14 => self.change_one(b).await?,
            _ => self.change_many(b).await?,
        }
        let now = now(b);
        self.model.tick(now);
        let ours = self.model.stats(std::slice::from_ref(&self.inlet), now)?;
        // What time alone brings about may take an engine's own threads a moment.
        for _ in 0..LOOKS {
            if b.stats(&self.queue).await?.books == ours[0].books {
                return Ok(());
            }
            b.pass(Duration::ZERO).await;
        }
        ensure_eq!(b.stats(&self.queue).await?.books, ours[0].books, "the books");
        Ok(())
    }

    /// The same operation on both; the engine's answer must be the model's.
    async fn both(&mut self, b: &Bench, op: Op, model_op: Op) -> Result<Option<Receipt>, Stop> {
        let now = now(b);
        self.model.tick(now);
        let ours = self.model.commit(std::slice::from_ref(&model_op), now).map(|mut r| r.remove(0));
        let theirs = b.op(op).await;
        self.tell(format!("{} -> {}", brief(&model_op), answer(&ours)));
        ensure_eq!(answer(&theirs), answer(&ours), "the answer to {}", brief(&model_op));
        Ok(theirs.ok())
    }

    fn item(&self, id: &MessageId) -> Option<&Item> {
        let queue = self.model.queues.first()?;
        queue.items.iter().rev().find(|i| i.message.id == *id)
    }

    async fn enqueue(&mut self, b: &Bench) -> Done {
        let id = b.id(&format!("m{}", self.random(14)));
        // What is remembered of a cancelled, expired or purged id is not laid down.
        let ended = self.item(&id).map(|i| i.state(now(b)));
        if matches!(ended, Some(MessageState::Cancelled | MessageState::Expired)) {
            return Ok(());
        }
        let body = if self.random(12) == 0 { "other" } else { id.as_str() };
        let mut message = b.message(id.as_str()).json(&body);
        if self.random(3) > 0 {
            message = message.order_key(&format!("k{}", self.random(3)));
        }
        if self.fair && self.random(4) > 0 {
            message = message.fairness_key(&format!("f{}", self.random(3)));
        }
        if !self.ordered && self.random(4) == 0 {
            message = message.priority(self.random(10) as u8);
        }
        if !self.ordered && self.random(5) == 0 {
            message = message.delay(millis(40 * (1 + self.random(5))));
        } else if self.random(8) == 0 {
            message = message.ttl(millis(60 * (1 + self.random(4))));
        }
        let op = enqueue(&self.queue, message.build(b.env())?);
        self.both(b, op.clone(), op).await.map(drop)
    }

    async fn settle(&mut self, b: &Bench) -> Done {
        let Some((token, ours)) = self.some_token() else { return Ok(()) };
        let outcome: Outcome = match self.random(8) {
            0..=2 => ack(),
            // The same wait for the same message: whether another wait is another outcome is not laid down.
            3..=4 => retry_after(millis(20 * token.id.as_str().len() as u64)),
            5 => reject(),
            _ => release(),
        };
        let op = |token: LeaseToken| Op::Settle { token, outcome: outcome.clone() };
        self.both(b, op(token), op(ours)).await.map(drop)
    }

    fn some_token(&mut self) -> Option<(LeaseToken, LeaseToken)> {
        let count = self.tokens.len() as u64;
        // Mostly one of the latest, which may be live; sometimes any, which is probably stale.
        let span = if self.random(4) == 0 { count } else { count.min(4) };
        let back = (count > 0).then(|| self.random(span.max(1)))?;
        self.tokens.get((count - 1 - back) as usize).cloned()
    }

    async fn pass(&mut self, b: &Bench) {
        // Odd microseconds: no two moments fall together by chance.
        let span = millis(10 * (1 + self.random(12))) + Duration::from_micros(7);
        self.tell(format!("{span:?} pass"));
        b.pass(span).await;
    }

    async fn extend(&mut self, b: &Bench) -> Done {
        let Some((token, ours)) = self.some_token() else { return Ok(()) };
        let by = millis(50 * (1 + self.random(6)));
        let now = now(b);
        self.model.tick(now);
        let ours = self.model.extend(&ours, by, now).map_err(|e| e.kind());
        let theirs = b.engine().extend(vec![token], by).await?;
        let theirs = theirs.into_iter().next().map(|answer| answer.map_err(|e| e.kind()));
        self.tell(format!("extend -> {:?}", ours.as_ref().map(|e| e.lease)));
        ensure_eq!(theirs, Some(ours), "the answer to an extension");
        Ok(())
    }

    async fn change_one(&mut self, b: &Bench) -> Done {
        let id = b.id(&format!("m{}", self.random(14)));
        let inlet = self.inlet.clone();
        // Cancelling what is leased or over is a matter of its own check.
        let here = self.item(&id).is_none_or(Item::is_here);
        let op = match self.random(4) {
            0 => Op::Pause { inlet },
            1 if here => Op::Cancel { inlet, id },
            2 => Op::EndProcess { process: ProcessId(self.process().into()), died: false },
            _ => Op::Resume { inlet },
        };
        self.both(b, op.clone(), op).await.map(drop)
    }

    async fn change_many(&mut self, b: &Bench) -> Done {
        let ids: Vec<MessageId> = (0..3).map(|_| b.id(&format!("m{}", self.random(14)))).collect();
        // What is left of a key that was set aside in part is not laid down: there it is all or nothing.
        let all = self.set_aside || self.random(2) == 0;
        let selection = Selection { ids: if all { Vec::new() } else { ids }, ..Selection::default() };
        let queue = self.model.queue(&self.inlet)?;
        // Whether a redrive may fill a queue beyond its bound is not laid down.
        let room = queue.unfinished() + queue.dead() <= queue.config.depth_max;
        let (inlet, bulk, dry_run) = (self.inlet.clone(), BulkId::generate(b.env()), self.random(4) == 0);
        let op = match self.random(4) {
            0 => Op::Purge { inlet, what: PurgeWhat::Dead, selection, bulk, dry_run },
            1 => Op::Purge { inlet, what: PurgeWhat::Waiting, selection, bulk, dry_run },
            _ if room => Op::Redrive { inlet, selection, spacing: Duration::ZERO, bulk, dry_run },
            _ => return Ok(()),
        };
        self.both(b, op.clone(), op).await.map(drop)
    }
}
