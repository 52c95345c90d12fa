//! Retries and dead letters: bounded attempts, nothing lost, every cause kept.

use crate::bench::{enqueue, holder, millis, reject, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has, Stop};
use onward_core::{
    BulkId, BulkReport,
    Capability::{CrashSuspects, DeadLetters, Purge, Queues},
    CauseKind, DeadEdit, Failure, Inlet, InletConfig, LeaseRequest, MessageState, Name, Op, Outcome, Payload,
    ProcessId, PurgeWhat, Receipt, RetryDelay, Selection,
};
use std::time::Duration;

checks! { group "retry_dead";
    exactly_n_attempts_then_dead_once,
        "A message that always fails is handed out exactly `attempts_max` times, then it is one dead letter.",
        [Has(Queues), Has(DeadLetters)], ["T9", "H2"];
    dead_letter_keeps_body_headers_id_causes,
        "A dead letter keeps the message as it came and every failed attempt with its time, number and worker.",
        [Has(Queues), Has(DeadLetters)], ["H3"];
    redrive_once,
        "A redriven message goes back to work once, with its id, history and correlation; a repeat moves nothing.",
        [Has(Queues), Has(DeadLetters)], [];
    redrive_filtered,
        "A redrive moves what its selection names and nothing else; a dry run only counts.",
        [Has(Queues), Has(DeadLetters)], ["T30"];
    edit_makes_an_edition,
        "An edited dead letter is worked on in its new edition, and the original is kept.",
        [Has(Queues), Has(DeadLetters)], [];
    dead_letters_full_never_loses,
        "With its dead letters full a queue stops handing out, says so, and drops nothing.",
        [Has(Queues), Has(DeadLetters), Has(Purge)], [];
    permanent_goes_at_once,
        "A failure that will not pass is a dead letter after its first attempt, with that cause.",
        [Has(Queues), Has(DeadLetters)], [];
    crash_counts_as_attempt,
        "A message that kills its process alone is a dead letter with the cause `crashed` after `crashes_max` deaths.",
        [Has(Queues), Has(CrashSuspects)], ["T14"];
    crash_suspects_go_alone,
        "Whatever was in flight when a process died comes again one at a time, without an attempt counted.",
        [Has(Queues), Has(CrashSuspects)], [];
}

pub(super) fn redrive(b: &Bench, queue: &Name, selection: Selection) -> Op {
    Op::Redrive {
        inlet: Inlet::Queue(queue.clone()),
        selection,
        spacing: Duration::ZERO,
        bulk: BulkId::generate(b.env()),
        dry_run: false,
    }
}

pub(super) async fn bulk(b: &Bench, op: Op) -> Result<BulkReport, Stop> {
    match b.op(op).await? {
        Receipt::Bulk(report) => Ok(report),
        other => Err(Stop::Failed(format!("a bulk operation answered {other:?}"))),
    }
}

/// Puts messages and rejects each.
async fn dead(b: &Bench, queue: &Name, ids: &[&str]) -> Done {
    for id in ids {
        b.put(queue, id).await?;
        let delivery = b.await_take(queue).await?;
        b.settle(&delivery.token, reject()).await?;
    }
    Ok(())
}

async fn exactly_n_attempts_then_dead_once(b: &mut Bench) -> Done {
    let mut config = rules();
    config.retry.attempts_max = 3;
    let queue = b.queue(config).await?;
    b.put(&queue, "fails").await?;
    for attempt in 1..=3 {
        let delivery = b.await_take(&queue).await?;
        ensure_eq!(delivery.attempt, attempt, "the attempt");
        let settled = b.settle(&delivery.token, retry_after(millis(1))).await?;
        let expected = if attempt < 3 { MessageState::Delayed } else { MessageState::Dead };
        ensure_eq!(settled.state, expected, "the state after failure {attempt}");
    }
    b.put(&queue, "silent").await?;
    for attempt in 1..=3 {
        let request = LeaseRequest { lease: Some(b.brief()), ..b.request(&queue) };
        ensure_eq!(b.await_request(request).await?.attempt, attempt, "the attempt of the silent one");
    }
    b.nothing_for(&queue, b.brief() * 3).await?;
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.dead, books.waiting + books.delayed + books.leased), (2, 0), "dead and unfinished");
    let view = b.must_find(&queue, "silent").await?;
    ensure_eq!(view.causes.last().map(|c| c.failure.kind), Some(CauseKind::LeaseExpired), "its last cause");
    Ok(())
}

