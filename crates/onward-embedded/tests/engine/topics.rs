//! Topics and subscriptions: what the conformance suite does not look at.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;
use std::{sync::Arc, time::Duration};

fn topic() -> Name {
    "orders".parse().unwrap()
}

fn sub(name: &str) -> Inlet {
    Inlet::subscription(topic(), name).unwrap()
}

async fn declare_topic(bench: &Bench, config: TopicConfig) {
    let change = TopologyChange::Topic { name: topic(), config, update: true };
    bench.engine.declare(change).await.unwrap();
}

async fn subscribe(bench: &Bench, name: &str, config: InletConfig, filter: Filter) -> TopologyDiff {
    let change = TopologyChange::Subscription {
        topic: topic(),
        name: name.into(),
        config: Box::new(config),
        filter,
        start: StartFrom::Now,
        update: true,
    };
    bench.engine.declare(change).await.unwrap()
}

async fn publish(bench: &Bench, message: MessageBuilder) -> Result<Accepted> {
    let message = Box::new(message.build(&*bench.env)?);
    match bench.one(Op::Publish { topic: topic(), message }).await? {
        Receipt::Accepted(accepted) => Ok(accepted),
        other => panic!("{other:?}"),
    }
}

fn request(bench: &Bench, name: &str) -> LeaseRequest {
    LeaseRequest::one(sub(name), holder("p1"), RequestId::generate(&*bench.env))
}

async fn lease(bench: &Bench, name: &str, count: u32) -> Vec<Delivery> {
    bench.engine.lease(LeaseRequest { count_max: count, ..request(bench, name) }).await.unwrap()
}

async fn stats(bench: &Bench, name: &str) -> Stats {
    bench.engine.stats(vec![sub(name)]).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_request_that_waits_at_a_subscription_is_woken_by_a_publish() {
    let bench = Arc::new(Bench::new());
    declare_topic(&bench, TopicConfig::default()).await;
    subscribe(&bench, "first", InletConfig::default(), Filter::default()).await;
    subscribe(&bench, "idle", InletConfig::default(), Filter::default()).await;
    let waiting = bench.engine.lease(LeaseRequest { wait: secs(30), ..request(&bench, "first") });
    let published = async {
        tokio::task::yield_now().await;
        publish(&bench, bench.message("a")).await.unwrap();
    };
    let (got, ()) = tokio::join!(waiting, published);
    assert_eq!(got.unwrap()[0].message.id.as_str(), "a");
}

#[tokio::test]
async fn a_publish_to_an_unknown_topic_declares_it_unless_the_engine_is_strict() {
    let bench = Bench::new();
    assert!(publish(&bench, bench.message("a")).await.unwrap().declared);
    assert!(!publish(&bench, bench.message("b")).await.unwrap().declared);
    let strict =
        Bench::with(onward_embedded::Options { strict: true, manual_clock: true, ..Default::default() });
    assert_eq!(kind(publish(&strict, strict.message("a")).await), ErrorKind::NotFound);
}

#[tokio::test]
async fn two_publishes_of_one_commit_see_each_other() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig::default()).await;
    subscribe(&bench, "first", InletConfig::default(), Filter::default()).await;
    let message = Box::new(bench.message("a").build(&*bench.env).unwrap());
    let op = Op::Publish { topic: topic(), message };
    let receipts = bench.commit(vec![op.clone(), op]).await.unwrap();
    let duplicates: Vec<bool> =
        receipts.iter().map(|r| matches!(r, Receipt::Accepted(a) if a.duplicate)).collect();
    assert_eq!(duplicates, [false, true]);
    assert_eq!(lease(&bench, "first", 5).await.len(), 1);
}

