//! Core: leases, their tokens, and answers that get lost.

use crate::bench::{PATIENCE, ack, enqueue, holder, millis, reject, release, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    Capability::{Queues, Release, SharedAttempts},
    CauseKind, Delivery, ErrorKind, InletConfig, LeaseRequest, LeaseToken, Name, Op, Outcome, RequestId,
    Result,
};
use std::time::Duration;

checks! { group "core";
    unacked_returns_after_lease,
        "A message whose holder says nothing comes again when its lease has ended, not before, as the next attempt.",
        [Has(Queues)], ["T8"];
    settle_twice_same_outcome_is_ok_other_conflicts,
        "The same settlement twice is told as a repeat; another outcome for the same lease is a conflict.",
        [Has(Queues)], ["AD14"];
    lost_settle_answer_retried,
        "A settlement whose answer was lost is repeated with what was committed beside it, and happens once.",
        [Has(Queues)], ["AD14"];
    lost_lease_answer_burns_no_attempt,
        "A repeated lease request gets the same deliveries, and counts no attempt.",
        [Has(Queues)], ["AD14"];
    stale_token_refused,
        "A lease that has ended settles, extends and keeps nothing, also when nobody has taken the message since.",
        [Has(Queues)], ["T3", "LOG19"];
    lease_extend,
        "A lease that is extended in time never ends; the message starts once, however long it runs.",
        [Has(Queues)], ["T2", "B7"];
    lease_runs_from_receipt,
        "The lease runs from the answer, not from the request: waiting for work uses none of it.",
        [Has(Queues)], ["T5"];
    lease_total_bound_holds,
        "No attempt is extended beyond the queue's `lease_total_max_ms`.",
        [Has(Queues)], [];
    attempt_survives_restart_and_other_instance,
        "Attempts are counted over restarts, crashes and other instances on the same data.",
        [Has(Queues), Has(SharedAttempts), Durable], ["AD7", "LOG17"];
}

async fn brief_take(b: &Bench, queue: &Name, lease: Duration) -> Result<Delivery, Stop> {
    b.await_request(LeaseRequest { lease: Some(lease), ..b.request(queue) }).await
}

async fn unacked_returns_after_lease(b: &mut Bench) -> Done {
    let brief = b.brief();
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let before = b.monotonic();
    let first = brief_take(b, &queue, brief).await?;
    ensure!(first.lease <= brief, "the lease lasts {:?}, longer than asked", first.lease);
    let again = b.await_take(&queue).await?;
    let held = b.monotonic() - before;
    ensure!(held >= brief, "it came again after {held:?}, within its lease of {brief:?}");
    ensure_eq!(again.message.id, first.message.id, "what came again");
    ensure_eq!(again.attempt, 2, "the attempt after a lease ended");
    let kinds: Vec<CauseKind> = again.causes.iter().map(|c| c.failure.kind).collect();
    ensure_eq!(kinds, vec![CauseKind::LeaseExpired], "the causes");
    ensure!(again.token != first.token, "two leases have one token");
    Ok(())
}

async fn settle_twice_same_outcome_is_ok_other_conflicts(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let outcomes = [ack(), reject(), retry_after(PATIENCE)];
    for (index, outcome) in outcomes.iter().enumerate() {
        b.put(&queue, &format!("m{index}")).await?;
        let delivery = b.must_take(&queue).await?;
        let first = b.settle(&delivery.token, outcome.clone()).await?;
        let repeat = b.settle(&delivery.token, outcome.clone()).await?;
        ensure!(!first.already && repeat.already, "the repeat of {outcome:?} is not told as one");
        ensure_eq!(repeat.state, first.state, "the state that a repeat answers");
        let other = &outcomes[(index + 1) % outcomes.len()];
        match b.settle(&delivery.token, other.clone()).await {
            Err(error) => ensure_eq!(error.kind(), ErrorKind::Conflict, "another outcome"),
            Ok(settled) => return Err(Stop::Failed(format!("another outcome was taken: {settled:?}"))),
        }
        ensure_eq!(
            b.must_find(&queue, &format!("m{index}")).await.map_or(first.state, |v| v.state),
            first.state,
            "the state after the conflict"
        );
    }
    Ok(())
}

