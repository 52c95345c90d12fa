//! Order: by arrival with one worker, by key with many, and what a stuck head does.

use super::retry_dead::{bulk, redrive};
use crate::bench::{enqueue, holder, millis, reject, release, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    Capability::{DeadLetters, Fifo, OrderByKey, Priority, Queues, Release},
    CauseKind, InletConfig, LeaseRequest, MessageState, Name, OrderPolicy, Selection, StuckHead,
};
use std::collections::BTreeMap;

checks! { group "order";
    fifo_with_one_consumer,
        "One worker gets messages of one priority in the order in which they were accepted.",
        [Has(Queues), Has(Fifo)], [];
    key_order_under_n_consumers,
        "Messages of one key are handed out in order and one at a time, however many workers ask.",
        [Has(Queues), Has(OrderByKey)], ["J2"];
    key_waits_while_retrying,
        "While the first message of a key waits for its retry, the later ones of that key wait too.",
        [Has(Queues), Has(OrderByKey)], [];
    key_waits_while_released,
        "A released message of a key comes again before the later ones of that key.",
        [Has(Queues), Has(OrderByKey), Has(Release)], [];
    stuck_head_wait,
        "With `wait`, a dead message blocks its key, visibly, until it is redriven or purged.",
        [Has(Queues), Has(OrderByKey), Has(DeadLetters)], [];
    stuck_head_set_aside,
        "With `set_aside`, the later messages of a dead one's key follow it to the dead letters, with that cause.",
        [Has(Queues), Has(OrderByKey), Has(DeadLetters)], [];
    set_aside_redriven_in_order,
        "A key that was set aside comes back in its order.",
        [Has(Queues), Has(OrderByKey), Has(DeadLetters)], [];
    other_keys_progress,
        "A key that is held, retrying or stuck holds up no other key, and nothing without a key.",
        [Has(Queues), Has(OrderByKey), Has(DeadLetters)], ["T42"];
    order_across_restart,
        "Order by key is kept over a restart and over a crash.",
        [Has(Queues), Has(OrderByKey), Durable], [];
    priority_order_and_ageing,
        "Higher priorities are handed out first, and ageing lets the lowest run too.",
        [Has(Queues), Has(Priority)], ["T33"];
}

fn by_key(stuck_head: StuckHead) -> InletConfig {
    InletConfig { order: OrderPolicy::ByKey { stuck_head }, ..rules() }
}

async fn takes(b: &Bench, queue: &Name, ids: &[&str]) -> Done {
    for id in ids {
        let delivery = b.await_take(queue).await?;
        ensure_eq!(delivery.message.id.as_str(), *id, "what is handed out next");
        b.ack(&delivery).await?;
    }
    Ok(())
}

async fn fifo_with_one_consumer(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let mut ops = Vec::new();
    for index in 0..30 {
        ops.push(enqueue(&queue, b.message(&format!("m{index}")).build(b.env())?));
    }
    // Some together, some one by one: both count in the order given.
    let rest = ops.split_off(10);
    b.commit(ops).await?;
    for op in rest {
        b.op(op).await?;
    }
    for index in 0..20 {
        takes(b, &queue, &[&format!("m{index}")]).await?;
    }
    let batch = b.take_many(&queue, 10).await?;
    let ids: Vec<_> = batch.iter().map(|d| d.message.id.to_string()).collect();
    let expected: Vec<_> = (20..30).map(|index| format!("m{index}")).collect();
    ensure_eq!(ids, expected, "the order within one request");
    Ok(())
}

async fn key_order_under_n_consumers(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::Wait)).await?;
    for index in 0..40 {
        b.put_keyed(&queue, &format!("m{index:02}"), &format!("k{}", index % 4)).await?;
    }
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut done = 0;
    while done < 40 {
        // Three workers ask in turn before any of them settles.
        let mut held = Vec::new();
        for worker in ["w1", "w2", "w3"] {
            let request = LeaseRequest { count_max: 2, holder: holder(worker, worker), ..b.request(&queue) };
            held.extend(b.engine().lease(request).await?);
        }
        let mut keys: Vec<_> = held.iter().filter_map(|d| d.message.order_key.clone()).collect();
        keys.sort();
        keys.dedup();
        ensure_eq!(keys.len(), held.len(), "keys of the messages held at once");
        ensure_eq!(held.len(), 4, "messages held at once, of four keys");
        for delivery in held.iter().rev() {
            let key = delivery.message.order_key.as_ref().map(ToString::to_string).unwrap_or_default();
            seen.entry(key).or_default().push(delivery.message.id.as_str().to_owned());
            b.ack(delivery).await?;
            done += 1;
        }
    }
    for (key, ids) in seen {
        ensure!(ids.is_sorted(), "the messages of {key} came as {ids:?}");
    }
    Ok(())
}

async fn key_waits_while_retrying(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::Wait)).await?;
    for id in ["a", "b"] {
        b.put_keyed(&queue, id, "k").await?;
    }
    let first = b.must_take(&queue).await?;
    let wait = b.brief();
    let since = b.monotonic();
    b.settle(&first.token, retry_after(wait)).await?;
    let again = b.await_take(&queue).await?;
    let waited = b.monotonic() - since;
    ensure!(waited >= wait, "the retry came after {waited:?}, before its delay");
    ensure_eq!((again.message.id.as_str(), again.attempt), ("a", 2), "what comes after the wait");
    b.ack(&again).await?;
    takes(b, &queue, &["b"]).await
}