#[tokio::test]
async fn without_retention_a_topic_keeps_what_the_slowest_has_not_reached() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig::default()).await;
    publish(&bench, bench.message("nobody")).await.unwrap();
    let kept = async || bench.engine.topology().await.unwrap().kept[0].messages;
    assert_eq!(kept().await, 0, "nobody is to get it");
    subscribe(&bench, "quick", InletConfig::default(), Filter::default()).await;
    subscribe(&bench, "slow", InletConfig::default(), Filter::default()).await;
    for index in 0..10 {
        publish(&bench, bench.message(&format!("m{index}"))).await.unwrap();
    }
    assert_eq!(lease(&bench, "quick", 10).await.len(), 10);
    assert_eq!(kept().await, 10);
    assert_eq!(lease(&bench, "slow", 1).await.len(), 1);
    assert_eq!(kept().await, 0, "what is in hand is not the topic's any more");
    publish(&bench, bench.message("last")).await.unwrap();
    let drop_slow = TopologyChange::DropInlet { inlet: sub("slow"), only_if_empty: false };
    bench.engine.declare(drop_slow).await.unwrap();
    assert_eq!((kept().await, lease(&bench, "quick", 10).await.len()), (1, 1));
    assert_eq!(kept().await, 0);
}

#[tokio::test]
#[proves("C4")]
async fn a_subscription_that_sheds_passes_over_all_but_the_newest() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig::default()).await;
    let config = InletConfig { depth_max: 3, overflow: Overflow::ShedLowest, ..InletConfig::default() };
    subscribe(&bench, "sheds", config, Filter::default()).await;
    for index in 0..10 {
        publish(&bench, bench.message(&format!("m{index}"))).await.unwrap();
    }
    let ids: Vec<_> =
        lease(&bench, "sheds", 10).await.iter().map(|d| d.message.id.as_str().to_owned()).collect();
    assert_eq!(ids, ["m7", "m8", "m9"]);
    let stats = stats(&bench, "sheds").await;
    assert_eq!((stats.books.accepted, stats.books.shed, stats.books.leased), (10, 7, 3));
    assert!(stats.books.balance());
}

#[tokio::test]
async fn a_topic_at_its_bound_refuses_and_takes_again_once_somebody_has_caught_up() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig { depth_max: 2, ..TopicConfig::default() }).await;
    subscribe(&bench, "slow", InletConfig::default(), Filter::default()).await;
    publish(&bench, bench.message("a")).await.unwrap();
    publish(&bench, bench.message("b")).await.unwrap();
    let refused = publish(&bench, bench.message("c")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert!(refused.mend_text().unwrap().contains("retention"));
    lease(&bench, "slow", 1).await;
    publish(&bench, bench.message("c")).await.unwrap();
}

#[tokio::test]
async fn a_filter_by_header_skips_many_without_a_worker_waiting_for_each() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig::default()).await;
    let filter = Filter { headers: [("region".into(), "eu".into())].into(), ..Filter::default() };
    subscribe(&bench, "eu", InletConfig::default(), filter).await;
    for index in 0..500 {
        publish(&bench, bench.message(&format!("m{index}"))).await.unwrap();
    }
    publish(&bench, bench.message("eu").header("region", "eu")).await.unwrap();
    let got = lease(&bench, "eu", 1).await;
    assert_eq!(got[0].message.id.as_str(), "eu");
    let stats = stats(&bench, "eu").await;
    assert_eq!((stats.books.accepted, stats.lag.unwrap().messages), (1, 0));
}

#[tokio::test]
async fn a_purge_of_all_reaches_what_was_not_taken_yet() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig::default()).await;
    subscribe(&bench, "first", InletConfig { depth_max: 5, ..InletConfig::default() }, Filter::default())
        .await;
    for index in 0..50 {
        publish(&bench, bench.message(&format!("m{index}"))).await.unwrap();
    }
    let purge = |dry_run| Op::Purge {
        inlet: sub("first"),
        what: PurgeWhat::Waiting,
        selection: Selection::default(),
        bulk: BulkId::generate(&*bench.env),
        dry_run,
    };
    let report = |matched, done| Receipt::Bulk(BulkReport { matched, done, finished: true });
    assert_eq!(bench.one(purge(true)).await.unwrap(), report(50, 0));
    assert_eq!(bench.one(purge(false)).await.unwrap(), report(50, 50));
    assert!(lease(&bench, "first", 5).await.is_empty());
    let stats = stats(&bench, "first").await;
    assert_eq!((stats.books.accepted, stats.books.purged, stats.lag.unwrap().messages), (50, 50, 0));
}

