//! Enqueue, lease, settle: the way of one message.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

#[tokio::test]
#[proves("B1", "B2")]
async fn a_message_goes_from_enqueue_to_ack_and_is_gone() {
    let bench = Bench::new();
    let accepted = bench.put("a").await;
    assert!(accepted.declared && !accepted.duplicate);
    assert_eq!(accepted.durability, Durability::Memory);
    let delivery = bench.lease().await.unwrap();
    assert_eq!((delivery.message.id.as_str(), delivery.attempt), ("a", 1));
    assert!(bench.lease().await.is_none());
    let settled = bench.ack(&delivery).await;
    assert_eq!((settled.state, settled.already), (MessageState::Done, false));
    assert!(bench.lease().await.is_none());
    let stats = bench.stats().await;
    assert_eq!((stats.books.accepted, stats.books.done, stats.bytes), (1, 1, 0));
}

#[tokio::test]
#[proves("AD14")]
async fn the_same_outcome_again_is_already_and_another_one_conflicts() {
    let bench = Bench::new();
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    bench.ack(&delivery).await;
    let again = bench.ack(&delivery).await;
    assert_eq!((again.state, again.already), (MessageState::Done, true));
    assert_eq!(kind(bench.settle(&delivery.token, retry()).await), ErrorKind::Conflict);
    assert_eq!(bench.stats().await.books.done, 1);
}

#[tokio::test]
#[proves("T3", "LOG19", "B7")]
async fn a_stale_token_settles_extends_and_reports_nothing() {
    let bench = Bench::queue(InletConfig { lease_ms: 1_000, ..InletConfig::default() }).await;
    bench.put("a").await;
    let stale = bench.lease().await.unwrap();
    bench.step(secs(1));
    bench.step(secs(400));
    let fresh = bench.lease_many("p2", 1).await.remove(0);
    assert_eq!(fresh.attempt, 2);
    for outcome in [ack(), retry(), release(), reject()] {
        assert_eq!(kind(bench.settle(&stale.token, outcome).await), ErrorKind::LeaseLost);
    }
    let extended = bench.engine.extend(vec![stale.token.clone()], secs(5)).await.unwrap().remove(0);
    assert_eq!(kind(extended), ErrorKind::LeaseLost);
    let detail = Payload::json(&1).unwrap();
    let progress = bench.one(Op::Progress { token: stale.token.clone(), detail }).await;
    assert_eq!(kind(progress), ErrorKind::LeaseLost);
    assert_eq!(kind(bench.one(Op::Guard(Guarded::Lease { token: stale.token })).await), ErrorKind::LeaseLost);
    bench.ack(&fresh).await;
    assert_eq!(bench.stats().await.books.done, 1);
}

#[tokio::test]
#[proves("T3")]
async fn a_forged_token_settles_nothing() {
    let bench = Bench::new();
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    let mut guessed = delivery.token.clone();
    let mut handle = guessed.handle.to_vec();
    handle[10] ^= 1;
    guessed.handle = handle.into();
    assert_eq!(kind(bench.settle(&guessed, ack()).await), ErrorKind::LeaseLost);
    guessed.handle = bytes::Bytes::from_static(b"short");
    assert_eq!(kind(bench.settle(&guessed, ack()).await), ErrorKind::Invalid);
    let other = LeaseToken { id: "b".try_into().unwrap(), ..delivery.token.clone() };
    assert_eq!(kind(bench.settle(&other, ack()).await), ErrorKind::LeaseLost);
    bench.ack(&delivery).await;
}

#[tokio::test]
#[proves("AD14")]
async fn a_repeated_lease_request_gets_the_same_deliveries_and_burns_no_attempt() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        bench.put(id).await;
    }
    let request = LeaseRequest { count_max: 2, ..bench.request("p1") };
    let first = bench.engine.lease(request.clone()).await.unwrap();
    bench.clock.advance(secs(10));
    let again = bench.engine.lease(request.clone()).await.unwrap();
    assert_eq!(first.len(), 2);
    let tokens = |deliveries: &[Delivery]| deliveries.iter().map(|d| d.token.clone()).collect::<Vec<_>>();
    assert_eq!(tokens(&first), tokens(&again));
    assert_eq!((first[0].lease, again[0].lease), (secs(30), secs(20)));
    assert_eq!(again[0].attempt, 1);
    let stranger = LeaseRequest { holder: holder("p2"), ..request };
    assert_eq!(bench.engine.lease(stranger).await.unwrap().len(), 1);
    assert_eq!(bench.stats().await.deliveries, 3);
}

