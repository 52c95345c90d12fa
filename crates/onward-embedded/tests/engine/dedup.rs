//! Repeats, unique work and what is remembered.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

#[tokio::test]
#[proves("T56", "G6", "A3")]
async fn a_repeat_is_told_the_first_receipt_waiting_running_dead_and_done() {
    let bench = Bench::new();
    let first = bench.put("a").await;
    let again =
        |accepted: Accepted| assert_eq!((accepted.duplicate, accepted.position), (true, first.position));
    again(bench.put("a").await);
    let delivery = bench.lease().await.unwrap();
    again(bench.put("a").await);
    bench.ack(&delivery).await;
    again(bench.put("a").await);
    let stats = bench.stats().await;
    assert_eq!((stats.duplicates, stats.books.accepted, stats.dedup_entries), (3, 1, 1));
}

#[tokio::test]
#[proves("G6", "F2")]
async fn the_same_id_with_other_content_conflicts() {
    let bench = Bench::new();
    bench.put("a").await;
    let other_data = bench.message("a").json(&"other");
    assert_eq!(kind(bench.enqueue(other_data).await), ErrorKind::Conflict);
    assert_eq!(kind(bench.enqueue(bench.message("a").version(2)).await), ErrorKind::Conflict);
    let other_source = bench.message("a").source("elsewhere");
    assert!(!bench.enqueue(other_source).await.unwrap().duplicate, "another source's id is another message");
}

#[tokio::test]
#[proves("G3")]
async fn a_finished_id_is_remembered_for_the_window_and_no_longer() {
    let bench = Bench::queue(InletConfig { dedup_window_ms: 10_000, ..InletConfig::default() }).await;
    bench.put("a").await;
    let delivery = bench.lease().await.unwrap();
    bench.ack(&delivery).await;
    bench.step(millis(9_999));
    assert!(bench.put("a").await.duplicate);
    bench.step(millis(1));
    assert!(!bench.put("a").await.duplicate);
}

#[tokio::test]
#[proves("T39")]
async fn remembered_ids_are_bounded_and_the_shorter_window_shows() {
    let bench = Bench::queue(InletConfig { dedup_entries_max: 10, ..InletConfig::default() }).await;
    for n in 0..30 {
        bench.put(&format!("m{n}")).await;
        let delivery = bench.lease().await.unwrap();
        bench.ack(&delivery).await;
        bench.clock.advance(secs(1));
    }
    let stats = bench.stats().await;
    assert!(stats.dedup_entries <= 10, "{}", stats.dedup_entries);
    assert!((5_000..=12_000).contains(&stats.dedup_window_ms), "{}", stats.dedup_window_ms);
    assert!(bench.put("m29").await.duplicate);
    assert!(!bench.put("m0").await.duplicate);
}

#[tokio::test]
#[proves("G6")]
async fn a_dedup_key_of_its_own_recognises_other_ids_and_tells_the_first() {
    let bench = Bench::new();
    bench.enqueue(bench.message("a").json(&1).dedup_key("k")).await.unwrap();
    let second = bench.enqueue(bench.message("b").json(&1).dedup_key("k")).await.unwrap();
    assert_eq!((second.duplicate, second.id.as_str()), (true, "a"));
    let delivery = bench.lease().await.unwrap();
    bench.ack(&delivery).await;
    let third = bench.enqueue(bench.message("c").json(&1).dedup_key("k")).await.unwrap();
    assert_eq!((third.duplicate, third.id.as_str()), (true, "a"));
}

#[tokio::test]
#[proves("T43", "T44", "B6")]
async fn unique_work_is_there_once_until_it_ends_also_within_one_commit() {
    let bench = Bench::new();
    let unique = |id: &str| {
        let message = Box::new(bench.message(id).unique_key("report").build(&*bench.env).unwrap());
        Op::Enqueue { queue: name(), message }
    };
    let ids: Vec<String> = (0..100).map(|n| format!("m{n}")).collect();
    let receipts = bench.commit(ids.iter().map(|id| unique(id)).collect()).await.unwrap();
    let accepted: Vec<&Accepted> =
        receipts.iter().map(|r| if let Receipt::Accepted(a) = r { a } else { panic!() }).collect();
    assert_eq!(accepted.iter().filter(|a| !a.duplicate).count(), 1);
    assert!(accepted.iter().all(|a| a.id.as_str() == "m0"));
    let delivery = bench.lease().await.unwrap();
    assert!(
        matches!(bench.one(unique("x")).await.unwrap(), Receipt::Accepted(a) if a.duplicate && a.id.as_str() == "m0")
    );
    let settle = Op::Settle { token: delivery.token.clone(), outcome: ack() };
    let receipts = bench.commit(vec![settle, unique("next")]).await.unwrap();
    assert!(matches!(&receipts[1], Receipt::Accepted(a) if !a.duplicate && a.id.as_str() == "next"));
    assert_eq!(bench.stats().await.books.accepted, 2);
}

#[tokio::test]
#[proves("T43")]
async fn a_commit_that_fails_leaves_no_claim() {
    let bench = Bench::new();
    let message = Box::new(bench.message("a").unique_key("report").build(&*bench.env).unwrap());
    let key: RecordKey = "k".try_into().unwrap();
    let guard = Op::Guard(Guarded::Record { key, expect: RecordExpect::Present });
    let failed = bench.commit(vec![Op::Enqueue { queue: name(), message }, guard]).await;
    assert_eq!(kind(failed), ErrorKind::Conflict);
    assert!(!bench.enqueue(bench.message("b").unique_key("report")).await.unwrap().duplicate);
}

/// A hundred messages with ids of their own and one unique key.
fn hundred(bench: &Bench) -> Vec<Prepared> {
    let one = |n: u32| {
        let message =
            Box::new(bench.message(&format!("m{n}")).unique_key("report").build(&*bench.env).unwrap());
        bench.engine.prepare(vec![Op::Enqueue { queue: name(), message }]).unwrap()
    };
    (0..100).map(one).collect()
}

/// One is new, and all the others name it.
fn one_of_a_hundred(receipts: &[Receipt]) {
    let accepted: Vec<&Accepted> =
        receipts.iter().map(|r| if let Receipt::Accepted(a) = r { a } else { panic!("{r:?}") }).collect();
    let new: Vec<&MessageId> = accepted.iter().filter(|a| !a.duplicate).map(|a| &a.id).collect();
    assert_eq!((accepted.len(), new.len()), (100, 1));
    assert!(accepted.iter().all(|a| a.id == *new[0]), "every repeat is told the id that exists");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[proves("T44", "T56")]
async fn of_a_hundred_concurrent_enqueues_of_one_unique_key_one_is_new() {
    let bench = std::sync::Arc::new(Bench::new());
    let insert = |prepared| {
        let bench = bench.clone();
        tokio::spawn(async move { bench.engine.commit(prepared).await.unwrap().remove(0) })
    };
    let running: Vec<_> = hundred(&bench).into_iter().map(insert).collect();
    let mut receipts = Vec::new();
    for task in running {
        receipts.push(task.await.unwrap());
    }
    one_of_a_hundred(&receipts);
    assert_eq!(bench.stats().await.books.accepted, 1);
}

#[tokio::test]
#[proves("T44")]
async fn of_a_hundred_in_bulk_with_one_unique_key_one_is_new() {
    let bench = Bench::new();
    let results = bench.engine.submit(hundred(&bench)).await.unwrap();
    let receipts: Vec<Receipt> = results.into_iter().map(|result| result.unwrap().remove(0)).collect();
    one_of_a_hundred(&receipts);
}
