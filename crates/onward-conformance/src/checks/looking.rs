//! What is seen and kept beside the work: browsing, books, progress, results, purge, hints.

use super::retry_dead::bulk;
use crate::bench::{PATIENCE, holder, millis, reject, retry_after, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has, Stop};
use futures::{StreamExt, future::Either};
use onward_core::{
    BulkId,
    Capability::{Browse, Expiry, Progress, Purge, Queues, Results, Watch},
    FindBy, Inlet, InletConfig, Interest, LeaseRequest, MessageQuery, MessageState, Op, Outcome, Payload,
    PurgeWhat, Selection,
};

checks! { group "looking";
    browse_hands_out_nothing,
        "Finding by id, state, correlation and key shows every message once, page by page, and hands nothing out.",
        [Has(Queues), Has(Browse)], ["T54"];
    books_balance,
        "At every moment what was accepted is all accounted for.",
        [Has(Queues), Has(Expiry), Has(Purge)], ["L4"];
    leases_are_shown,
        "Every live lease is shown with its holder, its attempt and its term.",
        [Has(Queues)], [];
    progress_reaches_next_attempt,
        "What an attempt left as progress comes with the next one.",
        [Has(Queues), Has(Progress)], [];
    result_is_kept,
        "The result of a finished message is found by its id, as long as the queue keeps results.",
        [Has(Queues), Has(Results), Has(Browse)], [];
    purge_by_selection,
        "A purge removes what its selection names, once, and counts it; a dry run only counts.",
        [Has(Queues), Has(Purge)], ["T30"];
    hint_or_poll,
        "A hint comes when work does, and without it a poll finds the work all the same.",
        [Has(Queues), Has(Watch)], [];
    several_inlets_share_by_weight,
        "A request for several inlets is served from all that have work, by weight.",
        [Has(Queues)], [];
}

async fn page_through(b: &Bench, inlet: &Inlet, by: FindBy) -> Result<Vec<String>, Stop> {
    let (mut ids, mut after) = (Vec::new(), None);
    for _ in 0..20 {
        let query = MessageQuery { inlet: inlet.clone(), by: by.clone(), after, limit: 3 };
        let page = b.engine().find(query).await?;
        ensure!(page.items.len() <= 3, "a page of at most 3 has {}", page.items.len());
        ids.extend(page.items.into_iter().map(|v| v.message.id.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            return Ok(ids);
        }
    }
    Err(Stop::Failed("the pages have no end".into()))
}

async fn browse_hands_out_nothing(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let inlet = Inlet::Queue(queue.clone());
    let mut expected = Vec::new();
    for index in 0..10 {
        let id = format!("m{index}");
        let message = b.message(&id).correlation_id("c").header("n", &index.to_string()).build(b.env())?;
        b.enqueue(&queue, message).await?;
        expected.push(id);
    }
    for _ in 0..2 {
        let waiting = page_through(b, &inlet, FindBy::State(MessageState::Waiting)).await?;
        ensure_eq!(waiting, expected, "waiting messages, oldest first");
    }
    let mut correlated = page_through(b, &inlet, FindBy::Correlation("c".into())).await?;
    correlated.sort();
    ensure_eq!(correlated, expected, "messages of one correlation id");
    let none = page_through(b, &inlet, FindBy::Correlation("d".into())).await?;
    ensure!(none.is_empty(), "messages of a correlation id that none has: {none:?}");
    ensure!(b.find(&queue, "nobody").await?.is_none(), "an id that was never there is found");
    let dead = b.must_take(&queue).await?;
    ensure_eq!(dead.attempt, 1, "the attempt after browsing");
    b.settle(&dead.token, reject()).await?;
    let letters = page_through(b, &inlet, FindBy::State(MessageState::Dead)).await?;
    ensure_eq!(letters, vec![dead.message.id.as_str().to_owned()], "dead letters found");
    ensure_eq!(b.stats(&queue).await?.deliveries, 1, "hand-outs");
    Ok(())
}

async fn books_balance(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let inlet = Inlet::Queue(queue.clone());
    for index in 0..6 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    b.enqueue(&queue, b.message("later").delay(PATIENCE * 10).build(b.env())?).await?;
    b.enqueue(&queue, b.message("expires").ttl(millis(40)).build(b.env())?).await?;
    let held = b.take_many(&queue, 4).await?;
    b.ack(&held[0]).await?;
    b.settle(&held[1].token, reject()).await?;
    b.settle(&held[2].token, retry_after(PATIENCE * 10)).await?;
    b.pass(millis(60)).await;
    let purge = purge(b, inlet, Selection { ids: vec![b.id("m5")], ..Selection::default() }, false);
    bulk(b, purge).await?;
    let stats = b.stats(&queue).await?;
    let books = stats.books;
    ensure!(stats.approximate || books.balance(), "the books do not balance: {books:?}");
    let seen = (books.accepted, books.done, books.dead, books.leased, books.delayed);
    ensure_eq!(seen, (8, 1, 1, 1, 2), "accepted, done, dead, leased, delayed");
    ensure_eq!((books.waiting, books.expired, books.purged), (1, 1, 1), "waiting, expired, purged");
    ensure_eq!(b.stats(&queue).await?.books, books, "the books of a moment later");
    Ok(())
}

async fn leases_are_shown(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let request = LeaseRequest { holder: holder("anna", "p7"), lease: Some(PATIENCE), ..b.request(&queue) };
    let delivery = b.await_request(request).await?;
    let leases = b.stats(&queue).await?.leases;
    ensure_eq!(leases.len(), 1, "leases shown");
    let lease = &leases[0];
    ensure_eq!((&lease.id, lease.attempt), (&delivery.message.id, 1), "message and attempt");
    ensure_eq!(lease.holder, holder("anna", "p7"), "the holder");
    ensure!(lease.until.since(lease.since) <= PATIENCE, "the term is longer than asked");
    b.ack(&delivery).await?;
    ensure!(b.stats(&queue).await?.leases.is_empty(), "a settled lease is shown");
    Ok(())
}

async fn progress_reaches_next_attempt(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "m").await?;
    let first = b.must_take(&queue).await?;
    ensure!(first.progress.is_none(), "a first attempt has progress");
    for step in ["a third", "two thirds"] {
        let detail = Payload::json(step)?;
        b.op(Op::Progress { token: first.token.clone(), detail }).await?;
    }
    b.settle(&first.token, retry_after(millis(1))).await?;
    let second = b.await_take(&queue).await?;
    ensure_eq!(second.progress, Some(Payload::json("two thirds")?), "the progress of the second attempt");
    Ok(())
}

