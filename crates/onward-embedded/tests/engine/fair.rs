//! Priority, ageing, fairness, weights, types.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;
use std::collections::BTreeMap;

#[tokio::test]
#[proves("B6")]
async fn higher_priority_goes_first_and_the_lowest_ages_within_its_bound() {
    let bench = Bench::queue(InletConfig { ageing_ms: 1_000, ..InletConfig::default() }).await;
    bench.enqueue(bench.message("low").priority(0)).await.unwrap();
    for n in 0..20 {
        bench.enqueue(bench.message(&format!("high{n}")).priority(9)).await.unwrap();
        assert_eq!(bench.lease_ids(1).await, [format!("high{n}")]);
        bench.clock.advance(millis(400));
    }
    bench.clock.advance(secs(1));
    bench.enqueue(bench.message("late").priority(9)).await.unwrap();
    assert_eq!(bench.lease_ids(2).await, ["low", "late"]);
}

#[tokio::test]
async fn priority_holds_through_retries_and_pause() {
    let bench = Bench::new();
    bench.enqueue(bench.message("high").priority(9)).await.unwrap();
    let high = bench.lease().await.unwrap();
    bench.settle(&high.token, retry_after(secs(1))).await.unwrap();
    bench.put("normal").await;
    bench.one(Op::Pause { inlet: inlet() }).await.unwrap();
    bench.step(secs(1));
    assert!(bench.lease().await.is_none());
    assert!(bench.stats().await.paused);
    bench.one(Op::Resume { inlet: inlet() }).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["high", "normal"]);
}

#[tokio::test]
#[proves("T32")]
async fn a_tenant_with_very_much_delays_another_by_one_round() {
    let bench = Bench::new();
    for n in 0..1_000 {
        bench.enqueue(bench.message(&format!("big{n}")).fairness_key("big")).await.unwrap();
    }
    bench.enqueue(bench.message("small").fairness_key("small")).await.unwrap();
    bench.put("nobody's").await;
    let first = bench.lease_ids(3).await;
    assert!(first.contains(&"small".to_owned()) && first.contains(&"nobody's".to_owned()), "{first:?}");
}

#[tokio::test]
#[proves("I4")]
async fn several_inlets_share_by_their_weights() {
    let bench = Bench::new();
    let other: Name = "other".parse().unwrap();
    for n in 0..400 {
        bench.put(&format!("a{n}")).await;
        let message = Box::new(bench.message(&format!("b{n}")).build(&*bench.env).unwrap());
        bench.one(Op::Enqueue { queue: other.clone(), message }).await.unwrap();
    }
    let inlets = vec![
        WeightedInlet { inlet: inlet(), weight: 3 },
        WeightedInlet { inlet: Inlet::Queue(other), weight: 1 },
    ];
    let request = LeaseRequest { inlets, count_max: 200, ..bench.request("p1") };
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for delivery in bench.engine.lease(request).await.unwrap() {
        *counts.entry(delivery.token.inlet.to_string()).or_default() += 1;
    }
    assert!((120..=180).contains(&counts["work"]), "{counts:?}");
}

#[tokio::test]
#[proves("T45")]
async fn a_request_takes_only_its_types_and_the_others_stay_for_other_workers() {
    let bench = Bench::new();
    for (id, kind) in [("1", "x"), ("2", "y"), ("3", "x")] {
        let message = Message::builder(kind).id(id.try_into().unwrap());
        bench.enqueue(message).await.unwrap();
    }
    let only = |kind: &str| LeaseRequest { accepts: vec![kind.into()], count_max: 10, ..bench.request("p1") };
    assert!(bench.engine.lease(only("unknown")).await.unwrap().is_empty());
    let ids: Vec<String> =
        bench.engine.lease(only("y")).await.unwrap().iter().map(|d| d.message.id.to_string()).collect();
    assert_eq!(ids, ["2"]);
    assert_eq!(bench.lease_ids(10).await, ["1", "3"]);
}

#[tokio::test]
#[proves("T31")]
async fn retries_schedules_and_new_work_are_promoted_independently() {
    let bench = Bench::new();
    bench.put("fails").await;
    let delivery = bench.lease().await.unwrap();
    bench.settle(&delivery.token, retry_after(secs(5))).await.unwrap();
    bench.enqueue(bench.message("due").delay(secs(3))).await.unwrap();
    bench.put("new").await;
    assert_eq!(bench.lease_ids(10).await, ["new"]);
    bench.step(secs(3));
    assert_eq!(bench.lease_ids(10).await, ["due"]);
    bench.step(secs(2));
    assert_eq!(bench.lease_ids(10).await, ["fails"]);
}
