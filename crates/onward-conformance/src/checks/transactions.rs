//! Commits across messages and records: all or nothing, with conditions.

use super::records::{get, put};
use crate::bench::{ack, enqueue, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Atomic, Need::Has, Stop};
use onward_core::{
    AtomicScope::Store,
    Capability::{Queues, Records},
    ErrorKind, Guarded, InletConfig, LeaseRequest, Op, RecordExpect, RecordKey,
};
use onward_patterns::inbox::{Once, REMEMBER_DEFAULT, once};

checks! { group "transactions";
    aborted_invisible,
        "A commit with one operation that fails leaves nothing of the others, whatever stood before or after it.",
        [Has(Queues), Has(Records), Atomic(Store)], [];
    settle_and_publish_atomic,
        "Acknowledgement, result message and record are one commit: all of them or none.",
        [Has(Queues), Has(Records), Atomic(Store)], ["G4"];
    guard_refuses_the_whole,
        "A condition on a record or on a lease that does not hold refuses the whole commit as a conflict or a lost lease.",
        [Has(Queues), Has(Records), Atomic(Store)], [];
    conditions_see_earlier_operations,
        "An operation sees what the earlier ones of its commit did.",
        [Has(Records), Atomic(Store)], [];
    submit_spoils_no_other,
        "Of many commits sent together each has its own result; one that fails spoils none.",
        [Has(Queues), Has(Records)], ["LOG15"];
    inbox_effect_once,
        "An effect committed with its own processed-record happens once, however often its message comes.",
        [Has(Queues), Has(Records), Atomic(Store)], ["G7"];
}

async fn aborted_invisible(b: &mut Bench) -> Done {
    let full = b.queue(InletConfig { depth_max: 1, ..rules() }).await?;
    let queue = b.queue(rules()).await?;
    b.put(&full, "fills").await?;
    b.put(&queue, "held").await?;
    let held = b.must_take(&queue).await?;
    let settle = Op::Settle { token: held.token.clone(), outcome: ack() };
    let fails = enqueue(&full, b.message("fails").build(b.env())?);
    let message = enqueue(&queue, b.message("ghost").build(b.env())?);
    let record = put("check/ghost", "v", RecordExpect::Any)?;
    match b.commit(vec![message, record, settle, fails]).await {
        Err(error) => ensure_eq!(error.kind(), ErrorKind::Full, "the commit's error"),
        Ok(_) => return Err(Stop::Failed("a commit with an operation that can't be was accepted".into())),
    }
    ensure!(get(b, "check/ghost").await?.is_none(), "a record of an aborted commit is there");
    ensure!(b.take(&queue).await?.is_none(), "a message of an aborted commit was handed out");
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.accepted, books.done, books.leased), (1, 0, 1), "accepted, done, leased");
    // Its id is not remembered, and its settlement was not made.
    b.put(&queue, "ghost").await?;
    ensure_eq!(b.must_take(&queue).await?.message.id, b.id("ghost"), "what comes after the abort");
    ensure!(!b.ack(&held).await?.already, "an aborted settlement counts");
    Ok(())
}

async fn settle_and_publish_atomic(b: &mut Bench) -> Done {
    let (work, results) = (b.queue(rules()).await?, b.queue(rules()).await?);
    b.put(&work, "m").await?;
    let stale = b.await_request(LeaseRequest { lease: Some(b.brief()), ..b.request(&work) }).await?;
    let live = b.await_take(&work).await?;
    let ops = |token: &onward_core::LeaseToken| -> onward_core::Result<Vec<Op>> {
        Ok(vec![
            enqueue(&results, b.message("result").build(b.env())?),
            put("check/result", "done", RecordExpect::Any)?,
            Op::Settle { token: token.clone(), outcome: ack() },
        ])
    };
    let lost = b.commit(ops(&stale.token)?).await;
    ensure!(
        lost.is_err_and(|e| e.kind() == ErrorKind::LeaseLost),
        "effects under a stale lease are committed"
    );
    ensure!(b.take(&results).await?.is_none(), "the result of a stale lease is there");
    b.commit(ops(&live.token)?).await?;
    ensure_eq!(b.must_take(&results).await?.message.id, b.id("result"), "the result");
    ensure!(get(b, "check/result").await?.is_some(), "the record of the commit is not there");
    ensure_eq!(b.stats(&work).await?.books.done, 1, "done");
    Ok(())
}