async fn dead_letter_keeps_body_headers_id_causes(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let data = Payload::bytes(vec![0, 159, 146, 150], "application/octet-stream")?;
    let message = b.message("m").data(data).header("tenant", "größe").correlation_id("c-1").build(b.env())?;
    b.enqueue(&queue, message.clone()).await?;
    for (error, worker) in [("first", "w1"), ("second", "w2")] {
        let request = LeaseRequest { holder: holder(worker, "p"), ..b.request(&queue) };
        let delivery = b.await_request(request).await?;
        let failure = Failure::new(CauseKind::Timeout, error).with_detail("the detail");
        b.settle(&delivery.token, Outcome::Retry { delay: RetryDelay::After(millis(1)), failure }).await?;
    }
    let last = b.await_take(&queue).await?;
    ensure_eq!(last.causes.len(), 2, "causes that a delivery carries");
    b.settle(&last.token, reject()).await?;
    let view = b.must_find(&queue, "m").await?;
    ensure_eq!(view.message, message, "the dead letter's message");
    let seen: Vec<_> = view.causes.iter().map(|c| (c.attempt, &*c.failure.error, &*c.worker)).collect();
    let expected = vec![(1, "first", "w1"), (2, "second", "w2"), (3, "will never work", "w")];
    ensure_eq!(seen, expected, "attempts, errors and workers of the causes");
    ensure_eq!(view.causes[0].failure.kind, CauseKind::Timeout, "the kind of the first cause");
    ensure_eq!(view.causes[0].failure.detail.as_deref(), Some("the detail"), "its detail");
    ensure!(view.causes.windows(2).all(|pair| pair[0].at <= pair[1].at), "the causes are out of order");
    Ok(())
}

async fn redrive_once(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let message = b.message("m").correlation_id("c-1").build(b.env())?;
    b.enqueue(&queue, message.clone()).await?;
    let delivery = b.must_take(&queue).await?;
    b.settle(&delivery.token, reject()).await?;
    let op = redrive(b, &queue, Selection::default());
    let report = bulk(b, op.clone()).await?;
    ensure_eq!((report.matched, report.done, report.finished), (1, 1, true), "what the redrive says");
    ensure_eq!(bulk(b, op.clone()).await?, report, "the repeat of the redrive");
    let again = b.await_take(&queue).await?;
    ensure_eq!(again.message, message, "the redriven message");
    ensure_eq!(again.causes.len(), 1, "causes of the redriven message");
    ensure_eq!(
        bulk(b, redrive(b, &queue, Selection::default())).await?.matched,
        0,
        "what is left to redrive"
    );
    b.settle(&again.token, reject()).await?;
    ensure_eq!(bulk(b, op).await?, report, "a late repeat of the redrive");
    b.nothing_for(&queue, b.brief()).await?;
    ensure_eq!(b.must_find(&queue, "m").await?.causes.len(), 2, "causes after the second death");
    Ok(())
}

async fn redrive_filtered(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    dead(b, &queue, &["a", "b", "c", "d"]).await?;
    let chosen = Selection { ids: vec![b.id("b"), b.id("d")], ..Selection::default() };
    let mut dry = redrive(b, &queue, chosen.clone());
    if let Op::Redrive { dry_run, .. } = &mut dry {
        *dry_run = true;
    }
    let counted = bulk(b, dry).await?;
    ensure_eq!((counted.matched, counted.done), (2, 0), "matched and done by a dry run");
    ensure_eq!(b.stats(&queue).await?.books.dead, 4, "dead letters after a dry run");
    ensure_eq!(bulk(b, redrive(b, &queue, chosen)).await?.done, 2, "redriven");
    let mut came = vec![b.await_take(&queue).await?.message.id, b.await_take(&queue).await?.message.id];
    came.sort();
    ensure_eq!(came, vec![b.id("b"), b.id("d")], "what came back");
    let none = Selection { cause: Some(CauseKind::Panicked), ..Selection::default() };
    ensure_eq!(bulk(b, redrive(b, &queue, none)).await?.matched, 0, "letters with a cause that none has");
    let one = Selection { limit: Some(1), error_contains: Some("never".into()), ..Selection::default() };
    ensure_eq!(bulk(b, redrive(b, &queue, one)).await?.done, 1, "redriven with a limit of one");
    ensure_eq!(b.await_take(&queue).await?.message.id, b.id("a"), "the oldest that fits");
    Ok(())
}

