//! The claim check over the engine: large payloads go aside, come back exactly, and go when their messages are gone.

use super::topics::support::Sub;
use crate::bench::{accepted, ack, commit, enqueue, millis, reject, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Answer, Bench, Done, Need::Has, Stop};
use onward_core::{
    BulkId,
    Capability::{Browse, DeadLetters, Queues, Topics},
    Delivery, Inlet, InletConfig, LeaseRequest, Message, Op, Outcome, Payload, RequestId, Selection,
    TopicConfig,
};
use onward_patterns::claim_check::{ClaimCheck, Collected, Payloads, object_store::memory::InMemory};
use std::{sync::Arc, time::Duration};

checks! { group "claim_check";
    claim_check_roundtrip_and_collection,
        "A payload over the queue's bound goes aside, comes exactly back to each attempt, and is collected only once its message is gone.",
        [Has(Queues), Has(DeadLetters), Has(Browse)], ["F3"];
    claim_check_over_topics,
        "A large payload comes to every subscription, and is collected when the topic and the last of them let it go.",
        [Has(Queues), Has(Topics), Has(Browse)], ["F3"];
}

const KEPT: Collected = Collected { removed: 0, kept: 1, young: 0 };
const REMOVED: Collected = Collected { removed: 1, kept: 0, young: 0 };

/// A claim check with an empty store before the engine.
fn before(b: &Bench) -> ClaimCheck {
    let payloads = Payloads::on(Arc::new(InMemory::new()));
    ClaimCheck::new(b.engine(), b.clock().env(), payloads).over(1_000)
}

fn large(b: &Bench, id: &str) -> Answer<Message> {
    let every: Vec<u8> = (0..50_000u32).map(|index| (index % 256) as u8).collect();
    Ok(b.message(id).data(Payload::bytes(every, "image/png")?).header("a", "b").build(b.env())?)
}

/// What is handed out next, which must be this message as it was sent.
async fn comes_whole(b: &Bench, aside: &ClaimCheck, inlet: &Inlet, sent: &Message) -> Answer<Delivery> {
    let request = RequestId::generate(b.env());
    let request = LeaseRequest::one(inlet.clone(), crate::bench::holder("w", "p"), request);
    let delivery = b.await_from(aside, request).await?;
    let came = &delivery.message;
    ensure!(came.data.as_bytes() == sent.data.as_bytes(), "{}: other bytes came than were sent", sent.id);
    ensure_eq!(came.data.content_type(), sent.data.content_type(), "the content type");
    ensure_eq!(came.headers, sent.headers, "the headers");
    Ok(delivery)
}

async fn settle(aside: &ClaimCheck, delivery: &Delivery, outcome: Outcome) -> Done {
    commit(aside, vec![Op::Settle { token: delivery.token.clone(), outcome }]).await?;
    Ok(())
}

async fn collects(aside: &ClaimCheck, expected: Collected, when: &str) -> Done {
    ensure_eq!(aside.collect(Duration::ZERO).await?, expected, "what was collected, {when}");
    Ok(())
}

async fn claim_check_roundtrip_and_collection(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { payload_bytes_max: 4_000, ..rules() }).await?;
    let (aside, inlet, sent) = (before(b), Inlet::Queue(queue.clone()), large(b, "large")?);
    for again in [false, true] {
        let receipts = commit(&aside, vec![enqueue(&queue, sent.clone())]).await?;
        for receipt in receipts {
            ensure_eq!(accepted(receipt)?.duplicate, again, "whether it was there already");
        }
    }
    collects(&aside, KEPT, "while it waits").await?;
    let bytes = b.must_find(&queue, "large").await?.message.size();
    ensure!(bytes < 1_000, "the message has {bytes} bytes in the engine");
    let first = comes_whole(b, &aside, &inlet, &sent).await?;
    collects(&aside, KEPT, "while it is worked on").await?;
    settle(&aside, &first, retry_after(millis(1))).await?;
    collects(&aside, KEPT, "while it waits for another attempt").await?;
    let second = comes_whole(b, &aside, &inlet, &sent).await?;
    settle(&aside, &second, reject()).await?;
    collects(&aside, KEPT, "while it is a dead letter").await?;
    let (selection, bulk) = (Selection::default(), BulkId::generate(b.env()));
    b.op(Op::Redrive { inlet: inlet.clone(), selection, spacing: Duration::ZERO, bulk, dry_run: false })
        .await?;
    let third = comes_whole(b, &aside, &inlet, &sent).await?;
    settle(&aside, &third, ack()).await?;
    collects(&aside, REMOVED, "once it is done").await
}

async fn claim_check_over_topics(b: &mut Bench) -> Done {
    let config = TopicConfig { retention_ms: Some(2_000), ..TopicConfig::default() };
    let first = Sub::new(b, config, rules()).await?;
    let second = first.beside(b, "second").await?;
    let (aside, sent) = (before(b), large(b, "large")?);
    commit(&aside, vec![Op::Publish { topic: first.topic.clone(), message: Box::new(sent.clone()) }]).await?;
    let done = comes_whole(b, &aside, &first.inlet, &sent).await?;
    settle(&aside, &done, ack()).await?;
    collects(&aside, KEPT, "before every subscription was done").await?;
    let held = comes_whole(b, &aside, &second.inlet, &sent).await?;
    b.pass(millis(2_500)).await;
    collects(&aside, KEPT, "while a subscription works on what the topic let go").await?;
    settle(&aside, &held, ack()).await?;
    let mut collected = aside.collect(Duration::ZERO).await?;
    for _ in 0..200 {
        if collected == REMOVED {
            return Ok(());
        }
        b.pass(millis(10)).await;
        collected = aside.collect(Duration::ZERO).await?;
    }
    Err(Stop::Failed(format!("once nobody has it, it is not collected: {collected:?}")))
}
