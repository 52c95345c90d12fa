//! Records: compare-and-set, time to live, pages.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

fn key(text: &str) -> RecordKey {
    text.try_into().unwrap()
}

fn put(text: &str, value: &'static str, expect: RecordExpect) -> Op {
    Op::PutRecord { key: key(text), value: value.into(), expect, ttl: None }
}

async fn get(bench: &Bench, text: &str) -> Option<Record> {
    bench.engine.get_records(RecordQuery::Keys(vec![key(text)])).await.unwrap().items.pop()
}

#[tokio::test]
#[proves("M9")]
async fn compare_and_set_lets_one_of_two_writers_win_and_revisions_rise_over_a_deletion() {
    let bench = Bench::new();
    let Receipt::Recorded { revision: first } = bench.one(put("a", "1", RecordExpect::Absent)).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(kind(bench.one(put("a", "1", RecordExpect::Absent)).await), ErrorKind::Conflict);
    let update = put("a", "2", RecordExpect::Revision(first));
    bench.one(update.clone()).await.unwrap();
    assert_eq!(kind(bench.one(update).await), ErrorKind::Conflict);
    let second = get(&bench, "a").await.unwrap();
    assert_eq!((second.value.as_ref(), second.revision > first), (b"2".as_ref(), true));
    bench.one(Op::DeleteRecord { key: key("a"), expect: RecordExpect::Present }).await.unwrap();
    assert_eq!(get(&bench, "a").await, None);
    bench.one(put("a", "3", RecordExpect::Absent)).await.unwrap();
    assert!(get(&bench, "a").await.unwrap().revision > second.revision);
}

#[tokio::test]
#[proves("LOG15")]
async fn conditions_see_earlier_writes_of_the_same_commit() {
    let bench = Bench::new();
    bench
        .commit(vec![put("a", "1", RecordExpect::Absent), put("a", "2", RecordExpect::Present)])
        .await
        .unwrap();
    assert_eq!(get(&bench, "a").await.unwrap().value.as_ref(), b"2");
    let delete = Op::DeleteRecord { key: key("a"), expect: RecordExpect::Any };
    let failed = bench.commit(vec![delete, put("a", "3", RecordExpect::Present)]).await;
    assert_eq!(kind(failed), ErrorKind::Conflict);
    assert_eq!(get(&bench, "a").await.unwrap().value.as_ref(), b"2");
}

#[tokio::test]
#[proves("G3")]
async fn a_record_is_forgotten_when_its_time_has_run_out() {
    let bench = Bench::new();
    let ttl = Some(secs(5));
    bench
        .one(Op::PutRecord { key: key("a"), value: "1".into(), expect: RecordExpect::Any, ttl })
        .await
        .unwrap();
    bench.clock.advance(millis(4_999));
    assert!(get(&bench, "a").await.is_some());
    bench.clock.advance(millis(1));
    assert!(get(&bench, "a").await.is_none());
    bench.engine.tick();
    bench.one(put("a", "2", RecordExpect::Absent)).await.unwrap();
}

#[tokio::test]
#[proves("T54")]
async fn records_are_paged_by_prefix_in_key_order() {
    let bench = Bench::new();
    for n in 0..25 {
        bench.one(put(&format!("x/{n:02}"), "v", RecordExpect::Any)).await.unwrap();
    }
    bench.one(put("y/00", "v", RecordExpect::Any)).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let query = RecordQuery::Prefix { prefix: "x/".into(), after, limit: 10 };
        let page = bench.engine.get_records(query).await.unwrap();
        seen.extend(page.items.into_iter().map(|record| record.key.to_string()));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let all: Vec<String> = (0..25).map(|n| format!("x/{n:02}")).collect();
    assert_eq!(seen, all);
}

#[tokio::test]
#[proves("T39", "L2")]
async fn records_are_bounded_and_the_audit_is_the_engines_own() {
    let options =
        onward_embedded::Options { records_bytes_max: 300, manual_clock: true, ..Default::default() };
    let bench = Bench::with(options);
    bench.one(put("a", "1", RecordExpect::Any)).await.unwrap();
    let large =
        Op::PutRecord { key: key("b"), value: vec![0; 300].into(), expect: RecordExpect::Any, ttl: None };
    assert_eq!(kind(bench.one(large).await), ErrorKind::Full);
    assert_eq!(kind(bench.one(put("onward.audit/1", "x", RecordExpect::Any)).await), ErrorKind::Invalid);
}
