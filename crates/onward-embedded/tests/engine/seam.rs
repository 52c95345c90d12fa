//! The engine as a whole: declaring, waiting, watching, paging, closing.

use crate::support::*;
use futures::StreamExt;
use onward_core::*;
use onward_embedded::Options;
use onward_proves::proves;

#[tokio::test]
#[proves("T49")]
async fn a_strict_engine_refuses_what_was_not_declared() {
    let bench = Bench::with(Options { strict: true, manual_clock: true, ..Options::default() });
    assert_eq!(kind(bench.enqueue(bench.message("a")).await), ErrorKind::NotFound);
    assert_eq!(kind(bench.engine.lease(bench.request("p")).await), ErrorKind::NotFound);
    bench.declare(InletConfig::default()).await;
    assert!(!bench.put("a").await.declared);
}

#[tokio::test]
#[proves("M10")]
async fn declaring_again_is_safe_and_other_content_conflicts_unless_updated() {
    let bench = Bench::new();
    let declare = |lease_ms, update| {
        let config = Box::new(InletConfig { lease_ms, ..InletConfig::default() });
        bench.engine.declare(TopologyChange::Queue { name: name(), config, update })
    };
    assert!(declare(1_000, false).await.unwrap().created);
    assert_eq!(declare(1_000, false).await.unwrap(), TopologyDiff::default());
    assert_eq!(kind(declare(2_000, false).await), ErrorKind::Conflict);
    assert_eq!(declare(2_000, true).await.unwrap().changed, ["lease_ms"]);
    assert_eq!(kind(declare(1, true).await), ErrorKind::Invalid);
    bench.put("a").await;
    let drop =
        |only_if_empty| bench.engine.declare(TopologyChange::DropInlet { inlet: inlet(), only_if_empty });
    assert_eq!(kind(drop(true).await), ErrorKind::Conflict);
    assert!(drop(false).await.unwrap().dropped);
    assert!(bench.engine.topology().await.unwrap().inlets.is_empty());
}

#[tokio::test]
#[proves("T34")]
async fn a_waiting_request_gets_the_message_as_soon_as_it_is_there() {
    let bench = Bench::new();
    bench.declare(InletConfig::default()).await;
    let waiting = bench.engine.lease(LeaseRequest { wait: secs(30), ..bench.request("p1") });
    let choosy = LeaseRequest { wait: secs(30), accepts: vec!["test.made".into()], ..bench.request("p2") };
    let (first, second, _) = tokio::join!(waiting, bench.engine.lease(choosy), async {
        bench.put("a").await;
        bench.put("b").await;
    });
    assert_eq!((first.unwrap().len(), second.unwrap().len()), (1, 1));
}

#[tokio::test]
#[proves("I4")]
async fn a_waiting_request_ends_empty_when_its_wait_is_over() {
    let bench = Bench::new();
    let waiting = bench.engine.lease(LeaseRequest { wait: secs(5), ..bench.request("p1") });
    let (deliveries, ()) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        bench.clock.advance(secs(5));
    });
    assert!(deliveries.unwrap().is_empty());
}

#[tokio::test]
#[proves("B6")]
async fn the_clock_task_brings_due_messages_and_ended_leases_to_waiting_requests() {
    let bench = Bench::with(Options::default());
    let config = InletConfig {
        lease_ms: 1_000,
        retry: RetryPolicy {
            jitter: Jitter::None,
            curve: Curve::Fixed { every_ms: 100 },
            ..RetryPolicy::default()
        },
        ..InletConfig::default()
    };
    bench.declare(config).await;
    bench.enqueue(bench.message("due").delay(secs(3))).await.unwrap();
    bench.put("held").await;
    assert_eq!(bench.lease_ids(1).await, ["held"]);
    let request = |process| LeaseRequest { wait: secs(60), lease: Some(secs(60)), ..bench.request(process) };
    let waiting =
        async { tokio::join!(bench.engine.lease(request("p2")), bench.engine.lease(request("p3"))) };
    let moving = async {
        for _ in 0..100 {
            bench.clock.advance(millis(100));
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
    };
    let ((first, second), ()) = tokio::join!(waiting, moving);
    let mut ids = vec![
        first.unwrap().remove(0).message.id.to_string(),
        second.unwrap().remove(0).message.id.to_string(),
    ];
    ids.sort();
    assert_eq!(ids, ["due", "held"]);
}

#[tokio::test]
#[proves("D3")]
async fn a_watcher_is_told_that_work_may_be_there() {
    let bench = Bench::new();
    let mut hints = bench.engine.watch(Interest::Inlets(vec![inlet()]));
    bench.put("a").await;
    assert_eq!(hints.next().await, Some(Hint::Inlet(inlet())));
}

#[tokio::test]
#[proves("L2", "T54")]
async fn messages_are_found_by_id_state_correlation_and_order_key_a_page_at_a_time() {
    let bench = Bench::new();
    for n in 0..25 {
        let message =
            bench.message(&format!("m{n:02}")).correlation_id(if n % 2 == 0 { "even" } else { "odd" });
        bench.enqueue(message.order_key("k")).await.unwrap();
    }
    let find = |by: FindBy| {
        let engine = &bench.engine;
        async move {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let query = MessageQuery { inlet: inlet(), by: by.clone(), after, limit: 10 };
                let page = engine.find(query).await.unwrap();
                seen.extend(page.items.into_iter().map(|view| view.message.id.to_string()));
                match page.next {
                    Some(next) => after = Some(next),
                    None => return seen,
                }
            }
        }
    };
    let all: Vec<String> = (0..25).map(|n| format!("m{n:02}")).collect();
    assert_eq!(find(FindBy::State(MessageState::Waiting)).await, all);
    assert_eq!(find(FindBy::OrderKey("k".try_into().unwrap())).await, all);
    let odd: Vec<String> = all.iter().skip(1).step_by(2).cloned().collect();
    assert_eq!(find(FindBy::Correlation("odd".into())).await, odd);
    assert_eq!(find(FindBy::Id("m07".try_into().unwrap())).await, ["m07"]);
    assert!(find(FindBy::State(MessageState::Dead)).await.is_empty());
}

#[tokio::test]
#[proves("A3", "D3")]
async fn a_result_is_found_by_id_until_its_retention_ends() {
    let bench = Bench::queue(InletConfig { result_retention_ms: 5_000, ..InletConfig::default() }).await;
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    let result = Payload::json(&42).unwrap();
    bench.settle(&delivery.token, Outcome::Ack { result: Some(result.clone()) }).await.unwrap();
    let view = bench.view("a").await.unwrap();
    assert_eq!((view.state, view.result), (MessageState::Done, Some(result)));
    assert_eq!(bench.ids(MessageState::Done).await, ["a"]);
    assert!(bench.put("a").await.duplicate);
    bench.step(secs(5));
    assert!(bench.view("a").await.is_none());
}

#[tokio::test]
#[proves("B8")]
async fn a_closed_engine_refuses_calls_and_ends_waiting_ones() {
    let bench = Bench::new();
    bench.put("a").await;
    let other = LeaseRequest { accepts: vec!["none".into()], wait: secs(60), ..bench.request("p1") };
    let (waiting, closed) = tokio::join!(bench.engine.lease(other), async {
        tokio::task::yield_now().await;
        bench.engine.close(secs(5)).await
    });
    assert_eq!(kind(waiting), ErrorKind::Closed);
    closed.unwrap();
    bench.engine.close(secs(5)).await.unwrap();
    assert_eq!(kind(bench.enqueue(bench.message("b")).await), ErrorKind::Closed);
    assert!(!bench.engine.health().readable);
}
