//! Time: nothing early, nothing after its end, whatever the clocks do.

use crate::bench::{PATIENCE, enqueue, millis, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    CancelOutcome,
    Capability::{Cancel, Delay, Expiry, Queues, Reschedule},
    ErrorKind, Inlet, LeaseRequest, MessageState, Op, Receipt,
};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

checks! { group "time";
    delay_is_a_floor,
        "A delayed message is handed out after its due time and never before, and holds no lease until then.",
        [Has(Queues), Has(Delay)], ["T1"];
    delay_beyond_native_cap_bridged_or_refused,
        "A delay longer than any native timer is kept as it was asked, or refused before any effect.",
        [Has(Queues), Has(Delay)], ["AD9"];
    past_is_now,
        "A due time in the past is now.",
        [Has(Queues), Has(Delay)], [];
    cancel_before_due,
        "A message that is cancelled before it is due is never handed out; a leased one's holder is told.",
        [Has(Queues), Has(Delay), Has(Cancel)], [];
    reschedule_moves_due,
        "A due time that is moved counts from then on, to either side.",
        [Has(Queues), Has(Delay), Has(Reschedule)], [];
    delay_survives_crash,
        "Delays of new and of failed messages are kept over a crash: nothing comes early, nothing is lost.",
        [Has(Queues), Has(Delay), Durable], ["T40"];
    clock_jump,
        "Setting the wall clock an hour forward or back frees no lease early, and brings nothing early or late.",
        [Has(Queues)], [];
    expired_not_delivered,
        "A message is not handed out at or after its expiry, and is counted as expired.",
        [Has(Queues), Has(Expiry)], [];
    ready_is_promoted_past_delayed,
        "Delayed and retried messages hold up nothing that is ready.",
        [Has(Queues), Has(Delay)], ["T31"];
}

async fn delay_is_a_floor(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let delay = b.brief() * 4;
    let start = b.monotonic();
    let message = b.message("m").delay(delay).build(b.env())?;
    b.enqueue(&queue, message).await?;
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.delayed, books.leased), (1, 0), "delayed and leased");
    let request = LeaseRequest { lease: Some(b.brief()), ..b.request(&queue) };
    ensure!(b.engine().lease(request).await?.is_empty(), "it was handed out before it is due");
    let delivery = b.await_take(&queue).await?;
    let waited = b.monotonic() - start;
    ensure!(waited >= delay, "it came after {waited:?}, before its delay of {delay:?}");
    ensure_eq!(delivery.attempt, 1, "the attempt of a delayed message");
    Ok(())
}

async fn delay_beyond_native_cap_bridged_or_refused(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let long = HOUR * 24 * 400;
    let message = b.message("m").delay(long).build(b.env())?;
    let due = message.due;
    if b.engine().capabilities().limits.delay_max.is_some_and(|most| most < long) {
        let answer = b.engine().prepare(vec![enqueue(&queue, message)]);
        ensure!(
            answer.is_err_and(|e| e.kind() == ErrorKind::Unsupported),
            "a delay beyond `delay_max` passes"
        );
        ensure!(b.find(&queue, "m").await?.is_none(), "a refused message is there");
        return Ok(());
    }
    b.enqueue(&queue, message).await?;
    ensure!(b.take(&queue).await?.is_none(), "a message of next year was handed out");
    let view = b.must_find(&queue, "m").await?;
    ensure_eq!((view.state, view.message.due), (MessageState::Delayed, due), "state and due time");
    if let Ok(clock) = b.clock().stepped() {
        clock.pass(long - HOUR).await;
        ensure!(b.take(&queue).await?.is_none(), "it was handed out an hour early");
        clock.pass(HOUR).await;
        b.await_take(&queue).await?;
    }
    Ok(())
}

async fn past_is_now(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let message = b.message("m").due(b.env().now().minus(HOUR)).build(b.env())?;
    b.enqueue(&queue, message).await?;
    b.must_take(&queue).await?;
    Ok(())
}

async fn cancel(b: &Bench, queue: &onward_core::Name, id: &str) -> Result<CancelOutcome, Stop> {
    match b.op(Op::Cancel { inlet: Inlet::Queue(queue.clone()), id: b.id(id) }).await? {
        Receipt::Cancelled(outcome) => Ok(outcome),
        other => Err(Stop::Failed(format!("cancel answered {other:?}"))),
    }
}

