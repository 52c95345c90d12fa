//! Core: what is accepted comes out as it went in, once, and is settled as its holder says.

use crate::bench::{PATIENCE, holder, millis, reject, release, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has};
use onward_core::{
    Capability::{AtMostOnce, Browse, DeadLetters, Delay, Queues, Release},
    DeliveryGuarantee, InletConfig, LeaseRequest, MessageState, Payload,
};

checks! { group "core";
    publish_confirmed_then_visible,
        "A message whose enqueue was answered is there for everybody, with the durability that the receipt names.",
        [Has(Queues), Has(Browse)], ["T61", "A1", "B1"];
    payload_bytes_exact,
        "Data comes out byte for byte: NUL, nothing, what is not UTF-8, numbers above 2^53, and the largest allowed.",
        [Has(Queues)], [];
    headers_roundtrip_unicode,
        "The whole envelope comes out as it went in, headers in any script among it.",
        [Has(Queues)], ["F1"];
    ack_never_returns,
        "An acknowledged message is never handed out again.",
        [Has(Queues)], ["B2"];
    retry_requeues_after_delay,
        "A retried message comes again as the next attempt, and not before its delay, however short was asked.",
        [Has(Queues), Has(Delay)], ["T52"];
    reject_dead_letters_now,
        "A rejected message is a dead letter at once and is not handed out.",
        [Has(Queues), Has(DeadLetters), Has(Browse)], [];
    release_counts_no_attempt,
        "A released message comes again as the same attempt, without a cause.",
        [Has(Queues), Has(Release)], ["T36"];
    out_of_order_ack,
        "Deliveries are settled in any order; each settles itself alone.",
        [Has(Queues)], [];
    at_most_once_never_twice,
        "On an at-most-once queue nothing is handed out twice: not after a failure, not after the lease's end.",
        [Has(Queues), Has(AtMostOnce)], ["B3"];
    attempt_starts_at_1,
        "The first attempt is number 1, and each failure adds one.",
        [Has(Queues)], [];
    prefetch_bound_holds,
        "A request gets at most its count and its bytes, and what it did not get is free for others.",
        [Has(Queues)], ["T34"];
}

async fn publish_confirmed_then_visible(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let message = b.message("m").build(b.env())?;
    let accepted = b.enqueue(&queue, message.clone()).await?;
    ensure_eq!(accepted.id, message.id, "the receipt's id");
    ensure!(!accepted.duplicate, "a new message is called a duplicate");
    ensure_eq!(accepted.durability, b.engine().capabilities().durability, "the receipt's durability");
    let view = b.must_find(&queue, "m").await?;
    ensure_eq!(view.state, MessageState::Waiting, "the state after the receipt");
    ensure_eq!(view.message, message, "the message found");
    ensure_eq!(b.must_take(&queue).await?.message, message, "the message handed out");
    Ok(())
}

async fn payload_bytes_exact(b: &mut Bench) -> Done {
    let most = b.engine().capabilities().limits.payload_bytes_max.min(256 * 1024);
    let queue = b.queue(InletConfig { payload_bytes_max: most, ..rules() }).await?;
    let every_byte: Vec<u8> = (0..=255).collect();
    let largest: Vec<u8> = (0..most).map(|i| (i % 251) as u8).collect();
    let raw = [b"a\0b\0".to_vec(), Vec::new(), vec![0xC3, 0x28, 0xFF], every_byte, largest];
    let mut payloads = Vec::new();
    for bytes in raw {
        payloads.push(Payload::bytes(bytes, "application/octet-stream")?);
    }
    payloads.push(Payload::json_text(r#"{"n": 9007199254740993,  "d": 0.10000000000000000001}"#)?);
    for (index, payload) in payloads.into_iter().enumerate() {
        let message = b.message(&format!("m{index}")).data(payload.clone()).build(b.env())?;
        b.enqueue(&queue, message).await?;
        let delivery = b.must_take(&queue).await?;
        let (came, went) = (delivery.message.data.as_bytes(), payload.as_bytes());
        ensure!(came == went, "payload {index}: {} bytes came of {}", came.len(), went.len());
        ensure_eq!(delivery.message.data.content_type(), payload.content_type(), "content type {index}");
        b.ack(&delivery).await?;
    }
    Ok(())
}

async fn headers_roundtrip_unicode(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let message = b
        .message("m")
        .version(3)
        .source("büro/zürich")
        .correlation_id("corr-é")
        .causation_id("cause-1")
        .header("grüße", "Zoë 🦀 日本語 \u{200d} عربى")
        .header("empty", "")
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .build(b.env())?;
    b.enqueue(&queue, message.clone()).await?;
    ensure_eq!(b.must_take(&queue).await?.message, message, "the envelope");
    Ok(())
}

async fn ack_never_returns(b: &mut Bench) -> Done {
    let brief = b.brief();
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let request = LeaseRequest { lease: Some(PATIENCE), ..b.request(&queue) };
    let delivery = b.await_request(request).await?;
    let settled = b.ack(&delivery).await?;
    ensure_eq!(settled.state, MessageState::Done, "the state after the acknowledgement");
    ensure!(!settled.already, "a first settlement is called a repeat");
    b.nothing_for(&queue, brief).await?;
    if b.clock().stepped().is_ok() {
        b.nothing_for(&queue, PATIENCE * 3).await?;
    }
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.done, books.waiting, books.leased), (1, 0, 0), "done, waiting, leased");
    Ok(())
}