async fn edit_makes_an_edition(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let message = b.message("m").header("keep", "1").header("drop", "2").build(b.env())?;
    b.enqueue(&queue, message.clone()).await?;
    let delivery = b.must_take(&queue).await?;
    b.settle(&delivery.token, reject()).await?;
    let data = Payload::json_text(r#"{"n":9007199254740993}"#)?;
    let headers = [("drop".to_owned(), None), ("new".to_owned(), Some("3".to_owned()))].into();
    let edit = DeadEdit { data: Some(data.clone()), headers, ..DeadEdit::default() };
    let receipt = b.op(Op::EditDead { inlet: Inlet::Queue(queue.clone()), id: b.id("m"), edit }).await?;
    ensure_eq!(receipt, Receipt::Edited { edition: 2 }, "the receipt of the edit");
    let view = b.must_find(&queue, "m").await?;
    ensure_eq!(view.original.as_deref(), Some(&message), "the original");
    bulk(b, redrive(b, &queue, Selection::default())).await?;
    let again = b.await_take(&queue).await?;
    ensure_eq!((again.message.edition, &again.message.data), (2, &data), "edition and data");
    let headers: Vec<_> = again.message.headers.into_iter().collect();
    let expected = [("keep", "1"), ("new", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    ensure_eq!(headers, expected.to_vec(), "headers after the edit");
    Ok(())
}

async fn dead_letters_full_never_loses(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { dead_max: 2, ..rules() }).await?;
    for index in 0..5 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    // Three are in flight when the bound is reached: the third rejection must not lose its message.
    let flying = b.take_many(&queue, 3).await?;
    for delivery in &flying {
        let _ = b.settle(&delivery.token, reject()).await;
    }
    b.nothing_for(&queue, b.brief()).await?;
    let stats = b.stats(&queue).await?;
    ensure!(stats.stopped_dead_full, "a queue with its dead letters full does not say so");
    ensure!(stats.books.balance(), "the books do not balance: {:?}", stats.books);
    let books = stats.books;
    let kept = books.dead + books.waiting + books.delayed + books.leased;
    ensure_eq!((kept, books.done), (5, 0), "messages kept and done");
    let purge = Op::Purge {
        inlet: Inlet::Queue(queue.clone()),
        what: PurgeWhat::Dead,
        selection: Selection::default(),
        bulk: BulkId::generate(b.env()),
        dry_run: false,
    };
    bulk(b, purge).await?;
    b.await_take(&queue).await?;
    ensure!(!b.stats(&queue).await?.stopped_dead_full, "it still says that its dead letters are full");
    Ok(())
}

async fn permanent_goes_at_once(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let delivery = b.must_take(&queue).await?;
    let failure = Failure::new(CauseKind::Undecodable, "no such field");
    b.settle(&delivery.token, Outcome::Reject { failure }).await?;
    let view = b.must_find(&queue, "m").await?;
    ensure_eq!((view.state, view.attempts), (MessageState::Dead, 1), "state and attempts");
    ensure_eq!(view.causes.first().map(|c| c.failure.kind), Some(CauseKind::Undecodable), "the cause");
    Ok(())
}

async fn end_process(b: &Bench, process: &str, died: bool) -> Result<u64, Stop> {
    match b.op(Op::EndProcess { process: ProcessId(process.into()), died }).await? {
        Receipt::ProcessEnded { leases } => Ok(leases),
        other => Err(Stop::Failed(format!("the end of a process answered {other:?}"))),
    }
}

async fn crash_counts_as_attempt(b: &mut Bench) -> Done {
    let mut config = InletConfig { crashes_max: 2, ..rules() };
    config.retry.attempts_max = 100;
    let queue = b.queue(config).await?;
    b.put(&queue, "poison").await?;
    // The first death may only make it a suspect; each later one kills its process alone.
    for round in 0..4 {
        if b.must_find(&queue, "poison").await?.state == MessageState::Dead {
            break;
        }
        ensure!(round < 3, "it killed {round} processes alone and is no dead letter");
        let process = format!("p{round}");
        let request = LeaseRequest { holder: holder("w", &process), ..b.request(&queue) };
        b.await_request(request).await?;
        ensure_eq!(end_process(b, &process, true).await?, 1, "leases that ended with the process");
    }
    let view = b.must_find(&queue, "poison").await?;
    ensure_eq!(view.causes.last().map(|c| c.failure.kind), Some(CauseKind::Crashed), "its last cause");
    let crashed = view.causes.iter().filter(|c| c.failure.kind == CauseKind::Crashed).count();
    ensure_eq!(crashed, 2, "causes `crashed`, with `crashes_max` 2");
    b.put(&queue, "next").await?;
    ensure_eq!(b.await_take(&queue).await?.message.id, b.id("next"), "what is handed out after it");
    Ok(())
}

async fn crash_suspects_go_alone(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let messages = ["a", "b", "c"].map(|id| b.message(id).build(b.env()));
    let mut ops = Vec::new();
    for message in messages {
        ops.push(enqueue(&queue, message?));
    }
    b.commit(ops).await?;
    let doomed = LeaseRequest { holder: holder("w", "doomed"), count_max: 3, ..b.request(&queue) };
    let lost = b.engine().lease(doomed).await?;
    ensure_eq!(lost.len(), 3, "deliveries in flight");
    ensure_eq!(end_process(b, "doomed", true).await?, 3, "leases that ended with the process");
    for _ in 0..3 {
        let many = LeaseRequest { holder: holder("w", "heir"), count_max: 3, ..b.request(&queue) };
        let first = b.await_request(many.clone()).await?;
        ensure!(first.suspect, "{} was in flight at the death and is no suspect", first.message.id);
        ensure_eq!(first.attempt, 1, "the attempt of a suspect");
        let repeat = onward_core::RequestId::generate(b.env());
        let more = b.engine().lease(LeaseRequest { request_id: repeat, ..many }).await?;
        ensure!(more.is_empty(), "a process that holds a suspect got {} more", more.len());
        ensure!(!b.ack(&first).await?.already, "the acknowledgement of a suspect is called a repeat");
    }
    ensure_eq!(b.stats(&queue).await?.books.done, 3, "done");
    Ok(())
}
