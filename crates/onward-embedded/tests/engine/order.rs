//! Arrival order, order by key, and what a stuck head does.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

async fn ordered(stuck_head: StuckHead) -> Bench {
    let order = OrderPolicy::ByKey { stuck_head };
    let bench = Bench::queue(InletConfig { order, ..InletConfig::default() }).await;
    for id in ["k1", "k2", "j1", "k3", "j2"] {
        bench.enqueue(bench.message(id).order_key(&id[..1])).await.unwrap();
    }
    bench
}

async fn redrive(bench: &Bench, selection: Selection, bulk: u128) -> BulkReport {
    let op = Op::Redrive { inlet: inlet(), selection, spacing: secs(0), bulk: BulkId(bulk), dry_run: false };
    match bench.one(op).await.unwrap() {
        Receipt::Bulk(report) => report,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[proves("J1")]
async fn one_worker_gets_arrival_order() {
    let bench = Bench::new();
    let ids: Vec<String> = (0..50).map(|n| format!("m{n}")).collect();
    for id in &ids {
        bench.put(id).await;
    }
    assert_eq!(bench.lease_ids(100).await, ids);
}

#[tokio::test]
#[proves("J2", "C3")]
async fn one_of_a_key_at_a_time_and_the_key_waits_while_retrying() {
    let bench = ordered(StuckHead::Wait).await;
    let heads = bench.lease_many("p1", 10).await;
    let ids: Vec<_> = heads.iter().map(|d| d.message.id.as_str()).collect();
    assert_eq!(ids, ["k1", "j1"]);
    assert_eq!(bench.stats().await.blocked, 3);
    bench.settle(&heads[0].token, retry_after(secs(10))).await.unwrap();
    bench.ack(&heads[1]).await;
    assert_eq!(bench.lease_ids(10).await, ["j2"]);
    bench.step(secs(10));
    let again = bench.lease().await.unwrap();
    assert_eq!((again.message.id.as_str(), again.attempt), ("k1", 2));
    bench.ack(&again).await;
    let next = bench.lease().await.unwrap();
    assert_eq!(next.message.id.as_str(), "k2");
    bench.settle(&next.token, release()).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["k2"]);
}

#[tokio::test]
#[proves("J2")]
async fn within_a_key_arrival_beats_priority_and_a_delayed_head_holds_its_key() {
    let order = OrderPolicy::ByKey { stuck_head: StuckHead::Wait };
    let bench = Bench::queue(InletConfig { order, ..InletConfig::default() }).await;
    bench.enqueue(bench.message("low").order_key("k").priority(0).delay(secs(5))).await.unwrap();
    bench.enqueue(bench.message("high").order_key("k").priority(9)).await.unwrap();
    bench.enqueue(bench.message("other").order_key("j")).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["other"]);
    bench.step(secs(5));
    let low = bench.lease().await.unwrap();
    assert_eq!(low.message.id.as_str(), "low");
    bench.ack(&low).await;
    assert_eq!(bench.lease_ids(10).await, ["high"]);
}

#[tokio::test]
#[proves("J2")]
async fn a_stuck_head_that_waits_blocks_its_key_until_it_is_redriven() {
    let bench = ordered(StuckHead::Wait).await;
    let head = bench.lease().await.unwrap();
    bench.settle(&head.token, reject()).await.unwrap();
    assert_eq!(bench.lease_ids(1).await, ["j1"]);
    assert!(bench.lease().await.is_none());
    assert!(bench.view("k2").await.unwrap().blocked);
    assert_eq!(redrive(&bench, Selection::default(), 1).await.done, 1);
    assert_eq!(bench.lease_ids(10).await, ["k1"]);
}

#[tokio::test]
#[proves("J2")]
async fn purging_a_stuck_head_lets_its_key_go_on() {
    let bench = ordered(StuckHead::Wait).await;
    let head = bench.lease().await.unwrap();
    bench.settle(&head.token, reject()).await.unwrap();
    let selection = Selection::default();
    let purge =
        Op::Purge { inlet: inlet(), what: PurgeWhat::Dead, selection, bulk: BulkId(9), dry_run: false };
    bench.one(purge).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["k2", "j1"]);
}

#[tokio::test]
#[proves("J2")]
async fn a_set_aside_head_takes_its_followers_along_and_they_come_back_in_order() {
    let bench = ordered(StuckHead::SetAside).await;
    let head = bench.lease().await.unwrap();
    bench.settle(&head.token, reject()).await.unwrap();
    bench.enqueue(bench.message("k4").order_key("k")).await.unwrap();
    assert_eq!(bench.ids(MessageState::Dead).await, ["k1", "k2", "k3", "k4"]);
    let follower = bench.view("k3").await.unwrap();
    assert_eq!(follower.causes[0].failure.kind, CauseKind::BehindDeadHead);
    assert_eq!(bench.lease_ids(10).await, ["j1"]);
    let one = Selection { ids: vec!["k1".try_into().unwrap()], ..Selection::default() };
    assert_eq!(redrive(&bench, one, 1).await.done, 4);
    for id in ["k1", "k2", "k3", "k4"] {
        let delivery = bench.lease().await.unwrap();
        assert_eq!((delivery.message.id.as_str(), delivery.attempt), (id, 1));
        bench.ack(&delivery).await;
    }
}