async fn lost_settle_answer_retried(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let outcomes = [ack(), reject(), retry_after(millis(1))];
    for (index, outcome) in outcomes.into_iter().enumerate() {
        b.put(&queue, &format!("m{index}")).await?;
        let delivery = b.await_take(&queue).await?;
        let settle = Op::Settle { token: delivery.token.clone(), outcome };
        let prepared = b.engine().prepare(vec![settle])?;
        // The first answer is thrown away, as a broken connection does.
        drop(b.engine().submit(vec![prepared.clone()]).await?);
        let answers = b.engine().submit(vec![prepared.clone(), prepared]).await?;
        for answer in answers {
            let receipts = answer?;
            let again = receipts.iter().any(|r| matches!(r, onward_core::Receipt::Settled(s) if s.already));
            ensure!(again, "a repeated settlement answers {receipts:?}");
        }
        let books = b.stats(&queue).await?.books;
        ensure!(books.balance(), "the books do not balance after a repeat: {books:?}");
        ensure_eq!(books.accepted, index as u64 + 1, "messages accepted");
        if index == 2 {
            ensure_eq!(
                b.await_take(&queue).await?.attempt,
                2,
                "the attempt after one failure told three times"
            );
        }
    }
    Ok(())
}

async fn lost_lease_answer_burns_no_attempt(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for index in 0..3 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    let request = LeaseRequest { count_max: 2, ..b.request(&queue) };
    let first = b.engine().lease(request.clone()).await?;
    let repeat = b.engine().lease(request.clone()).await?;
    let what = |ds: &[Delivery]| -> Vec<(LeaseToken, u32)> {
        ds.iter().map(|d| (d.token.clone(), d.attempt)).collect()
    };
    ensure_eq!(first.len(), 2, "deliveries");
    ensure_eq!(what(&repeat), what(&first), "the deliveries of the repeat");
    b.ack(&first[0]).await?;
    let left = b.engine().lease(request).await?;
    let settled = left.iter().any(|d| d.token == first[0].token);
    ensure!(!settled, "a repeat hands out what was settled");
    let rest = b.take_many(&queue, 5).await?;
    ensure_eq!(
        rest.iter().map(|d| (d.message.id.clone(), d.attempt)).collect::<Vec<_>>(),
        vec![(b.id("m2"), 1)],
        "what others get"
    );
    Ok(())
}

async fn stale_token_refused(b: &mut Bench) -> Done {
    let brief = b.brief();
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let stale = brief_take(b, &queue, brief).await?;
    let owner = b.await_request(LeaseRequest { holder: holder("w", "p2"), ..b.request(&queue) }).await?;
    refused_everywhere(b, &stale).await?;
    let stats = b.stats(&queue).await?;
    ensure_eq!((stats.books.leased, stats.leases.len()), (1, 1), "leases after the stale calls");
    ensure!(!b.ack(&owner).await?.already, "the owner's acknowledgement came too late");
    refused_everywhere(b, &stale).await?;

    b.put(&queue, "n").await?;
    let alone = brief_take(b, &queue, brief).await?;
    b.pass(brief + millis(20)).await;
    refused_everywhere(b, &alone).await?;
    ensure_eq!(b.await_take(&queue).await?.attempt, 2, "the attempt after stale calls");

    let mut forged = owner.token.clone();
    forged.handle = bytes::Bytes::from_static(b"never given by anybody");
    let answer = b.settle(&forged, ack()).await;
    ensure!(answer.is_err(), "a token that was never given settles");
    Ok(())
}

async fn refused_everywhere(b: &Bench, stale: &Delivery) -> Done {
    let mut outcomes: Vec<Outcome> = vec![ack(), retry_after(millis(1)), reject()];
    if b.engine().capabilities().has(Release) {
        outcomes.push(release());
    }
    for outcome in outcomes {
        match b.settle(&stale.token, outcome.clone()).await {
            Err(error) => {
                ensure_eq!(error.kind(), ErrorKind::LeaseLost, "settling a stale lease by {outcome:?}")
            }
            Ok(settled) => return Err(Stop::Failed(format!("a stale lease settled: {settled:?}"))),
        }
    }
    let extended = b.engine().extend(vec![stale.token.clone()], PATIENCE).await?;
    match extended.as_slice() {
        [Err(error)] => ensure_eq!(error.kind(), ErrorKind::LeaseLost, "extending a stale lease"),
        other => return Err(Stop::Failed(format!("a stale lease was extended: {other:?}"))),
    }
    if b.engine().capabilities().has(onward_core::Capability::Progress) {
        let detail = onward_core::Payload::json("stale")?;
        match b.op(Op::Progress { token: stale.token.clone(), detail }).await {
            Err(error) => ensure_eq!(error.kind(), ErrorKind::LeaseLost, "progress of a stale lease"),
            Ok(_) => return Err(Stop::Failed("a stale lease kept progress".into())),
        }
    }
    Ok(())
}

