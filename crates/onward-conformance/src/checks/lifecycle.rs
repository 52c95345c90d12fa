//! Lifecycle: declaring, closing, restarting, and futures that are dropped.

use crate::bench::{PATIENCE, enqueue, holder, millis, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop, twin};
use futures::FutureExt;
use onward_core::{
    Capability, Capability::Dedup, Capability::Queues, ErrorKind, Inlet, InletConfig, LeaseRequest, Name,
    RequestId, TopologyChange, TopologyDiff,
};
use std::time::Duration;

checks! { group "lifecycle";
    refused_capabilities_do_nothing,
        "Whatever the engine declares as refused is answered `Unsupported` before any effect.",
        [], ["T49"];
    declare_is_idempotent,
        "Declaring the same again changes nothing and says so; what is declared is there as it was given.",
        [Has(Queues)], [];
    redeclare_conflict_is_an_error,
        "Declaring other content is a conflict unless an update was asked for, and keeps the messages.",
        [Has(Queues)], [];
    drop_refuses_what_is_not_empty,
        "A queue is dropped when it is empty, or when its messages may go with it.",
        [Has(Queues)], [];
    undeclared_queue_says_so,
        "An enqueue to a queue that was never declared declares it with defaults and says so in its receipt.",
        [Has(Queues)], [];
    constructing_does_no_io,
        "A new engine answers what it is and how it is without a word from a server, and holds nothing.",
        [], ["AD1"];
    graceful_shutdown_settles,
        "Settlements sent before the end of `close` count; whatever was leased and not settled comes again.",
        [Has(Queues), Durable], ["B8"];
    concurrent_close,
        "Closing twice at once is safe; every call after it is answered `Closed`, and none hangs.",
        [Has(Queues)], [];
    dropped_future_is_safe,
        "A call whose future is dropped is fully done or fully absent, and its repeat with the same id is safe.",
        [Has(Queues), Has(Dedup)], [];
    restart_keeps_everything,
        "Queues, their rules, pauses, waiting, leased and dead messages are there after a restart.",
        [Has(Queues), Durable], [];
    old_tokens_stay_stale,
        "A token from before a restart settles its own lease or none, never a later one.",
        [Has(Queues), Durable], ["LOG19"];
}

async fn refused_capabilities_do_nothing(b: &mut Bench) -> Done {
    let capabilities = b.engine().capabilities();
    for capability in Capability::ALL.iter().filter(|c| !capabilities.has(**c)) {
        twin::refuses(b, Has(*capability)).await?;
    }
    Ok(())
}

async fn declare_is_idempotent(b: &mut Bench) -> Done {
    let config = InletConfig { lease_ms: 12_345, causes_max: 7, ..rules() };
    let name = b.queue(config.clone()).await?;
    ensure_eq!(b.declare(&name, config.clone(), false).await?, TopologyDiff::default(), "declaring it again");
    ensure_eq!(
        b.declare(&name, config.clone(), true).await?,
        TopologyDiff::default(),
        "updating to the same"
    );
    let inlets = b.engine().topology().await?.inlets;
    let found = inlets.into_iter().find(|(inlet, _)| *inlet == Inlet::Queue(name.clone()));
    ensure_eq!(found.map(|(_, config)| config), Some(config), "the rules as they stand");
    Ok(())
}

async fn redeclare_conflict_is_an_error(b: &mut Bench) -> Done {
    let name = b.queue(rules()).await?;
    b.put(&name, "m").await?;
    let other = InletConfig { lease_ms: 7_000, ..rules() };
    match b.declare(&name, other.clone(), false).await {
        Err(error) => ensure_eq!(error.kind(), ErrorKind::Conflict, "declaring other content"),
        Ok(diff) => {
            return Err(Stop::Failed(format!("other content was taken without being asked: {diff:?}")));
        }
    }
    let changed = b.declare(&name, other, true).await?;
    ensure!(!changed.created && !changed.changed.is_empty(), "an update answers {changed:?}");
    let delivery = b.must_take(&name).await?;
    ensure!(delivery.lease <= millis(7_000), "the lease lasts {:?}, not as updated", delivery.lease);
    let invalid = b.declare(&"check-invalid".parse()?, InletConfig { dead_max: 0, ..rules() }, false).await;
    ensure!(
        invalid.is_err_and(|e| e.kind() == ErrorKind::Invalid),
        "a queue without dead letters is declared"
    );
    Ok(())
}

