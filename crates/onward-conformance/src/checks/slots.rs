//! Limits on handing out: live leases and rates, per inlet and per key, over processes and over a crash.

use crate::bench::{PATIENCE, holder, millis, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Answer, Bench, Clock, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    Capability::{ConcurrencyLimit, Fairness, Queues, RateLimit},
    Delivery, InletConfig, LeaseRequest, Name, Op, ProcessId, RateLimit as Rate,
};
use std::time::Duration;

checks! { group "limits";
    concurrency_limit_holds,
        "No more leases live at once than `concurrency_max`, and a lease that ends frees its slot.",
        [Has(Queues), Has(ConcurrencyLimit)], ["T12"];
    concurrency_limit_holds_over_processes,
        "The bound on live leases holds over several processes, and the end or death of one frees its slots.",
        [Has(Queues), Has(ConcurrencyLimit)], [];
    concurrency_limit_per_key_holds,
        "No more leases of one fairness key live at once than `concurrency_per_key_max`, over processes; other keys go on.",
        [Has(Queues), Has(ConcurrencyLimit), Has(Fairness)], [];
    concurrency_limit_survives_crash,
        "Leases that live on over a crash hold their slots, and free them when they end.",
        [Has(Queues), Has(ConcurrencyLimit), Durable], [];
    rate_limit_holds,
        "No more is handed out than the rate and its burst allow, over all processes.",
        [Has(Queues), Has(RateLimit)], [];
    rate_limit_per_key_holds,
        "No more of one fairness key is handed out than the rate per key allows; other keys go on.",
        [Has(Queues), Has(RateLimit), Has(Fairness)], [];
    rate_limit_survives_crash,
        "What was handed out before a crash counts against the rate after it.",
        [Has(Queues), Has(RateLimit), Durable], [];
    limit_wakes_who_waits,
        "A lease request that waits at a limit gets its message when a slot or a permit is free.",
        [Has(Queues), Has(ConcurrencyLimit), Has(RateLimit)], [];
}

fn at(b: &Bench, queue: &Name, process: &str, count_max: u32) -> LeaseRequest {
    LeaseRequest { holder: holder("w", process), count_max, ..b.request(queue) }
}

async fn put_some(b: &Bench, queue: &Name, count: u32) -> Done {
    for index in 0..count {
        b.put(queue, &format!("m{index}")).await?;
    }
    Ok(())
}

async fn put_of(b: &Bench, queue: &Name, ids: &[&str]) -> Done {
    for id in ids {
        // The id's first letter is the key.
        let message = b.message(id).fairness_key(&id[..1]).build(b.env())?;
        b.enqueue(queue, message).await?;
    }
    Ok(())
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    let mut ids: Vec<_> = deliveries.iter().map(|d| d.message.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

async fn end(b: &Bench, process: &str, died: bool) -> Done {
    Ok(b.op(Op::EndProcess { process: ProcessId(process.into()), died }).await.map(drop)?)
}

async fn concurrency_limit_holds(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { concurrency_max: Some(2), ..rules() }).await?;
    put_some(b, &queue, 5).await?;
    let brief = LeaseRequest { count_max: 5, lease: Some(b.brief()), ..b.request(&queue) };
    ensure_eq!(b.engine().lease(brief).await?.len(), 2, "leases under a limit of two");
    // Both end by themselves: their slots are free without anybody's word.
    let third = b.await_take(&queue).await?;
    let _fourth = b.await_take(&queue).await?;
    ensure!(b.take(&queue).await?.is_none(), "a third lease lives under a limit of two");
    ensure_eq!(b.stats(&queue).await?.books.leased, 2, "live leases");
    b.ack(&third).await?;
    b.await_take(&queue).await?;
    ensure!(b.take(&queue).await?.is_none(), "a third lease lives after one was settled");
    Ok(())
}

async fn concurrency_limit_holds_over_processes(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { concurrency_max: Some(3), ..rules() }).await?;
    put_some(b, &queue, 9).await?;
    let other = b.subject.second().await?;
    let mine = b.engine().lease(at(b, &queue, "p1", 2)).await?.len();
    let theirs = other.lease(at(b, &queue, "p2", 2)).await?.len();
    ensure_eq!((mine, theirs), (2, 1), "leases of two processes under a limit of three");
    for engine in [b.engine(), other.clone()] {
        ensure!(engine.lease(at(b, &queue, "p3", 2)).await?.is_empty(), "a fourth lease lives");
    }
    end(b, "p1", false).await?;
    ensure_eq!(other.lease(at(b, &queue, "p4", 2)).await?.len(), 2, "slots freed by the end of a process");
    end(b, "p4", true).await?;
    // What it held is handed out one at a time now, each alone in a process.
    for process in ["p5", "p6"] {
        ensure_eq!(other.lease(at(b, &queue, process, 1)).await?.len(), 1, "slots freed by a death");
    }
    ensure!(b.engine().lease(at(b, &queue, "p7", 1)).await?.is_empty(), "a fourth lease lives after a death");
    Ok(())
}