async fn retry_requeues_after_delay(b: &mut Bench) -> Done {
    let mut config = rules();
    config.retry.delay_min_ms = 40;
    let queue = b.queue(config).await?;
    b.put(&queue, "m").await?;
    let mut delivery = b.await_take(&queue).await?;
    for (asked, floor) in [(millis(0), millis(40)), (millis(120), millis(120))] {
        let failed_at = b.monotonic();
        let settled = b.settle(&delivery.token, retry_after(asked)).await?;
        ensure_eq!(settled.state, MessageState::Delayed, "the state after a retry");
        ensure!(settled.due.is_some(), "the settlement does not say when it comes again");
        let again = b.await_take(&queue).await?;
        let waited = b.monotonic() - failed_at;
        ensure!(waited >= floor, "it came again after {waited:?}, before {floor:?}");
        ensure_eq!(again.attempt, delivery.attempt + 1, "the attempt after a failure");
        delivery = again;
    }
    Ok(())
}

async fn reject_dead_letters_now(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let delivery = b.await_request(LeaseRequest { lease: Some(PATIENCE), ..b.request(&queue) }).await?;
    ensure_eq!(
        b.settle(&delivery.token, reject()).await?.state,
        MessageState::Dead,
        "the state after reject"
    );
    ensure_eq!(b.must_find(&queue, "m").await?.state, MessageState::Dead, "the state found");
    b.nothing_for(&queue, b.brief()).await?;
    ensure_eq!(b.stats(&queue).await?.books.dead, 1, "dead letters counted");
    Ok(())
}

async fn release_counts_no_attempt(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    for _ in 0..8 {
        let delivery = b.await_take(&queue).await?;
        ensure_eq!(delivery.attempt, 1, "the attempt after a release");
        ensure!(delivery.causes.is_empty(), "a release left a cause");
        b.settle(&delivery.token, release()).await?;
    }
    let delivery = b.await_take(&queue).await?;
    b.settle(&delivery.token, retry_after(millis(1))).await?;
    ensure_eq!(b.await_take(&queue).await?.attempt, 2, "the attempt after one failure");
    Ok(())
}

async fn out_of_order_ack(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for index in 0..5 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    let deliveries = b.take_many(&queue, 5).await?;
    ensure_eq!(deliveries.len(), 5, "deliveries of one request");
    for index in [3, 0, 4] {
        ensure!(
            !b.ack(&deliveries[index]).await?.already,
            "{index} was settled by another's acknowledgement"
        );
    }
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.done, books.leased), (3, 2), "done and leased");
    for index in [1, 2] {
        b.settle(&deliveries[index].token, retry_after(millis(1))).await?;
    }
    let mut left = vec![b.await_take(&queue).await?.message.id, b.await_take(&queue).await?.message.id];
    left.sort();
    ensure_eq!(left, vec![b.id("m1"), b.id("m2")], "what comes again");
    Ok(())
}

async fn at_most_once_never_twice(b: &mut Bench) -> Done {
    let brief = b.brief();
    let queue = b.queue(InletConfig { guarantee: DeliveryGuarantee::AtMostOnce, ..rules() }).await?;
    for id in ["fails", "silent", "rejected"] {
        b.put(&queue, id).await?;
    }
    let mut taken = Vec::new();
    for _ in 0..3 {
        let request = LeaseRequest { lease: Some(brief), ..b.request(&queue) };
        taken.push(b.await_request(request).await?);
    }
    // What such a settlement answers is the engine's affair; what it must not do is bring the message back.
    for (delivery, outcome) in taken.iter().zip([retry_after(millis(1)), reject()]) {
        let _ = b.settle(&delivery.token, outcome).await;
    }
    b.nothing_for(&queue, brief * 3).await?;
    let books = b.stats(&queue).await?.books;
    ensure!(books.balance(), "the books do not balance: {books:?}");
    Ok(())
}

async fn attempt_starts_at_1(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    for attempt in 1..=3 {
        let delivery = b.await_request(LeaseRequest { lease: Some(PATIENCE), ..b.request(&queue) }).await?;
        ensure_eq!(delivery.attempt, attempt, "the attempt");
        b.settle(&delivery.token, retry_after(millis(1))).await?;
    }
    Ok(())
}

async fn prefetch_bound_holds(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let data = Payload::bytes(vec![7; 1_000], "application/octet-stream")?;
    for index in 0..6 {
        let message = b.message(&format!("m{index}")).data(data.clone()).build(b.env())?;
        b.enqueue(&queue, message).await?;
    }
    let two = b.take_many(&queue, 2).await?;
    ensure_eq!(two.len(), 2, "deliveries of a request for two");
    let one = b.engine().lease(LeaseRequest { count_max: 5, bytes_max: 10, ..b.request(&queue) }).await?;
    ensure_eq!(one.len(), 1, "deliveries within fewer bytes than the first one has");
    let other = LeaseRequest { holder: holder("other", "other"), count_max: 10, ..b.request(&queue) };
    ensure_eq!(b.engine().lease(other).await?.len(), 3, "what is free for another worker");
    Ok(())
}
