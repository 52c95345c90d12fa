//! Priority where something else holds messages back.

use crate::bench::{millis, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has};
use onward_core::{
    Capability::{ConcurrencyLimit, Fairness, Pause, Priority, Queues},
    Inlet, InletConfig, Name, Op,
};

checks! { group "limits";
    priority_holds_through_limits,
        "Higher priority goes first through limits, retries and pauses, and the lowest runs within its ageing bound.",
        [Has(Queues), Has(Priority), Has(ConcurrencyLimit), Has(Fairness), Has(Pause)], ["T33"];
}

async fn put_priority(b: &Bench, queue: &Name, id: &str, priority: u8) -> Done {
    let message = b.message(id).priority(priority).fairness_key(&id[..1]).build(b.env())?;
    Ok(b.enqueue(queue, message).await.map(drop)?)
}

/// The next one is this; it is acknowledged.
async fn next_is(b: &Bench, queue: &Name, id: &str, why: &str) -> Done {
    let delivery = b.await_take(queue).await?;
    ensure_eq!(delivery.message.id.as_str(), id, "what comes first {why}");
    Ok(b.ack(&delivery).await.map(drop)?)
}

async fn priority_holds_through_limits(b: &mut Bench) -> Done {
    let ageing_ms = if b.clock().stepped().is_ok() { 60_000 } else { 2_000 };
    let one = InletConfig { concurrency_max: Some(1), ageing_ms, ..rules() };
    let queue = b.queue(one).await?;
    put_priority(b, &queue, "held", 1).await?;
    let held = b.must_take(&queue).await?;
    for (id, priority) in [("low", 0), ("middle", 4), ("urgent", 9)] {
        put_priority(b, &queue, id, priority).await?;
    }
    ensure!(b.take(&queue).await?.is_none(), "a second lease lives under a limit of one");
    b.ack(&held).await?;
    let urgent = b.must_take(&queue).await?;
    b.settle(&urgent.token, retry_after(millis(20))).await?;
    ensure_eq!(urgent.message.id, b.id("urgent"), "what comes first when a slot is free");
    b.pass(millis(30)).await;
    next_is(b, &queue, "urgent", "after a retry").await?;

    let inlet = Inlet::Queue(queue.clone());
    b.op(Op::Pause { inlet: inlet.clone() }).await?;
    put_priority(b, &queue, "paused", 9).await?;
    b.op(Op::Resume { inlet }).await?;
    next_is(b, &queue, "paused", "after a pause").await?;
    next_is(b, &queue, "middle", "of what is left").await?;
    // A level for each ageing span: nine of them, and one for the age itself.
    b.pass(millis(ageing_ms * 10)).await;
    put_priority(b, &queue, "younger", 9).await?;
    next_is(b, &queue, "low", "once the lowest has aged").await?;
    held_key(b, ageing_ms).await
}

/// A key at its limit lets others of lower priority go on, and comes first again when its slot is free.
async fn held_key(b: &Bench, ageing_ms: u64) -> Done {
    let queue = b.queue(InletConfig { concurrency_per_key_max: Some(1), ageing_ms, ..rules() }).await?;
    for (id, priority) in [("a1", 9), ("a2", 9), ("b1", 1), ("c1", 4)] {
        put_priority(b, &queue, id, priority).await?;
    }
    let first = b.must_take(&queue).await?;
    ensure_eq!(first.message.id, b.id("a1"), "what comes first of several keys");
    next_is(b, &queue, "c1", "while the first key is at its limit").await?;
    b.ack(&first).await?;
    next_is(b, &queue, "a2", "when the first key's slot is free").await?;
    next_is(b, &queue, "b1", "of what is left").await
}