#[tokio::test]
#[proves("T36", "B8")]
async fn a_release_counts_no_attempt_and_keeps_the_place_in_the_line() {
    let bench = Bench::new();
    for id in ["a", "b"] {
        bench.put(id).await;
    }
    let delivery = bench.lease().await.unwrap();
    let settled = bench.settle(&delivery.token, release()).await.unwrap();
    assert_eq!(settled.state, MessageState::Waiting);
    let again = bench.lease().await.unwrap();
    assert_eq!((again.message.id.as_str(), again.attempt), ("a", 1));
}

#[tokio::test]
#[proves("B7", "T2")]
async fn an_extended_lease_outlives_its_first_term_and_says_when_to_stop() {
    let bench = Bench::queue(InletConfig { lease_ms: 1_000, ..InletConfig::default() }).await;
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    for _ in 0..10 {
        bench.step(millis(900));
        let extended =
            bench.engine.extend(vec![delivery.token.clone()], secs(1)).await.unwrap().remove(0).unwrap();
        assert_eq!((extended.lease, extended.cancel_requested), (secs(1), false));
        assert!(bench.lease_many("p2", 1).await.is_empty());
    }
    let cancelled = bench.one(Op::Cancel { inlet: inlet(), id: "a".try_into().unwrap() }).await.unwrap();
    assert_eq!(cancelled, Receipt::Cancelled(CancelOutcome::Requested));
    let extended =
        bench.engine.extend(vec![delivery.token.clone()], secs(1)).await.unwrap().remove(0).unwrap();
    assert!(extended.cancel_requested);
    assert_eq!(bench.settle(&delivery.token, retry()).await.unwrap().state, MessageState::Cancelled);
    assert_eq!(bench.stats().await.books.cancelled, 1);
}

#[tokio::test]
#[proves("B7")]
async fn an_attempt_is_not_extended_beyond_the_total_that_its_queue_allows() {
    let config = InletConfig { lease_ms: 1_000, lease_total_max_ms: Some(3_000), ..InletConfig::default() };
    let bench = Bench::queue(config).await;
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    let extend = |by| bench.engine.extend(vec![delivery.token.clone()], by);
    assert!(extend(secs(3)).await.unwrap().remove(0).is_ok());
    assert_eq!(kind(extend(millis(3_001)).await.unwrap().remove(0)), ErrorKind::Invalid);
}

#[tokio::test]
#[proves("B4", "T40", "T52")]
async fn a_retry_waits_as_the_policy_says_and_the_next_attempt_knows_why() {
    let retry_policy = RetryPolicy {
        curve: Curve::Fixed { every_ms: 2_000 },
        jitter: Jitter::None,
        attempts_max: 3,
        ..RetryPolicy::default()
    };
    let bench = Bench::queue(InletConfig { retry: retry_policy, ..InletConfig::default() }).await;
    bench.put("a").await;
    let first = bench.lease().await.unwrap();
    let settled = bench.settle(&first.token, retry()).await.unwrap();
    assert_eq!(settled.state, MessageState::Delayed);
    assert_eq!(settled.due, Some(bench.env.now().plus(secs(2))));
    bench.step(millis(1_999));
    assert!(bench.lease().await.is_none());
    bench.step(millis(1));
    let second = bench.lease().await.unwrap();
    assert_eq!((second.attempt, second.causes.len()), (2, 1));
    assert_eq!(&*second.causes[0].failure.error, "no luck");
    assert_eq!((second.causes[0].attempt, &*second.causes[0].worker), (1, "worker"));
    let asked = bench.settle(&second.token, retry_after(secs(60))).await.unwrap();
    assert_eq!(asked.due, Some(bench.env.now().plus(secs(60))));
    bench.step(secs(60));
    let last = bench.lease().await.unwrap();
    assert_eq!(bench.settle(&last.token, retry()).await.unwrap().state, MessageState::Dead);
    let stats = bench.stats().await;
    assert_eq!((stats.failures, stats.books.dead, stats.deliveries), (3, 1, 3));
}

#[tokio::test]
#[proves("T52")]
async fn a_retry_that_asks_for_no_delay_still_waits() {
    let bench = Bench::new();
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    let settled = bench.settle(&delivery.token, retry_after(millis(0))).await.unwrap();
    assert_eq!(settled.due, Some(bench.env.now().plus(millis(100))));
    assert!(bench.lease().await.is_none());
}