async fn key_waits_while_released(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::Wait)).await?;
    for id in ["a", "b"] {
        b.put_keyed(&queue, id, "k").await?;
    }
    let first = b.must_take(&queue).await?;
    b.settle(&first.token, release()).await?;
    takes(b, &queue, &["a", "b"]).await
}

async fn kill_head(b: &Bench, queue: &Name, id: &str) -> Done {
    let head = b.await_take(queue).await?;
    ensure_eq!(head.message.id.as_str(), id, "the head of the key");
    b.settle(&head.token, reject()).await?;
    Ok(())
}

async fn stuck_head_wait(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::Wait)).await?;
    for id in ["a", "b", "c"] {
        b.put_keyed(&queue, id, "k").await?;
    }
    kill_head(b, &queue, "a").await?;
    b.nothing_for(&queue, b.brief()).await?;
    let stats = b.stats(&queue).await?;
    ensure_eq!((stats.books.dead, stats.books.waiting, stats.blocked), (1, 2, 2), "dead, waiting, blocked");
    ensure!(b.must_find(&queue, "b").await?.blocked, "a blocked message is not shown as blocked");
    bulk(b, redrive(b, &queue, Selection::default())).await?;
    takes(b, &queue, &["a", "b", "c"]).await
}

async fn stuck_head_set_aside(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::SetAside)).await?;
    for id in ["a", "b"] {
        b.put_keyed(&queue, id, "k").await?;
    }
    kill_head(b, &queue, "a").await?;
    b.put_keyed(&queue, "c", "k").await?;
    b.put_keyed(&queue, "other", "k2").await?;
    takes(b, &queue, &["other"]).await?;
    b.nothing_for(&queue, b.brief()).await?;
    for id in ["b", "c"] {
        let view = b.must_find(&queue, id).await?;
        ensure_eq!(view.state, MessageState::Dead, "the state of {id}, behind a dead head");
        let kind = view.causes.last().map(|c| (c.failure.kind, c.attempt));
        ensure_eq!(kind, Some((CauseKind::BehindDeadHead, 0)), "the cause and attempt of {id}");
    }
    ensure_eq!(b.stats(&queue).await?.books.dead, 3, "dead letters");
    Ok(())
}

async fn set_aside_redriven_in_order(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::SetAside)).await?;
    for id in ["a", "b", "c", "d"] {
        b.put_keyed(&queue, id, "k").await?;
    }
    takes(b, &queue, &["a"]).await?;
    kill_head(b, &queue, "b").await?;
    b.put_keyed(&queue, "e", "k").await?;
    let report = bulk(b, redrive(b, &queue, Selection::default())).await?;
    ensure_eq!(report.done, 4, "messages of the key that were redriven");
    takes(b, &queue, &["b", "c", "d", "e"]).await
}

async fn other_keys_progress(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::Wait)).await?;
    for (id, key) in [("held", "k1"), ("held2", "k1"), ("retried", "k2"), ("retried2", "k2")] {
        b.put_keyed(&queue, id, key).await?;
    }
    for (id, key) in [("dead", "k3"), ("dead2", "k3"), ("free", "k4")] {
        b.put_keyed(&queue, id, key).await?;
    }
    b.put(&queue, "keyless").await?;
    for _ in 0..3 {
        let delivery = b.must_take(&queue).await?;
        match delivery.message.id.as_str() {
            "held" => {}
            "retried" => {
                b.settle(&delivery.token, retry_after(crate::bench::PATIENCE)).await?;
            }
            "dead" => {
                b.settle(&delivery.token, reject()).await?;
            }
            other => return Err(Stop::Failed(format!("{other} was handed out before earlier keys"))),
        }
    }
    takes(b, &queue, &["free", "keyless"]).await?;
    b.nothing_for(&queue, b.brief()).await
}

async fn order_across_restart(b: &mut Bench) -> Done {
    let queue = b.queue(by_key(StuckHead::Wait)).await?;
    for id in ["a", "b", "c", "d"] {
        b.put_keyed(&queue, id, "k").await?;
    }
    takes(b, &queue, &["a"]).await?;
    b.subject.restart().await?;
    takes(b, &queue, &["b"]).await?;
    let third = b.await_take(&queue).await?;
    b.settle(&third.token, retry_after(millis(50))).await?;
    b.subject.crash().await?;
    b.put_keyed(&queue, "e", "k").await?;
    takes(b, &queue, &["c", "d", "e"]).await
}

async fn priority_order_and_ageing(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { ageing_ms: 3_600_000, ..rules() }).await?;
    for (id, priority) in [("low", 0), ("plain", 4), ("high", 9), ("high2", 9), ("low2", 0)] {
        let message = b.message(id).priority(priority).build(b.env())?;
        b.enqueue(&queue, message).await?;
    }
    takes(b, &queue, &["high", "high2", "plain", "low", "low2"]).await?;

    let ageing = if b.clock().stepped().is_ok() { 1_000 } else { 20 };
    let queue = b.queue(InletConfig { ageing_ms: ageing, ..rules() }).await?;
    b.enqueue(&queue, b.message("old").priority(0).build(b.env())?).await?;
    b.pass(millis(ageing * 11)).await;
    b.enqueue(&queue, b.message("new").priority(9).build(b.env())?).await?;
    takes(b, &queue, &["old"]).await
}
