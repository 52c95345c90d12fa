//! Bounds that refuse, limits that hold.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

#[tokio::test]
#[proves("I3", "T39")]
async fn a_full_queue_refuses_and_says_when_to_come_again() {
    let bench = Bench::queue(InletConfig { depth_max: 2, ..InletConfig::default() }).await;
    bench.put("a").await;
    bench.put("b").await;
    let refused = bench.enqueue(bench.message("c")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert!(matches!(refused.retry_hint(), RetryHint::After(_)));
    assert!(bench.enqueue(bench.message("a")).await.unwrap().duplicate, "a repeat needs no room");
    let delivery = bench.lease().await.unwrap();
    assert_eq!(kind(bench.enqueue(bench.message("c")).await), ErrorKind::Full);
    let next = Box::new(bench.message("c").build(&*bench.env).unwrap());
    let settle = Op::Settle { token: delivery.token, outcome: ack() };
    bench.commit(vec![settle, Op::Enqueue { queue: name(), message: next }]).await.unwrap();
    assert_eq!(bench.stats().await.books.waiting, 2);
}

#[tokio::test]
#[proves("I3")]
async fn a_bound_on_bytes_counts_what_is_unfinished() {
    let bench = Bench::queue(InletConfig { bytes_max: 100, ..InletConfig::default() }).await;
    let big = |id: &str| bench.message(id).json(&"x".repeat(58));
    bench.enqueue(big("a")).await.unwrap();
    assert_eq!(bench.stats().await.bytes, 60);
    assert_eq!(kind(bench.enqueue(big("b")).await), ErrorKind::Full);
    let delivery = bench.lease().await.unwrap();
    bench.ack(&delivery).await;
    bench.enqueue(big("b")).await.unwrap();
}

#[tokio::test]
#[proves("T48", "F3")]
async fn an_oversize_message_is_refused_with_the_mend() {
    let bench = Bench::queue(InletConfig { payload_bytes_max: 10, ..InletConfig::default() }).await;
    let refused = bench.enqueue(bench.message("a").json(&"0123456789")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.mend_text().unwrap().contains("claim check"));
}

#[tokio::test]
#[proves("I2")]
async fn a_queue_that_sheds_lets_the_least_urgent_go_and_counts_it() {
    let config = InletConfig { depth_max: 2, overflow: Overflow::ShedLowest, ..InletConfig::default() };
    let bench = Bench::queue(config).await;
    for (id, priority) in [("low", 1), ("mid", 4)] {
        bench.enqueue(bench.message(id).priority(priority)).await.unwrap();
    }
    bench.enqueue(bench.message("high").priority(9)).await.unwrap();
    assert_eq!(kind(bench.enqueue(bench.message("low2").priority(1)).await), ErrorKind::Full);
    assert_eq!(bench.stats().await.books.shed, 1);
    assert_eq!(bench.lease_ids(10).await, ["high", "mid"]);
}

#[tokio::test]
#[proves("T12")]
async fn live_leases_over_all_processes_stay_within_the_concurrency_limit() {
    let config = InletConfig { concurrency_max: Some(3), lease_ms: 1_000, ..InletConfig::default() };
    let bench = Bench::queue(config).await;
    for n in 0..10 {
        bench.put(&format!("m{n}")).await;
    }
    let held = bench.lease_many("p1", 2).await;
    assert_eq!(bench.lease_many("p2", 5).await.len(), 1);
    assert!(bench.lease_many("p3", 5).await.is_empty());
    bench.ack(&held[0]).await;
    assert_eq!(bench.lease_many("p3", 5).await.len(), 1);
    bench.step(secs(1));
    assert_eq!(bench.lease_many("p4", 5).await.len(), 3, "leases that ended hold no slot");
}

#[tokio::test]
async fn hand_outs_keep_to_the_rate_with_its_burst() {
    let rate = Some(RateLimit { count: 10, per_ms: 1_000, burst: 3 });
    let bench = Bench::queue(InletConfig { rate, ..InletConfig::default() }).await;
    for n in 0..100 {
        bench.put(&format!("m{n}")).await;
    }
    assert_eq!(bench.lease_many("p1", 50).await.len(), 3);
    let mut total = 0;
    for _ in 0..20 {
        bench.clock.advance(millis(100));
        total += bench.lease_many("p1", 50).await.len();
    }
    assert_eq!(total, 20);
    bench.clock.advance(secs(60));
    assert_eq!(bench.lease_many("p1", 50).await.len(), 3);
}

#[tokio::test]
async fn a_rate_per_key_holds_one_key_back_and_no_other() {
    let rate_per_key = Some(RateLimit { count: 1, per_ms: 1_000, burst: 1 });
    let bench = Bench::queue(InletConfig { rate_per_key, ..InletConfig::default() }).await;
    for id in ["a1", "a2", "b1", "b2"] {
        bench.enqueue(bench.message(id).fairness_key(&id[..1])).await.unwrap();
    }
    assert_eq!(bench.lease_ids(10).await, ["a1", "b1"]);
    bench.clock.advance(secs(1));
    assert_eq!(bench.lease_ids(10).await, ["a2", "b2"]);
}

#[tokio::test]
async fn leases_of_one_key_stay_within_its_limit_and_others_go_on() {
    let config = InletConfig { concurrency_per_key_max: Some(2), lease_ms: 1_000, ..InletConfig::default() };
    let bench = Bench::queue(config).await;
    for id in ["a1", "a2", "a3", "a4", "b1"] {
        bench.enqueue(bench.message(id).fairness_key(&id[..1])).await.unwrap();
    }
    bench.put("nobody's").await;
    let mut first = bench.lease_ids(10).await;
    first.sort();
    assert_eq!(first, ["a1", "a2", "b1", "nobody's"]);
    assert!(bench.lease_many("p2", 10).await.is_empty());
    bench.step(secs(1));
    assert_eq!(bench.lease_ids(1).await.len(), 1, "leases that ended hold no slot");
}

#[tokio::test]
async fn a_key_that_was_held_comes_in_its_turn_once_its_lease_has_ended() {
    let config = InletConfig { concurrency_per_key_max: Some(1), ..InletConfig::default() };
    let bench = Bench::queue(config).await;
    for id in ["a1", "a2", "b1"] {
        bench.enqueue(bench.message(id).fairness_key(&id[..1])).await.unwrap();
    }
    let held = bench.lease_many("p1", 3).await;
    assert_eq!(held.len(), 2);
    assert!(bench.lease_many("p2", 3).await.is_empty());
    bench.enqueue(bench.message("a3").fairness_key("a").priority(9)).await.unwrap();
    bench.enqueue(bench.message("b2").fairness_key("b").priority(9)).await.unwrap();
    assert!(bench.lease_many("p2", 3).await.is_empty(), "what comes meanwhile is held too");
    for delivery in &held {
        bench.ack(delivery).await;
    }
    assert_eq!(bench.lease_ids(3).await, ["a3", "b2"], "priority holds among what was held");
}

#[tokio::test]
async fn a_raised_limit_per_key_holds_at_once() {
    let limit = |most| InletConfig { concurrency_per_key_max: most, ..InletConfig::default() };
    let bench = Bench::queue(limit(Some(1))).await;
    for n in 0..4 {
        bench.enqueue(bench.message(&format!("m{n}")).fairness_key("a")).await.unwrap();
    }
    assert_eq!(bench.lease_many("p1", 4).await.len(), 1);
    assert_eq!(bench.lease_many("p1", 4).await.len(), 0);
    let config = Box::new(limit(Some(3)));
    bench.engine.declare(TopologyChange::Queue { name: name(), config, update: true }).await.unwrap();
    assert_eq!(bench.lease_many("p1", 4).await.len(), 2, "the lease of before counts");
}

#[tokio::test]
#[proves("I4")]
async fn a_request_stops_at_its_bytes_but_gets_at_least_one() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        bench.enqueue(bench.message(id).json(&"x".repeat(100))).await.unwrap();
    }
    let sized = |bytes_max| LeaseRequest { bytes_max, count_max: 10, ..bench.request("p1") };
    assert_eq!(bench.engine.lease(sized(1)).await.unwrap().len(), 1);
    assert_eq!(bench.engine.lease(sized(1_000)).await.unwrap().len(), 2);
}

#[tokio::test]
#[proves("T54", "I4")]
async fn counts_and_waits_beyond_the_limits_are_refused() {
    let bench = Bench::new();
    for request in [
        LeaseRequest { count_max: 0, ..bench.request("p") },
        LeaseRequest { count_max: 10_001, ..bench.request("p") },
        LeaseRequest { inlets: Vec::new(), ..bench.request("p") },
        LeaseRequest { wait: secs(61), ..bench.request("p") },
        LeaseRequest { lease: Some(millis(9)), ..bench.request("p") },
    ] {
        assert_eq!(kind(bench.engine.lease(request).await), ErrorKind::Invalid);
    }
    assert_eq!(
        kind(bench.engine.find(MessageQuery::state(inlet(), MessageState::Dead, 1_001)).await),
        ErrorKind::Invalid
    );
}