#[tokio::test]
#[proves("T9", "B2")]
async fn a_lease_without_a_word_counts_and_on_the_last_attempt_goes_to_the_dead_letters() {
    let retry = RetryPolicy { attempts_max: 2, ..RetryPolicy::default() };
    let bench = Bench::queue(InletConfig { lease_ms: 1_000, retry, ..InletConfig::default() }).await;
    bench.put("a").await;
    for attempt in 1..=2 {
        assert_eq!(bench.lease().await.unwrap().attempt, attempt);
        bench.step(secs(1));
        bench.step(secs(400));
    }
    assert!(bench.lease().await.is_none());
    let view = bench.view("a").await.unwrap();
    assert_eq!((view.state, view.attempts), (MessageState::Dead, 2));
    let kinds: Vec<_> = view.causes.iter().map(|cause| cause.failure.kind).collect();
    assert_eq!(kinds, [CauseKind::LeaseExpired, CauseKind::LeaseExpired]);
}

#[tokio::test]
#[proves("D4")]
async fn progress_is_kept_for_the_next_attempt() {
    let bench = Bench::new();
    bench.put("a").await;
    let first = bench.lease().await.unwrap();
    let detail = Payload::json(&"half way").unwrap();
    bench.one(Op::Progress { token: first.token.clone(), detail: detail.clone() }).await.unwrap();
    bench.settle(&first.token, release()).await.unwrap();
    assert_eq!(bench.lease().await.unwrap().progress, Some(detail));
}

#[tokio::test]
#[proves("B3")]
async fn an_at_most_once_message_is_gone_at_hand_out_and_its_failure_is_counted() {
    let config =
        InletConfig { guarantee: DeliveryGuarantee::AtMostOnce, lease_ms: 1_000, ..InletConfig::default() };
    let bench = Bench::queue(config).await;
    for id in ["a", "b", "c"] {
        bench.put(id).await;
    }
    let deliveries = bench.lease_many("p1", 3).await;
    let books = bench.stats().await.books;
    assert_eq!((books.done, books.leased), (3, 0));
    bench.ack(&deliveries[0]).await;
    assert_eq!(bench.settle(&deliveries[1].token, retry()).await.unwrap().state, MessageState::Dead);
    bench.step(secs(2));
    assert!(bench.lease().await.is_none());
    let stats = bench.stats().await;
    assert_eq!((stats.lost_at_most_once, stats.books.dead, stats.books.done), (2, 2, 1));
}

#[tokio::test]
#[proves("G4")]
async fn one_commit_acks_enqueues_and_records_or_does_none_of_it() {
    let bench = Bench::new();
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    let key: RecordKey = "orders/1".try_into().unwrap();
    let ops = |expect| {
        let next = Box::new(bench.message("b").build(&*bench.env).unwrap());
        vec![
            Op::Settle { token: delivery.token.clone(), outcome: ack() },
            Op::Enqueue { queue: name(), message: next },
            Op::PutRecord { key: key.clone(), value: "paid".into(), expect, ttl: None },
        ]
    };
    let failed = bench.commit(ops(RecordExpect::Present)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Conflict);
    assert!(failed.place().unwrap().starts_with("operation 3 (put record"), "{failed}");
    let books = bench.stats().await.books;
    assert_eq!((books.accepted, books.leased), (1, 1));
    assert_eq!(bench.commit(ops(RecordExpect::Absent)).await.unwrap().len(), 3);
    let books = bench.stats().await.books;
    assert_eq!((books.accepted, books.done, books.waiting), (2, 1, 1));
}

#[tokio::test]
#[proves("LOG15")]
async fn a_commit_sees_its_earlier_operations_and_a_failed_one_spoils_no_other() {
    let bench = Bench::new();
    let enqueue = |id: &str| {
        let message = Box::new(bench.message(id).build(&*bench.env).unwrap());
        Op::Enqueue { queue: name(), message }
    };
    let receipts = bench.commit(vec![enqueue("a"), enqueue("a")]).await.unwrap();
    let (Receipt::Accepted(first), Receipt::Accepted(second)) = (&receipts[0], &receipts[1]) else {
        panic!()
    };
    assert_eq!((first.duplicate, second.duplicate), (false, true));
    assert_eq!(first.position, second.position);
    let key: RecordKey = "k".try_into().unwrap();
    let guard = Op::Guard(Guarded::Record { key, expect: RecordExpect::Present });
    let prepare = |ops| bench.engine.prepare(ops).unwrap();
    let commits =
        vec![prepare(vec![enqueue("b")]), prepare(vec![enqueue("c"), guard]), prepare(vec![enqueue("d")])];
    let results = bench.engine.submit(commits).await.unwrap();
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!(results[1].as_ref().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(bench.ids(MessageState::Waiting).await, ["a", "b", "d"]);
}
