//! Limits and flow: every bound refuses by name, and what was refused had no effect.

use crate::bench::rules;
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has, Stop};
use onward_core::{
    Capability::{AcceptsTypes, Bounds, Fairness, Pause, Queues},
    ErrorKind, Inlet, InletConfig, LEASE_COUNT_MAX, LeaseRequest, Message, Name, Op, Overflow, Payload,
};

checks! { group "limits";
    oversize_refused_before_io,
        "A payload over the bound is refused with its size and the mend, headers counted, and leaves nothing.",
        [Has(Queues)], ["T48", "AD10"];
    full_queue_rejects_or_blocks,
        "A full queue refuses new messages as `Full` and takes them again when there is room.",
        [Has(Queues), Has(Bounds)], ["T39"];
    full_queue_sheds_lowest,
        "With `shed_lowest` a full queue makes room for a higher priority, and counts what it shed.",
        [Has(Queues), Has(Bounds)], [];
    slow_consumer_bounds_memory,
        "Without a consumer a queue grows to its bound of bytes and no further; what is held counts.",
        [Has(Queues), Has(Bounds)], [];
    absurd_requests_refused,
        "Counts beyond the limits are refused before anything is allocated or handed out.",
        [Has(Queues)], ["T54"];
    pause_resume,
        "A paused queue accepts and hands out nothing; resumed, it hands out; leases live on meanwhile.",
        [Has(Queues), Has(Pause)], [];
    fairness_one_round,
        "A single message of one key waits at most one round of the others, however many they have.",
        [Has(Queues), Has(Fairness)], [];
    leases_only_accepted_types,
        "A worker gets only the types that it accepts; the others stay for other workers, without an attempt.",
        [Has(Queues), Has(AcceptsTypes)], [];
}

async fn oversize_refused_before_io(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { payload_bytes_max: 1_000, ..rules() }).await?;
    let of = |bytes: usize| Payload::bytes(vec![1; bytes], "application/octet-stream");
    let exact = b.message("exact").data(of(1_000)?).build(b.env())?;
    let over = b.message("over").data(of(1_001)?).build(b.env())?;
    let headers = b.message("headers").data(of(998)?).header("ab", "c").build(b.env())?;
    for message in [over, headers] {
        let id = message.id.clone();
        match b.enqueue(&queue, message).await {
            Err(error) => {
                ensure_eq!(error.kind(), ErrorKind::Invalid, "a payload over the bound ({id})");
                ensure!(error.mend_text().is_some(), "the refusal does not say the mend: {error}");
            }
            Ok(_) => return Err(Stop::Failed(format!("{id} is over the bound and was accepted"))),
        }
    }
    b.enqueue(&queue, exact).await?;
    let came = b.take_many(&queue, 5).await?;
    ensure_eq!(
        came.iter().map(|d| d.message.id.as_str()).collect::<Vec<_>>(),
        vec!["exact"],
        "what is there"
    );
    ensure_eq!(came[0].message.data.as_bytes().len(), 1_000, "bytes of what is there");
    Ok(())
}

async fn must_be_full(b: &Bench, queue: &Name, message: Message) -> Done {
    match b.enqueue(queue, message).await {
        Err(error) => ensure_eq!(error.kind(), ErrorKind::Full, "enqueueing beyond the bound"),
        Ok(_) => return Err(Stop::Failed("a message beyond the bound was accepted".into())),
    }
    Ok(())
}

async fn full_queue_rejects_or_blocks(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { depth_max: 3, ..rules() }).await?;
    for index in 0..3 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    must_be_full(b, &queue, b.message("more").build(b.env())?).await?;
    let repeat = b.enqueue(&queue, b.message("m1").build(b.env())?).await?;
    ensure!(repeat.duplicate, "a repeat at a full queue is no duplicate");
    let held = b.must_take(&queue).await?;
    must_be_full(b, &queue, b.message("more").build(b.env())?).await?;
    b.ack(&held).await?;
    b.put(&queue, "more").await?;
    ensure_eq!(b.take_many(&queue, 9).await?.len(), 3, "messages there");
    Ok(())
}

async fn full_queue_sheds_lowest(b: &mut Bench) -> Done {
    let config = InletConfig { depth_max: 2, overflow: Overflow::ShedLowest, ..rules() };
    let queue = b.queue(config).await?;
    for (id, priority) in [("low", 1), ("middle", 5)] {
        b.enqueue(&queue, b.message(id).priority(priority).build(b.env())?).await?;
    }
    must_be_full(b, &queue, b.message("same").priority(1).build(b.env())?).await?;
    b.enqueue(&queue, b.message("high").priority(9).build(b.env())?).await?;
    let left = b.take_many(&queue, 5).await?;
    let ids: Vec<_> = left.iter().map(|d| d.message.id.as_str()).collect();
    ensure_eq!(ids, vec!["high", "middle"], "what is left");
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.shed, books.balance()), (1, true), "shed, and whether the books balance");
    Ok(())
}

