//! What the server promises is checked, and its death loses nothing that was confirmed.

use crate::{
    own_server::OwnServer,
    support::{engine, enqueue, request},
};
use onward_core::{Durability, Engine, Env, ErrorKind, Op, Outcome, Receipt, RetryHint};
use onward_env::SystemEnv;
use onward_postgres::{PostgresEngine, PostgresOptions};
use onward_proves::proves;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::watch;

async fn try_connect(url: &str) -> onward_core::Result<PostgresEngine> {
    PostgresEngine::connect(PostgresOptions::parse(url)?, SystemEnv::shared()).await
}

#[tokio::test(flavor = "multi_thread")]
#[proves("AD1")]
#[proves("M10")]
async fn a_server_that_may_forget_what_it_confirmed_is_refused_unless_the_url_says_so() {
    for setting in ["fsync=off", "synchronous_commit=off", "full_page_writes=off"] {
        let server = OwnServer::start(&[setting]).await;
        let error = try_connect(&server.url()).await.expect_err(setting);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{setting}: {error}");
        assert!(error.mend_text().is_some_and(|mend| mend.contains("durability=volatile")), "{error}");
        let engine = try_connect(&format!("{}?durability=volatile", server.url())).await.unwrap();
        assert_eq!(engine.capabilities().durability, Durability::Memory, "the weakest that there is");
        engine.close(Duration::ZERO).await.unwrap();
    }
}

/// What a task saw confirmed.
type Seen = BTreeSet<String>;

async fn produce(engine: Arc<PostgresEngine>, mut stop: watch::Receiver<bool>) -> Seen {
    let mut confirmed = Seen::new();
    for number in 0.. {
        if *stop.borrow_and_update() {
            break;
        }
        let id = format!("m{number}");
        let ops = engine.prepare(vec![enqueue("work", &id)]).unwrap();
        match engine.commit(ops).await {
            Ok(receipts) => {
                assert!(matches!(&receipts[..], [Receipt::Accepted(_)]));
                confirmed.insert(id);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
    confirmed
}

async fn work(engine: Arc<PostgresEngine>, mut stop: watch::Receiver<bool>) -> Seen {
    let mut done = Seen::new();
    loop {
        let stopping = *stop.borrow_and_update();
        let deliveries = match engine.lease(request("work", 20)).await {
            Ok(deliveries) => deliveries,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                continue;
            }
        };
        if deliveries.is_empty() && stopping {
            return done;
        }
        for delivery in deliveries {
            let id = delivery.message.id.to_string();
            assert!(!done.contains(&id), "{id} came again after its acknowledgement was confirmed");
            let ack = Op::Settle { token: delivery.token, outcome: Outcome::Ack { result: None } };
            match engine.commit(engine.prepare(vec![ack]).unwrap()).await {
                Ok(_) => drop(done.insert(id)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[proves("AD3")]
#[proves("T15")]
async fn a_server_killed_three_times_loses_nothing_confirmed_and_brings_back_nothing_done() {
    let mut server = OwnServer::start(&[]).await;
    let engine = engine(&format!("{}?timeout_ms=3000&pool=4", server.url())).await;
    let (stop, stopping) = watch::channel(false);
    let (halt, halting) = watch::channel(false);
    let producer = tokio::spawn(produce(engine.clone(), stopping));
    let worker = tokio::spawn(work(engine.clone(), halting));
    for _ in 0..3 {
        SystemEnv.sleep(Duration::from_millis(400)).await;
        server.kill();
        server.up().await;
    }
    stop.send(true).unwrap();
    let confirmed = producer.await.unwrap();
    halt.send(true).unwrap();
    let mut done = worker.await.unwrap();
    // What a death left leased without a word: its process is told to have ended.
    let ended = Op::EndProcess { process: onward_core::ProcessId("p".into()), died: false };
    engine.commit(engine.prepare(vec![ended]).unwrap()).await.unwrap();
    let (_halt, halted) = watch::channel(true);
    done.extend(work(engine.clone(), halted).await);

    let stats = engine.stats(vec!["work".parse().unwrap()]).await.unwrap().remove(0);
    assert!(stats.books.balance(), "{:?}", stats.books);
    assert_eq!(stats.books.done, stats.books.accepted, "everything is done: {:?}", stats.books);
    // An acknowledgement whose answer was lost may have happened: those ids are done, and nobody was told.
    let lost: Vec<_> = confirmed.difference(&done).collect();
    let untold = stats.books.done as usize - done.len();
    assert!(lost.len() <= untold, "{} confirmed ids were never done: {lost:?}", lost.len() - untold);
    assert!(confirmed.len() > 10, "only {} were confirmed", confirmed.len());
    engine.close(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[proves("T51")]
#[proves("AD2")]
async fn an_answer_that_is_lost_is_unknown_and_the_repeat_tells_the_first() {
    let mut server = OwnServer::start(&[]).await;
    let engine = engine(&format!("{}?timeout_ms=2000&pool=2", server.url())).await;
    let client = crate::support::client(&server.url()).await;
    engine.commit(engine.prepare(vec![enqueue("work", "first")]).unwrap()).await.unwrap();
    // Somebody holds the table, so that the call waits while its server dies.
    client.batch_execute("begin; lock table onward.message in exclusive mode").await.unwrap();
    let waiting = {
        let (engine, ops) = (engine.clone(), engine.prepare(vec![enqueue("work", "lost")]).unwrap());
        tokio::spawn(async move { engine.commit(ops).await })
    };
    let blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    while client.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    server.kill();
    let error = waiting.await.unwrap().expect_err("its server died");
    assert_eq!((error.kind(), error.retry_hint()), (ErrorKind::Unavailable, RetryHint::Unknown), "{error}");
    server.up().await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        let receipts = engine.commit(engine.prepare(vec![enqueue("work", "lost")]).unwrap()).await.unwrap();
        answers.extend(receipts);
    }
    let duplicates =
        answers.iter().map(|r| matches!(r, Receipt::Accepted(a) if a.duplicate)).collect::<Vec<_>>();
    assert_eq!(duplicates, [false, true]);
    engine.close(Duration::ZERO).await.unwrap();
}
