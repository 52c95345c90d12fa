//! The outbox over the engine: a message goes out exactly when its change was made, in order by key, and is then gone.

use super::records::{get, put};
use crate::bench::{holder, millis, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Answer, Bench, Done, Need::Atomic, Need::Durable, Need::Has, Stop};
use onward_core::{
    AtomicScope::Store,
    Capability::{Bounds, Browse, Dedup, OrderByKey, Queues, Records, Release},
    Inlet, InletConfig, LeaseRequest, MessageQuery, MessageState, Name, Op, RecordExpect, Result,
};
use onward_patterns::{
    Destination,
    outbox::{Outbox, Relay, Relayed},
};
use std::time::Duration;

checks! { group "transactions";
    crash_between_commit_and_dispatch,
        "A staged message outlives a crash with its change and is sent once, whenever a relay dies; without its change it never is.",
        [Has(Queues), Has(Records), Has(Dedup), Durable, Atomic(Store)], ["AD12"];
    outbox_order_per_key,
        "Messages of one key reach their destination in the order of their commits, also over one that takes them late.",
        [Has(Queues), Has(OrderByKey), Has(Bounds), Has(Release)], ["AD12"];
    outbox_purges,
        "What was sent is gone from the outbox, and what it holds is told by count and age.",
        [Has(Queues), Has(Browse)], ["AD12"];
}

const KEYS: [&str; 3] = ["a", "b", "c"];

/// An outbox of its own for a check.
async fn outbox(b: &Bench) -> Answer<Outbox> {
    let outbox = Outbox::new(format!("check-outbox-{}", b.next()).parse()?);
    outbox.declare(&*b.engine()).await?;
    Ok(outbox)
}

fn relay(b: &Bench, outbox: &Outbox) -> Relay {
    Relay::new(outbox.clone(), b.engine(), b.engine(), b.clock().env(), holder("relay", "p"))
}

async fn drains(b: &Bench, outbox: &Outbox, sent: u64, when: &str) -> Done {
    let relayed = relay(b, outbox).drain().await?;
    ensure_eq!(relayed, Relayed { sent, ..Relayed::default() }, "what was relayed, {when}");
    Ok(())
}

async fn ids(b: &Bench, queue: &Name) -> Answer<Vec<String>> {
    let all = b.take_many(queue, 100).await?;
    Ok(all.into_iter().map(|delivery| delivery.message.id.to_string()).collect())
}

async fn crash_between_commit_and_dispatch(b: &mut Bench) -> Done {
    let (outbox, queue) = (outbox(b).await?, b.queue(rules()).await?);
    let to = Destination::Queue(queue.clone());
    let staged =
        |b: &Bench, id: &str| -> Answer<Op> { Ok(outbox.stage(&to, b.message(id).build(b.env())?)?) };
    let change = || put("check/order", "placed", RecordExpect::Absent);
    b.commit(vec![staged(b, "placed")?, change()?]).await?;
    ensure!(b.commit(vec![staged(b, "ghost")?, change()?]).await.is_err(), "a change was made twice");
    b.subject.crash().await?;
    ensure!(get(b, "check/order").await?.is_some(), "the change is gone");
    // A relay that dies between sending and acknowledging: its lease ends, and another one sends again.
    let brief = LeaseRequest { lease: Some(b.brief()), ..b.request(outbox.queue()) };
    b.await_request(brief).await?;
    b.enqueue(&queue, b.message("placed").build(b.env())?).await?;
    b.subject.crash().await?;
    b.pass(b.brief() * 2).await;
    let mut sent = 0;
    for _ in 0..100 {
        sent += relay(b, &outbox).round(Duration::ZERO).await?.sent;
        b.pass(millis(10)).await;
    }
    ensure_eq!(sent, 1, "messages that the second relay sent");
    ensure_eq!(ids(b, &queue).await?, ["placed"], "what reached the destination");
    ensure_eq!(outbox.unsent(&*b.engine()).await?.depth, 0, "what is still to be sent");
    Ok(())
}

/// Stages messages of three keys and lets two relays carry them to a queue that has room for few.
async fn outbox_order_per_key(b: &mut Bench) -> Done {
    let outbox = outbox(b).await?;
    let queue = b.queue(InletConfig { depth_max: 4, ..rules() }).await?;
    let to = Destination::Queue(queue.clone());
    let keyed = |index: u32, key: &str| -> Result<Op> {
        outbox.stage(&to, b.message(&format!("{key}{index}")).order_key(key).build(b.env())?)
    };
    let (one, two) = (relay(b, &outbox), relay(b, &outbox));
    // The first of each key finds the destination full; the second must not overtake it when there is room again.
    for index in 0..4 {
        b.put(&queue, &format!("fills{index}")).await?;
    }
    for key in KEYS {
        b.op(keyed(0, key)?).await?;
    }
    ensure_eq!(one.round(Duration::ZERO).await?.again, 3, "messages that found their destination full");
    for fills in b.take_many(&queue, 4).await? {
        b.ack(&fills).await?;
    }
    for index in 1..6 {
        for key in KEYS {
            b.op(keyed(index, key)?).await?;
        }
    }
    let mut came: Vec<String> = Vec::new();
    for _ in 0..200 {
        one.round(Duration::ZERO).await?;
        two.round(Duration::ZERO).await?;
        for delivery in b.take_many(&queue, 4).await? {
            came.push(delivery.message.id.to_string());
            b.ack(&delivery).await?;
        }
        if came.len() == 18 {
            break;
        }
        b.pass(millis(200)).await;
    }
    for key in KEYS {
        let of_key: Vec<&String> = came.iter().filter(|id| id.starts_with(key)).collect();
        let sent: Vec<String> = (0..6).map(|index| format!("{key}{index}")).collect();
        ensure_eq!(of_key, sent.iter().collect::<Vec<_>>(), "what came of key {key}");
    }
    Ok(())
}

async fn outbox_purges(b: &mut Bench) -> Done {
    let (outbox, queue) = (outbox(b).await?, b.queue(rules()).await?);
    let to = Destination::Queue(queue.clone());
    for round in 0..3 {
        let since = b.env().now();
        for index in 0..20 {
            let message = b.message(&format!("m{round}-{index}")).build(b.env())?;
            b.op(outbox.stage(&to, message)?).await?;
        }
        let unsent = outbox.unsent(&*b.engine()).await?;
        ensure_eq!((unsent.depth, unsent.dead), (20, 0), "what is to be sent, and what can't be");
        let oldest = unsent.oldest_waiting.ok_or_else(|| Stop::Failed("the oldest one has no age".into()))?;
        ensure!(oldest.since(since) < Duration::from_secs(60), "the oldest one waits since {oldest}");
        drains(b, &outbox, 20, "in one go").await?;
        let stats = b.stats(outbox.queue()).await?;
        ensure_eq!(
            (stats.bytes, stats.books.waiting + stats.books.leased),
            (0, 0),
            "bytes and messages left"
        );
    }
    for state in [MessageState::Waiting, MessageState::Delayed, MessageState::Leased, MessageState::Dead] {
        let query = MessageQuery::state(Inlet::Queue(outbox.queue().clone()), state, 10);
        ensure_eq!(b.engine().find(query).await?.items.len(), 0, "messages that are {state}");
    }
    ensure_eq!(ids(b, &queue).await?.len(), 60, "what reached the destination");
    Ok(())
}