async fn guard_refuses_the_whole(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let key = RecordKey::try_from("check/guard")?;
    let guarded = |expect| -> onward_core::Result<Vec<Op>> {
        let guard = Op::Guard(Guarded::Record { key: key.clone(), expect });
        Ok(vec![guard, enqueue(&queue, b.message("m").build(b.env())?)])
    };
    let refused = b.commit(guarded(RecordExpect::Present)?).await;
    ensure!(
        refused.is_err_and(|e| e.kind() == ErrorKind::Conflict),
        "a guard that does not hold lets through"
    );
    ensure!(b.take(&queue).await?.is_none(), "a message behind a guard is there");
    b.commit(guarded(RecordExpect::Absent)?).await?;
    let held = b.await_request(LeaseRequest { lease: Some(b.brief()), ..b.request(&queue) }).await?;
    let fenced = |value: &str| -> onward_core::Result<Vec<Op>> {
        let guard = Op::Guard(Guarded::Lease { token: held.token.clone() });
        Ok(vec![guard, put("check/fenced", value, RecordExpect::Any)?])
    };
    let _owner = b.await_take(&queue).await?;
    let lost = b.commit(fenced("stale")?).await;
    ensure!(
        lost.is_err_and(|e| e.kind() == ErrorKind::LeaseLost),
        "a write fenced by a stale lease is committed"
    );
    ensure!(get(b, "check/fenced").await?.is_none(), "a write fenced by a stale lease is there");
    Ok(())
}

async fn conditions_see_earlier_operations(b: &mut Bench) -> Done {
    let ops =
        vec![put("check/own", "1", RecordExpect::Absent)?, put("check/own", "2", RecordExpect::Present)?];
    b.commit(ops).await?;
    let value = get(b, "check/own").await?.map(|r| r.value);
    ensure_eq!(value.as_deref(), Some(&b"2"[..]), "the value after two writes of one commit");
    let twice = vec![put("check/x", "1", RecordExpect::Absent)?, put("check/x", "2", RecordExpect::Absent)?];
    let refused = b.commit(twice).await;
    ensure!(
        refused.is_err_and(|e| e.kind() == ErrorKind::Conflict),
        "a condition does not see its own commit"
    );
    ensure!(get(b, "check/x").await?.is_none(), "a refused commit left a record");
    Ok(())
}

async fn submit_spoils_no_other(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let mut commits = Vec::new();
    for index in 0..9 {
        let op = match index % 3 {
            1 => put("check/never", "v", RecordExpect::Present)?,
            _ => enqueue(&queue, b.message(&format!("m{index}")).build(b.env())?),
        };
        commits.push(b.engine().prepare(vec![op])?);
    }
    let results = b.engine().submit(commits).await?;
    let went: Vec<bool> = results.iter().map(Result::is_ok).collect();
    ensure_eq!(went, [true, false, true].repeat(3), "which of the commits went through");
    let kinds = results.into_iter().filter_map(Result::err).map(|e| e.kind());
    ensure!(kinds.into_iter().all(|kind| kind == ErrorKind::Conflict), "a failed one is no conflict");
    ensure_eq!(b.take_many(&queue, 20).await?.len(), 6, "messages there");
    Ok(())
}

async fn inbox_effect_once(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let mut done = Vec::new();
    for id in ["first", "second", "third"] {
        b.put(&queue, id).await?;
        let delivery = b.await_take(&queue).await?;
        let effect = put(&format!("check/effect/{id}"), "v", RecordExpect::Any)?;
        done.push(once(&*b.engine(), &delivery, "order-1", REMEMBER_DEFAULT, vec![effect]).await?);
    }
    ensure_eq!(done, [Once::Now, Once::Before, Once::Before], "how three messages of one key were processed");
    ensure!(get(b, "check/effect/first").await?.is_some(), "the effect is not there");
    ensure!(get(b, "check/effect/second").await?.is_none(), "a second effect is there");
    ensure_eq!(b.stats(&queue).await?.books.done, 3, "messages that are done");
    stale_does_nothing(b).await
}

/// An effect under a lease that ended is refused, and its key is not remembered.
async fn stale_does_nothing(b: &Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let stale = b.must_take(&queue).await?;
    b.settle(&stale.token, retry_after(crate::bench::millis(1))).await?;
    let effect = || put("check/effect/m", "v", RecordExpect::Any);
    match once(&*b.engine(), &stale, "k", REMEMBER_DEFAULT, vec![effect()?]).await {
        Err(error) => ensure_eq!(error.kind(), ErrorKind::LeaseLost, "an effect under a stale lease"),
        Ok(done) => return Err(Stop::Failed(format!("an effect under a stale lease is done: {done:?}"))),
    }
    ensure!(get(b, "check/effect/m").await?.is_none(), "an effect of a stale lease is there");
    let next = b.await_take(&queue).await?;
    let done = once(&*b.engine(), &next, "k", REMEMBER_DEFAULT, vec![effect()?]).await?;
    ensure_eq!(done, Once::Now, "how the next attempt was processed");
    Ok(())
}