async fn concurrency_limit_per_key_holds(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { concurrency_per_key_max: Some(2), ..rules() }).await?;
    put_of(b, &queue, &["a1", "a2", "a3", "a4", "b1"]).await?;
    put_some(b, &queue, 3).await?;
    let other = b.subject.second().await?;
    let first = b.engine().lease(at(b, &queue, "p1", 9)).await?;
    ensure_eq!(ids(&first), vec!["a1", "a2", "b1", "m0", "m1", "m2"], "what two leases per key allow");
    ensure!(other.lease(at(b, &queue, "p2", 9)).await?.is_empty(), "a third lease of a key lives");
    put_of(b, &queue, &["b2", "b3"]).await?;
    let second = other.lease(at(b, &queue, "p2", 9)).await?;
    ensure_eq!(ids(&second), vec!["b2"], "what another key's second slot allows");
    if let Some(delivery) = first.iter().find(|d| d.message.id == b.id("a1")) {
        b.ack(delivery).await?;
    }
    let third = b.await_request(at(b, &queue, "p3", 9)).await?;
    ensure_eq!(third.message.id, b.id("a3"), "what a settled lease's slot allows");
    end(b, "p2", false).await?;
    let fourth = b.engine().lease(at(b, &queue, "p4", 9)).await?;
    ensure_eq!(ids(&fourth), vec!["b2"], "what the end of a process allows");
    Ok(())
}

async fn concurrency_limit_survives_crash(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { concurrency_max: Some(2), ..rules() }).await?;
    put_some(b, &queue, 5).await?;
    ensure_eq!(b.engine().lease(at(b, &queue, "p1", 5)).await?.len(), 2, "leases under a limit of two");
    b.subject.crash().await?;
    b.nothing_for(&queue, b.brief()).await?;
    end(b, "p1", false).await?;
    let after = b.engine().lease(at(b, &queue, "p2", 5)).await?.len();
    ensure_eq!(after, 2, "leases after those of before the crash have ended");
    Ok(())
}

async fn rate_limit_holds(b: &mut Bench) -> Done {
    let rate = Some(Rate { count: 1, per_ms: 200, burst: 2 });
    let queue = b.queue(InletConfig { rate, ..rules() }).await?;
    put_some(b, &queue, 6).await?;
    let other = b.subject.second().await?;
    let start = b.monotonic();
    let mut taken = b.take_many(&queue, 6).await?.len() as u32;
    ensure!(taken >= 1, "nothing is handed out under a rate");
    taken += other.lease(at(b, &queue, "p-other", 6)).await?.len() as u32;
    while taken < 5 {
        b.await_request(at(b, &queue, &format!("p{taken}"), 1)).await?;
        taken += 1;
    }
    // Two at once, then one each 200 ms: the fifth one not before 600 ms. Some room for rounding of buckets.
    let took = b.monotonic() - start;
    ensure!(took >= millis(595), "{taken} were handed out within {took:?}");
    Ok(())
}