async fn drop_refuses_what_is_not_empty(b: &mut Bench) -> Done {
    let name = b.queue(rules()).await?;
    b.put(&name, "m").await?;
    let inlet = Inlet::Queue(name.clone());
    let remove = |only_if_empty| TopologyChange::DropInlet { inlet: inlet.clone(), only_if_empty };
    match b.engine().declare(remove(true)).await {
        Err(error) => ensure_eq!(error.kind(), ErrorKind::Conflict, "dropping a queue with a message"),
        Ok(_) => return Err(Stop::Failed("a queue with a message was dropped as empty".into())),
    }
    b.must_take(&name).await?;
    let diff = b.engine().declare(remove(false)).await?;
    ensure!(diff.dropped, "dropping with the messages answers {diff:?}");
    let left = b.engine().topology().await?.inlets.into_iter().any(|(i, _)| i == inlet);
    ensure!(!left, "a dropped queue is still there");
    Ok(())
}

async fn undeclared_queue_says_so(b: &mut Bench) -> Done {
    let name: Name = "check-undeclared".parse()?;
    let first = b.enqueue(&name, b.message("a").build(b.env())?).await?;
    let second = b.enqueue(&name, b.message("b").build(b.env())?).await?;
    ensure_eq!((first.declared, second.declared), (true, false), "whether it was declared just now");
    ensure_eq!(b.take_many(&name, 5).await?.len(), 2, "messages there");
    Ok(())
}

async fn constructing_does_no_io(b: &mut Bench) -> Done {
    let health = b.engine().health();
    ensure!(health.readable && health.writable, "a new engine is not well: {health:?}");
    let capabilities = b.engine().capabilities();
    ensure_eq!(health.durability, capabilities.durability, "the durability that health shows");
    ensure!(!capabilities.engine.is_empty() && capabilities.limits.ops_max > 0, "{capabilities:?}");
    ensure!(b.engine().topology().await?.inlets.is_empty(), "a new engine holds something");
    Ok(())
}

async fn graceful_shutdown_settles(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for index in 0..10 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    let brief = LeaseRequest { count_max: 10, lease: Some(millis(2_000)), ..b.request(&queue) };
    let held = b.engine().lease(brief).await?;
    for delivery in &held[..6] {
        b.ack(delivery).await?;
    }
    b.subject.restart().await?;
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.done, books.accepted), (6, 10), "done and accepted after the restart");
    let mut again = Vec::new();
    for _ in 0..4 {
        again.push(b.await_take(&queue).await?.message.id);
    }
    again.sort();
    let mut expected: Vec<_> = held[6..].iter().map(|d| d.message.id.clone()).collect();
    expected.sort();
    ensure_eq!(again, expected, "what comes again");
    Ok(())
}

async fn concurrent_close(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let engine = b.engine();
    let waiting = {
        let (engine, request) = (engine.clone(), LeaseRequest { wait: PATIENCE, ..b.request(&queue) });
        tokio::spawn(async move { engine.lease(request).await })
    };
    tokio::task::yield_now().await;
    let (one, two) = futures::join!(engine.close(Duration::ZERO), engine.close(Duration::ZERO));
    one?;
    two?;
    engine.close(Duration::ZERO).await?;
    let answer = waiting.await.map_err(|e| Stop::Failed(e.to_string()))?;
    let ended = match &answer {
        Ok(deliveries) => deliveries.is_empty(),
        // Its answer may be lost with the connection, and then says so.
        Err(error) => matches!(error.kind(), ErrorKind::Closed | ErrorKind::Unavailable),
    };
    ensure!(ended, "a waiting request ends with {answer:?}");
    let message = b.message("m").build(b.env())?;
    let late = match engine.prepare(vec![enqueue(&queue, message)]) {
        Ok(prepared) => engine.commit(prepared).await.map(drop),
        Err(error) => Err(error),
    };
    ensure!(late.is_err_and(|e| e.kind() == ErrorKind::Closed), "a commit after close is not `Closed`");
    let lease = engine.lease(b.request(&queue)).await;
    ensure!(lease.is_err_and(|e| e.kind() == ErrorKind::Closed), "a lease after close is not `Closed`");
    Ok(())
}