async fn slow_consumer_bounds_memory(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { bytes_max: 10_000, ..rules() }).await?;
    let data = Payload::bytes(vec![1; 999], "application/octet-stream")?;
    for index in 0..10 {
        b.enqueue(&queue, b.message(&format!("m{index}")).data(data.clone()).build(b.env())?).await?;
    }
    let held = b.must_take(&queue).await?;
    for index in 10..15 {
        must_be_full(b, &queue, b.message(&format!("m{index}")).data(data.clone()).build(b.env())?).await?;
    }
    ensure_eq!(b.stats(&queue).await?.bytes, 9_990, "bytes of unfinished messages");
    b.ack(&held).await?;
    ensure_eq!(b.stats(&queue).await?.bytes, 8_991, "bytes after one was done");
    b.enqueue(&queue, b.message("again").data(data).build(b.env())?).await?;
    Ok(())
}

async fn absurd_requests_refused(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    for count_max in [0, LEASE_COUNT_MAX as u32 + 1, u32::MAX] {
        let answer = b.engine().lease(LeaseRequest { count_max, ..b.request(&queue) }).await;
        let refused = answer.is_err_and(|e| e.kind() == ErrorKind::Invalid);
        ensure!(refused, "a request for {count_max} deliveries is not refused as invalid");
    }
    let none = LeaseRequest { inlets: Vec::new(), ..b.request(&queue) };
    ensure!(b.engine().lease(none).await.is_err(), "a request without inlets is not refused");
    let found = b.engine().prepare(Vec::new());
    ensure!(found.is_err_and(|e| e.kind() == ErrorKind::Invalid), "an empty commit is not refused");
    ensure_eq!(b.must_take(&queue).await?.attempt, 1, "the attempt after refused requests");
    Ok(())
}

async fn pause_resume(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let inlet = Inlet::Queue(queue.clone());
    for id in ["held", "m"] {
        b.put(&queue, id).await?;
    }
    let held = b.must_take(&queue).await?;
    b.op(Op::Pause { inlet: inlet.clone() }).await?;
    b.op(Op::Pause { inlet: inlet.clone() }).await?;
    b.put(&queue, "n").await?;
    b.nothing_for(&queue, b.brief()).await?;
    ensure!(b.stats(&queue).await?.paused, "a paused queue does not say so");
    ensure!(b.engine().topology().await?.paused.contains(&inlet), "the topology does not name it as paused");
    ensure!(!b.ack(&held).await?.already, "a lease from before the pause can't be settled");
    b.op(Op::Resume { inlet }).await?;
    let ids = [b.await_take(&queue).await?.message.id, b.await_take(&queue).await?.message.id];
    ensure!(ids.contains(&b.id("m")) && ids.contains(&b.id("n")), "after the pause {ids:?} came");
    Ok(())
}

async fn fairness_one_round(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for (key, count) in [("big", 60), ("middle", 20), ("small", 1)] {
        for index in 0..count {
            let message = b.message(&format!("{key}{index}")).fairness_key(key).build(b.env())?;
            b.enqueue(&queue, message).await?;
        }
    }
    for turn in 0..6 {
        let delivery = b.must_take(&queue).await?;
        b.ack(&delivery).await?;
        if delivery.message.id == b.id("small0") {
            return Ok(());
        }
        ensure!(turn < 5, "a single message waits for more than a round of three keys");
    }
    Ok(())
}

async fn leases_only_accepted_types(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for (id, kind) in [("a", "type.a"), ("b", "type.b")] {
        b.enqueue(&queue, Message::builder(kind).id(b.id(id)).build(b.env())?).await?;
    }
    let only = |kind: &str| LeaseRequest { accepts: vec![kind.into()], count_max: 5, ..b.request(&queue) };
    ensure!(b.engine().lease(only("type.c")).await?.is_empty(), "a type that is not accepted was handed out");
    let got = b.engine().lease(only("type.b")).await?;
    ensure_eq!(
        got.iter().map(|d| d.message.id.as_str()).collect::<Vec<_>>(),
        vec!["b"],
        "what `type.b` gets"
    );
    let rest = b.must_take(&queue).await?;
    ensure_eq!((rest.message.id.as_str(), rest.attempt), ("a", 1), "what is left, and its attempt");
    Ok(())
}
