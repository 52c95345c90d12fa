//! Stress: many messages, producers that lose answers, workers that die; every id is accounted for.

use crate::bench::{ack, enqueue, holder, millis, reject, release, retry_after, rules};
use crate::check::{checks, ensure};
use crate::clock::mix;
use crate::{Bench, Clock, Done, Need::Has, Stop};
use futures::FutureExt;
use onward_core::{
    Capability::{CrashSuspects, Dedup, Queues, Release},
    Delivery, Engine, Inlet, InletConfig, LeaseRequest, Message, MessageId, MessageState, Name, Op, Outcome,
    Prepared, ProcessId, Receipt, RequestId, Result,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const PRODUCERS: u64 = 4;
const WORKERS: u64 = 4;
const CHUNK: u64 = 25;
/// A worker that finds nothing so many times in a row gives up: what is missing then is lost.
const IDLE_MAX: u32 = 3_000;

checks! { group "stress";
    every_id_is_accounted_for,
        "With producers that repeat themselves and workers that die, nothing is lost, nothing is invented, nothing done comes again.",
        [Has(Queues), Has(Dedup)], ["AD13"];
}

/// What the outside world saw.
#[derive(Debug, Default)]
struct Tally {
    sent: BTreeSet<MessageId>,
    handed: BTreeMap<MessageId, u32>,
    done: BTreeSet<MessageId>,
    dead: BTreeSet<MessageId>,
    wrong: Vec<String>,
    deaths: u32,
}

impl Tally {
    fn finished(&self) -> usize {
        self.done.len() + self.dead.len()
    }

    fn handed_out(&mut self, delivery: &Delivery) {
        let id = &delivery.message.id;
        *self.handed.entry(id.clone()).or_default() += 1;
        if self.done.contains(id) || self.dead.contains(id) {
            self.wrong.push(format!("{id} was handed out after its end"));
        }
    }

    fn settled(&mut self, id: &MessageId, state: MessageState, already: bool) {
        let set = match state {
            MessageState::Done => &mut self.done,
            MessageState::Dead => &mut self.dead,
            _ => return,
        };
        if !set.insert(id.clone()) && !already {
            self.wrong.push(format!("{id} ended twice"));
        }
    }
}

/// What every task works with.
#[derive(Clone)]
struct Field {
    engine: Arc<dyn Engine>,
    clock: Clock,
    queue: Name,
    tally: Arc<Mutex<Tally>>,
    total: usize,
}

async fn every_id_is_accounted_for(b: &mut Bench) -> Done {
    let mut config = InletConfig { crashes_max: 10_000, ..rules() };
    config.retry.attempts_max = 10_000;
    let queue = b.queue(config).await?;
    let total = (b.messages / (PRODUCERS * CHUNK) * PRODUCERS * CHUNK).max(PRODUCERS * CHUNK);
    let field = Field {
        engine: b.engine(),
        clock: b.clock().clone(),
        queue: queue.clone(),
        tally: Arc::default(),
        total: total as usize,
    };
    let producers = (0..PRODUCERS).map(|n| tokio::spawn(produce(field.clone(), n, total / PRODUCERS)));
    let workers = (0..WORKERS).map(|n| tokio::spawn(work(field.clone(), n)));
    let tasks: Vec<_> = producers.chain(workers).collect();
    for task in tasks {
        task.await.map_err(|e| Stop::Failed(e.to_string()))??;
    }
    judge(b, &field).await
}

async fn judge(b: &Bench, field: &Field) -> Done {
    let books = b.stats(&field.queue).await?.books;
    let tally = field.tally.lock();
    let lost = tally.sent.iter().filter(|id| !tally.done.contains(*id) && !tally.dead.contains(*id)).count();
    let phantom = tally.handed.keys().filter(|id| !tally.sent.contains(*id)).count();
    let again: u32 = tally.handed.values().map(|count| count - 1).sum();
    let counted = format!(
        "{} sent, {} done, {} dead, {lost} lost, {phantom} phantom, {again} handed out again, {} workers died",
        tally.sent.len(),
        tally.done.len(),
        tally.dead.len(),
        tally.deaths
    );
    b.note(counted.clone());
    ensure!(tally.wrong.is_empty(), "{counted}; {}", tally.wrong.join("; "));
    ensure!(lost == 0 && phantom == 0 && tally.sent.len() == field.total, "{counted}");
    let ended = (books.accepted, books.done, books.dead)
        == (field.total as u64, tally.done.len() as u64, tally.dead.len() as u64);
    ensure!(ended && books.balance(), "{counted}; the books say {books:?}");
    Ok(())
}

async fn produce(field: Field, number: u64, count: u64) -> Result<()> {
    let (mut seed, env) = (number, field.clock.env());
    for chunk in 0..count / CHUNK {
        let mut commits = Vec::new();
        for index in 0..CHUNK {
            let id = MessageId::try_from(format!("p{number}-{}", chunk * CHUNK + index))?;
            let message = Message::builder("stress").id(id.clone()).json(&index).build(&*env)?;
            field.tally.lock().sent.insert(id);
            commits.push(field.engine.prepare(vec![enqueue(&field.queue, message)])?);
        }
        match mix(&mut seed) % 10 {
            // The call is dropped on its way: the repeat tells what there is.
            0 => drop(field.engine.submit(commits.clone()).now_or_never()),
            // Its answer is lost.
            1 => drop(field.engine.submit(commits.clone()).await?),
            _ => {}
        }
        for answer in field.engine.submit(commits).await? {
            answer?;
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn work(field: Field, number: u64) -> Result<()> {
    let (mut seed, mut life, env) = (number + 100, 0, field.clock.env());
    let mut idle = 0;
    while idle < IDLE_MAX
        && field.tally.lock().finished() < field.total
        && field.tally.lock().wrong.is_empty()
    {
        let process = format!("w{number}-{life}");
        let request = LeaseRequest {
            count_max: 16,
            holder: holder("w", &process),
            ..LeaseRequest::one(
                Inlet::Queue(field.queue.clone()),
                holder("w", &process),
                RequestId::generate(&*env),
            )
        };
        let deliveries = field.engine.lease(request).await?;
        deliveries.iter().for_each(|delivery| field.tally.lock().handed_out(delivery));
        idle = if deliveries.is_empty() { idle + 1 } else { 0 };
        if deliveries.is_empty() {
            field.clock.pass(millis(2)).await;
            tokio::task::yield_now().await;
        } else if mix(&mut seed).is_multiple_of(25) {
            life += 1;
            die(&field, process).await?;
        } else {
            settle(&field, &deliveries, &mut seed).await?;
        }
    }
    Ok(())
}

/// The worker's process dies with all that it holds.
async fn die(field: &Field, process: String) -> Result<()> {
    let died = field.engine.capabilities().has(CrashSuspects);
    let op = Op::EndProcess { process: ProcessId(process.into()), died };
    crate::bench::commit(&*field.engine, vec![op]).await?;
    field.tally.lock().deaths += 1;
    Ok(())
}

fn outcome(field: &Field, random: u64) -> Outcome {
    match random % 50 {
        0..=3 => retry_after(millis(1)),
        4 if field.engine.capabilities().has(Release) => release(),
        5 => reject(),
        _ => ack(),
    }
}

async fn settle(field: &Field, deliveries: &[Delivery], seed: &mut u64) -> Result<()> {
    let mut commits: Vec<Prepared> = Vec::new();
    for delivery in deliveries {
        let op = Op::Settle { token: delivery.token.clone(), outcome: outcome(field, mix(seed)) };
        commits.push(field.engine.prepare(vec![op])?);
    }
    if mix(seed).is_multiple_of(10) {
        drop(field.engine.submit(commits.clone()).now_or_never());
    }
    let answers = field.engine.submit(commits).await?;
    for (delivery, answer) in deliveries.iter().zip(answers) {
        for receipt in answer? {
            if let Receipt::Settled(settled) = receipt {
                field.tally.lock().settled(&delivery.message.id, settled.state, settled.already);
            }
        }
    }
    Ok(())
}