async fn rate_limit_per_key_holds(b: &mut Bench) -> Done {
    let per_ms = 600_000;
    let rate_per_key = Some(Rate { count: 1, per_ms, burst: 1 });
    let queue = b.queue(InletConfig { rate_per_key, ..rules() }).await?;
    put_of(b, &queue, &["a1", "a2", "b1"]).await?;
    put_some(b, &queue, 2).await?;
    let mut came = b.take_many(&queue, 9).await?;
    came.extend(b.take_many(&queue, 9).await?);
    ensure_eq!(ids(&came), vec!["a1", "b1", "m0", "m1"], "what one hand-out per key allows");
    for delivery in &came {
        b.ack(delivery).await?;
    }
    ensure!(b.take(&queue).await?.is_none(), "a settled lease gives its permit back");
    if b.clock().stepped().is_ok() {
        b.pass(millis(per_ms)).await;
        ensure_eq!(ids(&b.take_many(&queue, 9).await?), vec!["a2"], "what comes when the permit is back");
    }
    Ok(())
}

async fn rate_limit_survives_crash(b: &mut Bench) -> Done {
    let per = Duration::from_secs(10);
    let rate = Some(Rate { count: 1, per_ms: per.as_millis() as u64, burst: 2 });
    let queue = b.queue(InletConfig { rate, ..rules() }).await?;
    put_some(b, &queue, 9).await?;
    let start = b.monotonic();
    let before = b.take_many(&queue, 9).await?.len() as u128;
    b.subject.crash().await?;
    let after = b.take_many(&queue, 9).await?.len() as u128;
    let allowed = 2 + (b.monotonic() - start).as_micros() / per.as_micros();
    ensure!(before + after <= allowed, "{before} and, after a crash, {after} came where {allowed} may");
    Ok(())
}

/// What a request gets that waits already; on a stepped clock no time passes meanwhile.
async fn wakes(
    b: &Bench,
    mut waiting: tokio::task::JoinHandle<onward_core::Result<Vec<Delivery>>>,
) -> Answer<u64> {
    const LOOKS: u32 = 5_000;
    let look = match b.clock() {
        Clock::Stepped(_) => Duration::ZERO,
        Clock::Real(_) => millis(1),
    };
    for _ in 0..LOOKS {
        match futures::future::select(&mut waiting, Box::pin(b.pass(look))).await {
            futures::future::Either::Left((answer, _)) => {
                let deliveries = answer.map_err(|e| Stop::Failed(e.to_string()))??;
                return Ok(deliveries.len() as u64);
            }
            futures::future::Either::Right(_) => tokio::task::yield_now().await,
        }
    }
    Err(Stop::Failed("a request that waits at a limit is not woken".into()))
}

async fn limit_wakes_who_waits(b: &mut Bench) -> Done {
    let wait = |b: &Bench, queue: &Name| {
        let (engine, request) = (b.engine(), LeaseRequest { wait: PATIENCE, ..at(b, queue, "p-waits", 1) });
        tokio::spawn(async move { engine.lease(request).await })
    };
    for config in [
        InletConfig { concurrency_max: Some(1), ..rules() },
        InletConfig { concurrency_per_key_max: Some(1), ..rules() },
    ] {
        let queue = b.queue(config).await?;
        put_of(b, &queue, &["a1", "a2"]).await?;
        let held = b.must_take(&queue).await?;
        let waiting = wait(b, &queue);
        b.pass(millis(20)).await;
        ensure!(!waiting.is_finished(), "a request does not wait at a limit");
        b.ack(&held).await?;
        ensure_eq!(wakes(b, waiting).await?, 1, "deliveries when a slot is free");
    }
    let rate = Rate { count: 1, per_ms: 500, burst: 1 };
    for config in
        [InletConfig { rate: Some(rate), ..rules() }, InletConfig { rate_per_key: Some(rate), ..rules() }]
    {
        let queue = b.queue(config).await?;
        put_of(b, &queue, &["a1", "a2"]).await?;
        b.must_take(&queue).await?;
        let waiting = wait(b, &queue);
        b.pass(millis(20)).await;
        ensure!(!waiting.is_finished(), "a request does not wait at a rate");
        b.pass(millis(500)).await;
        ensure_eq!(wakes(b, waiting).await?, 1, "deliveries when a permit is free");
    }
    Ok(())
}
