//! Due times, expiry, and a wall clock that jumps.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

#[tokio::test]
#[proves("B6", "T1")]
async fn a_delayed_message_holds_no_lease_and_is_not_early() {
    let bench = Bench::queue(InletConfig { lease_ms: 1_000, ..InletConfig::default() }).await;
    bench.enqueue(bench.message("a").delay(secs(10))).await.unwrap();
    let stats = bench.stats().await;
    assert_eq!(
        (stats.books.delayed, stats.books.leased, stats.next_due),
        (1, 0, Some(bench.env.now().plus(secs(10))))
    );
    bench.step(millis(9_999));
    assert!(bench.lease().await.is_none());
    bench.step(millis(1));
    assert_eq!(bench.lease().await.unwrap().attempt, 1);
}

#[tokio::test]
#[proves("B6", "T31")]
async fn what_is_due_is_handed_out_though_the_clock_task_has_not_looked_yet() {
    let bench = Bench::new();
    bench.enqueue(bench.message("a").delay(secs(10))).await.unwrap();
    bench.clock.advance(secs(10));
    assert_eq!(bench.lease_ids(1).await, ["a"]);
}

#[tokio::test]
#[proves("B6")]
async fn a_past_due_time_is_now_and_a_due_time_can_be_moved_both_ways() {
    let bench = Bench::new();
    bench.enqueue(bench.message("past").due(bench.env.now().minus(secs(5)))).await.unwrap();
    bench.enqueue(bench.message("a").delay(secs(10))).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["past"]);
    let move_to = |due| Op::Reschedule { inlet: inlet(), id: "a".try_into().unwrap(), due };
    bench.one(move_to(bench.env.now().plus(secs(20)))).await.unwrap();
    bench.step(secs(15));
    assert!(bench.lease().await.is_none());
    bench.one(move_to(bench.env.now())).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["a"]);
    assert_eq!(kind(bench.one(move_to(bench.env.now())).await), ErrorKind::Conflict);
}

#[tokio::test]
#[proves("B8")]
async fn a_waiting_or_delayed_message_is_cancelled_and_gone() {
    let bench = Bench::new();
    bench.put("a").await;
    bench.enqueue(bench.message("b").delay(secs(10))).await.unwrap();
    let cancel = |id: &str| Op::Cancel { inlet: inlet(), id: id.try_into().unwrap() };
    for id in ["a", "b"] {
        assert_eq!(bench.one(cancel(id)).await.unwrap(), Receipt::Cancelled(CancelOutcome::Cancelled));
        assert_eq!(bench.one(cancel(id)).await.unwrap(), Receipt::Cancelled(CancelOutcome::AlreadyFinished));
    }
    assert_eq!(kind(bench.one(cancel("never")).await), ErrorKind::NotFound);
    bench.step(secs(20));
    assert!(bench.lease().await.is_none());
    assert_eq!(bench.stats().await.books.cancelled, 2);
}

#[tokio::test]
#[proves("B6")]
async fn an_expired_message_is_not_delivered_waiting_delayed_or_after_a_failure() {
    let bench = Bench::new();
    for (id, delay) in [("waiting", 0), ("delayed", 5)] {
        bench.enqueue(bench.message(id).delay(secs(delay)).ttl(secs(10))).await.unwrap();
    }
    bench.enqueue(bench.message("retried").ttl(secs(10)).priority(9)).await.unwrap();
    let delivery = bench.lease().await.unwrap();
    bench.settle(&delivery.token, retry_after(secs(20))).await.unwrap();
    bench.clock.advance(secs(10));
    assert!(bench.lease().await.is_none());
    assert_eq!(bench.stats().await.books.expired, 3);
}

#[tokio::test]
#[proves("LOG18")]
async fn a_wall_clock_that_jumps_makes_nothing_early_frees_no_lease_and_shows_in_health() {
    let bench = Bench::queue(InletConfig { lease_ms: 10_000, ..InletConfig::default() }).await;
    bench.put("held").await;
    let held = bench.lease().await.unwrap();
    bench.enqueue(bench.message("later").delay(secs(60))).await.unwrap();
    const HOUR: i64 = 3_600_000_000;
    bench.clock.jump_wall(HOUR);
    bench.step(secs(5));
    assert!(bench.lease().await.is_none());
    assert!(bench.engine.health().problems[0].what.contains("wall clock"));
    bench.enqueue(bench.message("by the new wall").delay(secs(10))).await.unwrap();
    bench.clock.jump_wall(-2 * HOUR);
    bench.enqueue(bench.message("by the old wall").delay(secs(10))).await.unwrap();
    bench.ack(&held).await;
    bench.step(millis(9_999));
    assert!(bench.lease().await.is_none());
    bench.step(millis(1));
    assert_eq!(bench.lease_ids(10).await, ["by the new wall", "by the old wall"]);
    bench.step(secs(45));
    assert_eq!(bench.lease_ids(10).await, ["later"]);
}