async fn cancel_before_due(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let delay = b.brief();
    b.enqueue(&queue, b.message("later").delay(delay).build(b.env())?).await?;
    b.put(&queue, "now").await?;
    ensure_eq!(cancel(b, &queue, "later").await?, CancelOutcome::Cancelled, "cancelling a delayed one");
    let held = b.must_take(&queue).await?;
    ensure_eq!(held.message.id, b.id("now"), "what is handed out");
    ensure_eq!(cancel(b, &queue, "now").await?, CancelOutcome::Requested, "cancelling a leased one");
    let extended = b.engine().extend(vec![held.token.clone()], PATIENCE).await?;
    let told = extended.into_iter().next().is_some_and(|e| e.is_ok_and(|e| e.cancel_requested));
    ensure!(told, "the holder is not told of the cancellation");
    b.settle(&held.token, retry_after(millis(1))).await?;
    b.nothing_for(&queue, delay * 2).await?;
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.cancelled, books.waiting + books.delayed + books.leased), (2, 0), "cancelled and left");
    Ok(())
}

async fn reschedule_moves_due(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let inlet = Inlet::Queue(queue.clone());
    b.enqueue(&queue, b.message("sooner").delay(HOUR).build(b.env())?).await?;
    let due = b.env().now().minus(HOUR);
    b.op(Op::Reschedule { inlet: inlet.clone(), id: b.id("sooner"), due }).await?;
    ensure_eq!(b.await_take(&queue).await?.message.id, b.id("sooner"), "what was moved to now");
    b.put(&queue, "later").await?;
    let due = b.env().now().plus(HOUR);
    b.op(Op::Reschedule { inlet, id: b.id("later"), due }).await?;
    b.nothing_for(&queue, b.brief()).await?;
    ensure_eq!(b.must_find(&queue, "later").await?.state, MessageState::Delayed, "the state after moving");
    Ok(())
}

async fn delay_survives_crash(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let delay = millis(1_500);
    let start = b.monotonic();
    b.put(&queue, "retried").await?;
    let delivery = b.must_take(&queue).await?;
    b.settle(&delivery.token, retry_after(delay)).await?;
    b.enqueue(&queue, b.message("delayed").delay(delay).build(b.env())?).await?;
    b.subject.crash().await?;
    let mut attempts = Vec::new();
    for _ in 0..2 {
        let delivery = b.await_take(&queue).await?;
        let waited = b.monotonic() - start;
        ensure!(waited >= delay, "{} came after {waited:?}, before its delay", delivery.message.id);
        attempts.push((delivery.message.id, delivery.attempt));
    }
    attempts.sort();
    ensure_eq!(attempts, vec![(b.id("delayed"), 1), (b.id("retried"), 2)], "what came after the crash");
    Ok(())
}

async fn clock_jump(b: &mut Bench) -> Done {
    b.clock().stepped()?;
    let queue = b.queue(rules()).await?;
    b.put(&queue, "held").await?;
    b.put(&queue, "retried").await?;
    let two = b.take_many(&queue, 2).await?;
    ensure_eq!(two.len(), 2, "deliveries");
    b.settle(&two[1].token, retry_after(millis(10_000))).await?;
    let clock = b.clock().stepped()?;
    clock.wall_forward(HOUR);
    b.nothing_for(&queue, millis(9_000)).await?;
    ensure_eq!(b.await_take(&queue).await?.message.id, two[1].message.id, "what is due after ten seconds");
    clock.wall_back(HOUR * 2);
    b.nothing_for(&queue, millis(45_000)).await?;
    // The lease of a minute has run for 55 seconds on the monotonic clock.
    let again = b.await_take(&queue).await?;
    let expected = (two[0].message.id.clone(), 2);
    ensure_eq!((again.message.id, again.attempt), expected, "what comes when its lease ends");
    Ok(())
}

async fn expired_not_delivered(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let ttl = b.brief();
    b.enqueue(&queue, b.message("short").ttl(ttl).build(b.env())?).await?;
    b.pass(ttl).await;
    b.put(&queue, "plain").await?;
    ensure_eq!(b.await_take(&queue).await?.message.id, b.id("plain"), "what is handed out");
    ensure!(b.take(&queue).await?.is_none(), "an expired message was handed out");
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.expired, books.waiting), (1, 0), "expired and waiting");
    ensure!(books.balance(), "the books do not balance: {books:?}");
    Ok(())
}

async fn ready_is_promoted_past_delayed(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for index in 0..20 {
        let message = b.message(&format!("later{index}")).delay(HOUR).priority(9).build(b.env())?;
        b.enqueue(&queue, message).await?;
    }
    b.put(&queue, "fails").await?;
    let delivery = b.must_take(&queue).await?;
    b.settle(&delivery.token, retry_after(HOUR)).await?;
    b.put(&queue, "ready").await?;
    ensure_eq!(b.must_take(&queue).await?.message.id, b.id("ready"), "what is handed out");
    Ok(())
}