async fn lease_extend(b: &mut Bench) -> Done {
    // The real clock needs room for a slow machine: it is extended every tenth of the term.
    let term = if b.clock().stepped().is_ok() { millis(200) } else { millis(1_000) };
    let queue = b.queue(rules()).await?;
    b.put(&queue, "long").await?;
    let delivery = brief_take(b, &queue, term).await?;
    let start = b.monotonic();
    while b.monotonic() - start < term * 10 / if b.clock().stepped().is_ok() { 1 } else { 4 } {
        b.nothing_for(&queue, term / 10).await?;
        let extended = b.engine().extend(vec![delivery.token.clone()], term).await?;
        match extended.as_slice() {
            [Ok(now)] => {
                ensure!(now.lease <= term && !now.lease.is_zero(), "the new term is {:?}", now.lease)
            }
            other => return Err(Stop::Failed(format!("a live lease was not extended: {other:?}"))),
        }
    }
    ensure!(!b.ack(&delivery).await?.already, "the acknowledgement is called a repeat");
    ensure_eq!(b.stats(&queue).await?.deliveries, 1, "hand-outs");
    Ok(())
}

async fn lease_runs_from_receipt(b: &mut Bench) -> Done {
    let term = millis(1_000);
    let queue = b.queue(rules()).await?;
    let request = LeaseRequest { wait: PATIENCE, lease: Some(term), ..b.request(&queue) };
    let engine = b.engine();
    let mut waiting = tokio::spawn(async move { engine.lease(request).await });
    for _ in 0..6 {
        tokio::task::yield_now().await;
        b.pass(millis(50)).await;
    }
    let message = b.message("late").build(b.env())?;
    let before = b.monotonic();
    b.commit(vec![enqueue(&queue, message)]).await?;
    let deliveries = loop {
        match futures::future::select(&mut waiting, Box::pin(b.pass(millis(1)))).await {
            futures::future::Either::Left((answer, _)) => {
                break answer.map_err(|e| Stop::Failed(e.to_string()))??;
            }
            futures::future::Either::Right(_) => tokio::task::yield_now().await,
        }
        ensure!(b.monotonic() - before < PATIENCE, "a waiting request got nothing within {PATIENCE:?}");
    };
    ensure_eq!(deliveries.len(), 1, "deliveries to the waiting request");
    ensure!(
        deliveries[0].lease > term * 3 / 4,
        "of the term {term:?} only {:?} is left",
        deliveries[0].lease
    );
    let again = b.await_take(&queue).await?;
    let held = b.monotonic() - before;
    ensure!(held >= term, "the lease of {term:?} ended after {held:?}");
    ensure_eq!(again.attempt, 2, "the attempt after the lease");
    Ok(())
}

async fn lease_total_bound_holds(b: &mut Bench) -> Done {
    let total = millis(5_000);
    let queue = b.queue(InletConfig { lease_total_max_ms: Some(5_000), ..rules() }).await?;
    b.put(&queue, "m").await?;
    let delivery = brief_take(b, &queue, millis(2_000)).await?;
    let extended = b.engine().extend(vec![delivery.token.clone()], total * 2).await?;
    match extended.as_slice() {
        [Err(error)] => ensure_eq!(error.kind(), ErrorKind::Invalid, "an extension beyond the bound"),
        other => return Err(Stop::Failed(format!("a lease was extended beyond its bound: {other:?}"))),
    }
    ensure!(!b.ack(&delivery).await?.already, "the refused extension ended the lease");
    Ok(())
}

async fn attempt_survives_restart_and_other_instance(b: &mut Bench) -> Done {
    let brief = b.brief();
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let first = b.must_take(&queue).await?;
    b.settle(&first.token, retry_after(millis(1))).await?;
    b.subject.restart().await?;
    let second = brief_take(b, &queue, brief).await?;
    ensure_eq!(second.attempt, 2, "the attempt after a restart");
    ensure_eq!(second.causes.len(), 1, "causes after a restart");
    b.subject.crash().await?;
    let third = b.await_take(&queue).await?;
    ensure_eq!(third.attempt, 3, "the attempt after a crash with the lease held");
    b.settle(&third.token, retry_after(millis(1))).await?;
    let stale = b.settle(&second.token, ack()).await;
    ensure!(stale.is_err_and(|e| e.kind() == ErrorKind::LeaseLost), "a token from before the crash settles");
    let other = b.subject.second().await?;
    let request = LeaseRequest { request_id: RequestId::generate(b.env()), ..b.request(&queue) };
    for _ in 0..1_000 {
        let request = LeaseRequest { request_id: RequestId::generate(b.env()), ..request.clone() };
        if let Some(fourth) = other.lease(request).await?.into_iter().next() {
            ensure_eq!(fourth.attempt, 4, "the attempt at another instance");
            return Ok(());
        }
        b.pass(millis(5)).await;
    }
    Err(Stop::Failed("the other instance got nothing".into()))
}