#[tokio::test]
async fn a_settlement_and_a_seek_of_one_commit_are_refused() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig { retention_ms: Some(60_000), ..TopicConfig::default() }).await;
    subscribe(&bench, "first", InletConfig::default(), Filter::default()).await;
    publish(&bench, bench.message("a")).await.unwrap();
    let held = lease(&bench, "first", 1).await.remove(0);
    let seek = Op::Seek { inlet: sub("first"), to: SeekTo::Beginning, mode: SeekMode::Reprocess };
    let settle = Op::Settle { token: held.token.clone(), outcome: ack() };
    assert_eq!(kind(bench.commit(vec![seek.clone(), settle.clone()]).await), ErrorKind::Invalid);
    assert_eq!(kind(bench.commit(vec![settle.clone(), seek]).await), ErrorKind::Invalid);
    bench.one(settle).await.unwrap();
}

#[tokio::test]
async fn a_seek_of_a_queue_a_bad_name_and_a_unique_publish_are_refused_with_the_mend() {
    let bench = Bench::new();
    bench.declare(InletConfig::default()).await;
    declare_topic(&bench, TopicConfig::default()).await;
    let seek = Op::Seek { inlet: inlet(), to: SeekTo::Beginning, mode: SeekMode::Reprocess };
    assert_eq!(kind(bench.one(seek).await), ErrorKind::Invalid);
    let unknown = bench.engine.lease(request(&bench, "nobody")).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(unknown.to_string().contains("subscription"), "{unknown}");
    let unique = publish(&bench, bench.message("a").unique_key("u")).await.unwrap_err();
    assert_eq!(unique.kind(), ErrorKind::Invalid);
    let change = TopologyChange::Subscription {
        topic: topic(),
        name: "Not a name".into(),
        config: Box::default(),
        filter: Filter::default(),
        start: StartFrom::Now,
        update: false,
    };
    assert_eq!(kind(bench.engine.declare(change).await), ErrorKind::Invalid);
    let busy = TopologyChange::DropTopic { name: topic() };
    subscribe(&bench, "first", InletConfig::default(), Filter::default()).await;
    assert_eq!(kind(bench.engine.declare(busy).await), ErrorKind::Conflict);
}

#[tokio::test]
async fn age_lets_messages_go_without_a_publish() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig { retention_ms: Some(1_000), ..TopicConfig::default() }).await;
    for index in 0..5 {
        publish(&bench, bench.message(&format!("m{index}"))).await.unwrap();
    }
    assert_eq!(bench.engine.tick(), Some(Duration::from_secs(1)));
    bench.step(Duration::from_millis(1_000));
    assert_eq!(bench.engine.topology().await.unwrap().kept[0].messages, 0);
}

#[tokio::test]
#[proves("E2")]
async fn a_topic_is_read_by_the_same_bounds_as_a_stream_and_as_of_a_time() {
    let bench = Bench::new();
    declare_topic(&bench, TopicConfig { retention_ms: Some(3_600_000), ..TopicConfig::default() }).await;
    let start = bench.env.now();
    for n in 0..4 {
        publish(&bench, Message::builder("t").json(&n)).await.unwrap();
        bench.clock.advance(secs(10));
    }
    let all = EventRead::all_of(EventScope::Topic(topic()));
    let numbers = |read: EventRead| async {
        let slice = bench.engine.read_events(read).await?;
        Ok::<_, Error>(slice.events.iter().map(|event| event.revision).collect::<Vec<_>>())
    };
    assert_eq!(numbers(all.clone()).await.unwrap(), [0, 1, 2, 3]);
    let as_of = |at| EventRead { as_of: Some(start.plus(secs(at))), ..all.clone() };
    assert_eq!(numbers(as_of(10)).await.unwrap(), [0, 1]);
    let newest = EventRead { from: ReadFrom::End, direction: Direction::Backward, limit: 1, ..as_of(29) };
    assert_eq!(numbers(newest).await.unwrap(), [2]);
    let over = EventRead { limit: EVENTS_MAX + 1, ..all };
    assert_eq!(numbers(over).await.unwrap_err().kind(), ErrorKind::Invalid);
}