async fn result_is_kept(b: &mut Bench) -> Done {
    let queue = b.queue(InletConfig { result_retention_ms: 60_000, ..rules() }).await?;
    b.put(&queue, "m").await?;
    let delivery = b.must_take(&queue).await?;
    let result = Payload::json_text(r#"{"total": 12345678901234567890}"#)?;
    b.settle(&delivery.token, Outcome::Ack { result: Some(result.clone()) }).await?;
    let view = b.must_find(&queue, "m").await?;
    ensure_eq!((view.state, view.result), (MessageState::Done, Some(result)), "state and result");
    Ok(())
}

fn purge(b: &Bench, inlet: Inlet, selection: Selection, dry_run: bool) -> Op {
    Op::Purge { inlet, what: PurgeWhat::Waiting, selection, bulk: BulkId::generate(b.env()), dry_run }
}

async fn purge_by_selection(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let inlet = Inlet::Queue(queue.clone());
    for index in 0..5 {
        b.put(&queue, &format!("m{index}")).await?;
    }
    let chosen = Selection { ids: vec![b.id("m1"), b.id("m3"), b.id("none")], ..Selection::default() };
    let counted = bulk(b, purge(b, inlet.clone(), chosen.clone(), true)).await?;
    ensure_eq!((counted.matched, counted.done), (2, 0), "matched and done by a dry run");
    let op = purge(b, inlet, chosen, false);
    ensure_eq!(bulk(b, op.clone()).await?.done, 2, "purged");
    ensure_eq!(bulk(b, op).await?.done, 2, "what the repeat of the purge answers");
    let left: Vec<_> = b.take_many(&queue, 9).await?.into_iter().map(|d| d.message.id.to_string()).collect();
    ensure_eq!(left, vec!["m0", "m2", "m4"], "what is left");
    ensure_eq!(b.stats(&queue).await?.books.purged, 2, "purged messages counted");
    Ok(())
}

async fn hint_or_poll(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let engine = b.engine();
    let mut hints = engine.watch(Interest::Inlets(vec![Inlet::Queue(queue.clone())]));
    // The first poll is what subscribes; hints may come late, merged or never, so time bounds the wait.
    let mut next = Box::pin(async move { hints.next().await.is_some() });
    let _ = futures::poll!(&mut next);
    b.put(&queue, "m").await?;
    let start = b.monotonic();
    let mut hinted = None;
    while hinted.is_none() && b.monotonic() - start < millis(2_000) {
        match futures::future::select(&mut next, Box::pin(b.pass(millis(5)))).await {
            Either::Left((came, _)) => hinted = Some(came),
            Either::Right(_) => tokio::task::yield_now().await,
        }
    }
    ensure!(hinted != Some(false), "the hints of an open engine ended");
    b.must_take(&queue).await?;
    Ok(())
}

async fn several_inlets_share_by_weight(b: &mut Bench) -> Done {
    let (one, two, empty) = (b.queue(rules()).await?, b.queue(rules()).await?, b.queue(rules()).await?);
    for index in 0..40 {
        b.put(&one, &format!("one{index}")).await?;
        b.put(&two, &format!("two{index}")).await?;
    }
    let weighted = |queue: &onward_core::Name, weight| onward_core::WeightedInlet {
        inlet: Inlet::Queue(queue.clone()),
        weight,
    };
    let inlets = vec![weighted(&empty, 5), weighted(&one, 3), weighted(&two, 1)];
    let mut counts = (0u32, 0u32);
    for turn in 0..40 {
        let request = LeaseRequest {
            inlets: inlets.clone(),
            holder: holder("w", &format!("p{turn}")),
            ..b.request(&one)
        };
        match b.engine().lease(request).await?.first() {
            Some(delivery) if delivery.token.inlet == Inlet::Queue(one.clone()) => counts.0 += 1,
            Some(_) => counts.1 += 1,
            None => return Err(Stop::Failed("nothing came although two inlets have work".into())),
        }
    }
    ensure!(counts.0 > counts.1, "of 40 the weights 3 and 1 got {counts:?}");
    ensure!(counts.1 > 0, "the lighter inlet got nothing");
    Ok(())
}
