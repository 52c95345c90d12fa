//! Dead letters: kept whole, edited, redriven, purged; and what happens when they are full.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

async fn kill(bench: &Bench, id: &str) {
    let delivery = bench.lease().await.unwrap();
    assert_eq!(delivery.message.id.as_str(), id);
    bench.settle(&delivery.token, reject()).await.unwrap();
}

async fn redrive(bench: &Bench, selection: Selection, bulk: u128, dry_run: bool) -> BulkReport {
    let op = Op::Redrive { inlet: inlet(), selection, spacing: secs(0), bulk: BulkId(bulk), dry_run };
    match bench.one(op).await.unwrap() {
        Receipt::Bulk(report) => report,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[proves("H2", "H3")]
async fn a_rejected_message_is_a_dead_letter_at_once_with_its_message_and_every_cause() {
    let bench = Bench::new();
    let message = bench.message("a").header("trace", "t1").correlation_id("c1");
    bench.enqueue(message.clone()).await.unwrap();
    let first = bench.lease().await.unwrap();
    bench.settle(&first.token, retry_after(secs(1))).await.unwrap();
    bench.step(secs(1));
    let second = bench.lease().await.unwrap();
    let failure = Failure::new(CauseKind::Permanent, "no such order").with_detail("order 7");
    bench.settle(&second.token, Outcome::Reject { failure: failure.clone() }).await.unwrap();
    let view = bench.view("a").await.unwrap();
    assert_eq!((view.state, view.attempts), (MessageState::Dead, 2));
    assert_eq!(view.message.headers["trace"], "t1");
    assert_eq!(view.message.data.as_bytes().as_ref(), b"\"a\"");
    assert_eq!(view.ended_at, Some(bench.env.now()));
    assert_eq!(view.causes.len(), 2);
    assert_eq!(view.causes[1].failure, failure);
    assert_eq!(view.causes[1].attempt, 2);
}

#[tokio::test]
#[proves("H4")]
async fn an_edit_makes_a_new_edition_keeps_the_original_and_leaves_an_audit() {
    let bench = Bench::new();
    bench.put("a").await;
    kill(&bench, "a").await;
    let edit = DeadEdit {
        data: Some(Payload::json_text(r#"{"n":9007199254740993}"#).unwrap()),
        headers: [("fixed".to_owned(), Some("yes".to_owned()))].into(),
        ..DeadEdit::default()
    };
    let op = Op::EditDead { inlet: inlet(), id: "a".try_into().unwrap(), edit };
    let prepared = bench.engine.prepare(vec![op]).unwrap().by("ada");
    assert_eq!(bench.engine.commit(prepared).await.unwrap(), [Receipt::Edited { edition: 2 }]);
    let view = bench.view("a").await.unwrap();
    assert_eq!(view.message.data.as_bytes().as_ref(), br#"{"n":9007199254740993}"#);
    assert_eq!((view.message.edition, view.message.headers["fixed"].as_str()), (2, "yes"));
    assert_eq!(view.original.unwrap().data.as_bytes().as_ref(), b"\"a\"");
    let query = RecordQuery::Prefix { prefix: "onward.audit/".into(), after: None, limit: 10 };
    let audit = bench.engine.get_records(query).await.unwrap().items;
    let text = String::from_utf8(audit[0].value.to_vec()).unwrap();
    assert!(text.contains(r#""actor":"ada""#) && text.contains(r#""operation":"edit""#), "{text}");
    redrive(&bench, Selection::default(), 1, false).await;
    let delivery = bench.lease().await.unwrap();
    assert_eq!((delivery.message.edition, delivery.attempt, delivery.causes.len()), (2, 1, 1));
}

#[tokio::test]
#[proves("H4", "T30")]
async fn a_redrive_takes_what_is_selected_once_per_bulk_id_and_a_dry_run_only_counts() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        bench.put(id).await;
        kill(&bench, id).await;
        bench.clock.advance(secs(1));
    }
    let two = Selection { limit: Some(2), ..Selection::default() };
    assert_eq!(
        redrive(&bench, two.clone(), 1, true).await,
        BulkReport { matched: 2, done: 0, finished: true }
    );
    assert_eq!(bench.stats().await.books.dead, 3);
    let done = BulkReport { matched: 2, done: 2, finished: true };
    assert_eq!(redrive(&bench, two.clone(), 1, false).await, done);
    assert_eq!(redrive(&bench, two, 1, false).await, done);
    assert_eq!(bench.ids(MessageState::Dead).await, ["c"]);
    let none = Selection { kind: Some("other.type".into()), ..Selection::default() };
    assert_eq!(redrive(&bench, none, 2, false).await.matched, 0);
    let ids = Selection {
        ids: vec!["c".try_into().unwrap()],
        cause: Some(CauseKind::Permanent),
        ..Selection::default()
    };
    assert_eq!(redrive(&bench, ids, 3, false).await.done, 1);
    assert_eq!(bench.lease_ids(10).await, ["a", "b", "c"]);
}

#[tokio::test]
#[proves("H4", "L2")]
async fn a_redrive_by_correlation_id_reads_the_messages_themselves() {
    let bench = Bench::new();
    for (id, correlation) in [("a", "x"), ("b", "y"), ("c", "x")] {
        bench.enqueue(bench.message(id).correlation_id(correlation)).await.unwrap();
        kill(&bench, id).await;
    }
    let selection = Selection { correlation_id: Some("x".into()), ..Selection::default() };
    assert_eq!(redrive(&bench, selection, 1, false).await.done, 2);
    assert_eq!(bench.ids(MessageState::Dead).await, ["b"]);
}

#[tokio::test]
#[proves("H4")]
async fn a_spaced_redrive_brings_one_message_after_the_other() {
    let bench = Bench::new();
    for id in ["a", "b"] {
        bench.put(id).await;
        kill(&bench, id).await;
    }
    let selection = Selection::default();
    let op = Op::Redrive { inlet: inlet(), selection, spacing: secs(10), bulk: BulkId(1), dry_run: false };
    bench.one(op).await.unwrap();
    assert_eq!(bench.lease_ids(10).await, ["a"]);
    bench.step(secs(10));
    assert_eq!(bench.lease_ids(10).await, ["b"]);
}

#[tokio::test]
#[proves("H4")]
async fn full_dead_letters_stop_the_hand_out_loudly_and_drop_nothing() {
    let bench = Bench::queue(InletConfig { dead_max: 1, ..InletConfig::default() }).await;
    bench.put("a").await;
    bench.put("b").await;
    kill(&bench, "a").await;
    assert!(bench.lease().await.is_none());
    assert!(bench.stats().await.stopped_dead_full);
    let problems = bench.engine.health().problems;
    assert!(problems[0].what.contains("`work` hands out nothing"), "{problems:?}");
    redrive(&bench, Selection::default(), 1, false).await;
    assert!(bench.engine.health().problems.is_empty());
    assert_eq!(bench.lease_ids(10).await, ["a", "b"]);
}

#[tokio::test]
#[proves("B8", "L4")]
async fn a_purge_removes_what_is_selected_and_counts_it() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        bench.put(id).await;
    }
    kill(&bench, "a").await;
    bench.enqueue(bench.message("later").delay(secs(60))).await.unwrap();
    let purge = |what, bulk| Op::Purge {
        inlet: inlet(),
        what,
        selection: Selection::default(),
        bulk: BulkId(bulk),
        dry_run: false,
    };
    let done = |n| Receipt::Bulk(BulkReport { matched: n, done: n, finished: true });
    assert_eq!(bench.one(purge(PurgeWhat::Waiting, 1)).await.unwrap(), done(3));
    assert_eq!(bench.one(purge(PurgeWhat::Dead, 2)).await.unwrap(), done(1));
    assert_eq!(bench.one(purge(PurgeWhat::Dead, 2)).await.unwrap(), done(1));
    let books = bench.stats().await.books;
    assert_eq!((books.purged, books.waiting, books.dead, books.delayed), (4, 0, 0, 0));
}

#[tokio::test]
#[proves("T39")]
async fn dead_letters_go_when_their_retention_ends_and_only_then() {
    let bench = Bench::queue(InletConfig { dead_retention_ms: Some(5_000), ..InletConfig::default() }).await;
    bench.put("a").await;
    kill(&bench, "a").await;
    bench.step(millis(4_999));
    assert_eq!(bench.stats().await.books.dead, 1);
    bench.step(millis(1));
    let books = bench.stats().await.books;
    assert_eq!((books.dead, books.purged), (0, 1));
}

#[tokio::test]
#[proves("H3")]
async fn causes_are_bounded_keeping_the_first_and_the_latest() {
    let retry = RetryPolicy { attempts_max: 10, ..RetryPolicy::default() };
    let bench = Bench::queue(InletConfig { causes_max: 4, retry, ..InletConfig::default() }).await;
    bench.put("a").await;
    for _ in 0..10 {
        let delivery = bench.lease().await.unwrap();
        bench.settle(&delivery.token, retry_after(secs(1))).await.unwrap();
        bench.step(secs(1));
    }
    let view = bench.view("a").await.unwrap();
    let attempts: Vec<_> = view.causes.iter().map(|cause| cause.attempt).collect();
    assert_eq!(attempts, [1, 2, 9, 10]);
}

#[tokio::test]
#[proves("T9", "T10")]
async fn thousands_of_leases_that_end_in_full_dead_letters_hide_no_other_message() {
    let bench = Bench::new();
    let once = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    bench.declare(InletConfig { retry: once, dead_max: 1, lease_ms: 1_000, ..InletConfig::default() }).await;
    let ops = |queue: &str, count: u32| -> Vec<Op> {
        let one = |n| bench.message(&format!("{queue}-{n}")).build(&*bench.env).unwrap();
        (0..count).map(|n| Op::Enqueue { queue: queue.parse().unwrap(), message: Box::new(one(n)) }).collect()
    };
    bench.commit(ops(QUEUE, 3_000)).await.unwrap();
    bench.commit(ops("other", 1)).await.unwrap();
    assert_eq!(bench.lease_many("p1", 3_000).await.len(), 3_000);
    let other = || {
        let inlets = vec![WeightedInlet { inlet: Inlet::queue("other").unwrap(), weight: 1 }];
        LeaseRequest { inlets, lease: Some(secs(1)), ..bench.request("p1") }
    };
    assert_eq!(bench.engine.lease(other()).await.unwrap().len(), 1);
    bench.step(secs(2));
    // The first failure of a queue with default rules waits for at most a second.
    bench.step(secs(2));
    let again = bench.engine.lease(other()).await.unwrap();
    assert_eq!(again.iter().map(|d| d.attempt).collect::<Vec<_>>(), [2]);
    let stats = bench.stats().await;
    assert_eq!((stats.books.dead, stats.stopped_dead_full), (3_000, true), "nothing was dropped");
}