async fn dropped_future_is_safe(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for index in 0..20 {
        let op = enqueue(&queue, b.message(&format!("m{index}")).build(b.env())?);
        let prepared = b.engine().prepare(vec![op])?;
        let engine = b.engine();
        // Polled once and dropped: whatever it began must be whole or nothing.
        let _ = engine.commit(prepared.clone()).now_or_never();
        if index % 2 == 0 {
            b.engine().commit(prepared).await?;
        }
    }
    let books = b.stats(&queue).await?.books;
    ensure!(books.accepted >= 10 && books.balance(), "the books after dropped futures: {books:?}");
    // A dropped request may have leased: its repeat gets the same, and nothing is lost.
    let request = LeaseRequest { count_max: 3, holder: holder("w", "dropped"), ..b.request(&queue) };
    let _ = b.engine().lease(request.clone()).now_or_never();
    let repeat = b.engine().lease(request.clone()).await?;
    ensure_eq!(repeat.len(), 3, "deliveries of the repeated request");
    ensure!(repeat.iter().all(|d| d.attempt == 1), "the dropped request burnt an attempt");
    let again =
        b.engine().lease(LeaseRequest { request_id: RequestId::generate(b.env()), ..request }).await?;
    ensure!(again.iter().all(|d| !repeat.iter().any(|r| r.token == d.token)), "one message is held twice");
    let books = b.stats(&queue).await?.books;
    ensure_eq!(books.leased, (repeat.len() + again.len()) as u64, "messages leased");
    Ok(())
}

async fn restart_keeps_everything(b: &mut Bench) -> Done {
    let config = InletConfig { causes_max: 3, ..rules() };
    let queue = b.queue(config.clone()).await?;
    for id in ["dead", "leased", "waiting"] {
        b.put(&queue, id).await?;
    }
    let dead = b.must_take(&queue).await?;
    b.settle(&dead.token, crate::bench::reject()).await?;
    let held = b.must_take(&queue).await?;
    let before = b.stats(&queue).await?;
    b.subject.restart().await?;
    let after = b.stats(&queue).await?;
    ensure_eq!(after.books, before.books, "the books after a restart");
    ensure_eq!(after.leases.len(), 1, "live leases after a restart");
    let inlets = b.engine().topology().await?.inlets;
    let found = inlets.into_iter().find(|(inlet, _)| *inlet == Inlet::Queue(queue.clone()));
    ensure_eq!(found.map(|(_, config)| config), Some(config), "the rules after a restart");
    ensure_eq!(b.must_find(&queue, "dead").await?.causes.len(), 1, "causes after a restart");
    ensure_eq!(b.must_take(&queue).await?.message.id, b.id("waiting"), "what is handed out");
    // The lease outlived the restart: its holder may still settle, once.
    match b.ack(&held).await {
        Ok(settled) => ensure!(!settled.already, "the first acknowledgement is called a repeat"),
        Err(error) => ensure_eq!(error.kind(), ErrorKind::LeaseLost, "settling over a restart"),
    }
    Ok(())
}

async fn old_tokens_stay_stale(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let old = b.await_request(LeaseRequest { lease: Some(b.brief()), ..b.request(&queue) }).await?;
    b.subject.crash().await?;
    let new = b.await_take(&queue).await?;
    ensure_eq!(new.message.id, old.message.id, "what comes after the crash");
    ensure!(new.token != old.token, "a token of an earlier life is given again");
    let stale = b.ack(&old).await;
    ensure!(stale.is_err_and(|e| e.kind() == ErrorKind::LeaseLost), "an old token settles a later lease");
    ensure!(!b.ack(&new).await?.already, "the new lease was settled by the old token");
    Ok(())
}
