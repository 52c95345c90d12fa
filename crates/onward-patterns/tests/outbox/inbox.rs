//! Effects of one key happen once.

use crate::stage::{Stage, commit, message, record, take, to_queue, view};
use onward_core::{
    CauseKind, Delivery, Engine, ErrorKind, Failure, Inlet, MessageState, Op, Outcome, RecordExpect,
    RecordKey, RecordQuery, RetryDelay,
};
use onward_patterns::inbox::{Once, REMEMBER_DEFAULT, once, record_key};
use onward_proves::proves;
use std::time::Duration;

async fn count(engine: &dyn Engine, prefix: &str) -> usize {
    let (prefix, after) = (prefix.to_owned(), None);
    engine.get_records(RecordQuery::Prefix { prefix, after, limit: 10 }).await.unwrap().items.len()
}

async fn delivery(engine: &dyn Engine, id: &str) -> Delivery {
    commit(engine, vec![to_queue("charges").op(message(id))]).await.unwrap();
    take(engine, "charges").await
}

fn effect(name: &str) -> Vec<Op> {
    vec![record(&format!("effect/{name}"), RecordExpect::Any)]
}

#[proves("G4")]
#[tokio::test]
async fn a_second_message_of_one_key_is_acknowledged_without_its_effects() {
    let store = Stage::new().await.store;
    for (id, expected) in [("first", Once::Now), ("second", Once::Before)] {
        let delivery = delivery(&*store, id).await;
        let done = once(&*store, &delivery, "order-1", REMEMBER_DEFAULT, effect(id)).await.unwrap();
        assert_eq!(done, expected, "{id}");
        let left = view(&*store, Inlet::Queue("charges".parse().unwrap()), &delivery.message.id).await;
        assert!(left.is_none_or(|view| view.state == MessageState::Done), "{id} is not done");
    }
    assert_eq!(count(&*store, "effect/").await, 1);
}

#[tokio::test]
async fn a_stale_lease_changes_nothing_and_remembers_nothing() {
    let store = Stage::new().await.store;
    let stale = delivery(&*store, "m").await;
    let failure = Failure::new(CauseKind::Transient, "again");
    let outcome = Outcome::Retry { delay: RetryDelay::After(Duration::from_millis(1)), failure };
    commit(&*store, vec![Op::Settle { token: stale.token.clone(), outcome }]).await.unwrap();
    let refused = once(&*store, &stale, "k", REMEMBER_DEFAULT, effect("stale")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LeaseLost);
    assert_eq!((count(&*store, "effect/").await, count(&*store, "onward.inbox/").await), (0, 0));
    let next = take(&*store, "charges").await;
    assert_eq!(once(&*store, &next, "k", REMEMBER_DEFAULT, effect("m")).await.unwrap(), Once::Now);
}

#[tokio::test]
async fn an_effect_that_is_refused_is_told_as_itself_and_the_key_is_free() {
    let store = Stage::new().await.store;
    commit(&*store, effect("there")).await.unwrap();
    let delivery = delivery(&*store, "m").await;
    let refused = vec![record("effect/there", RecordExpect::Absent)];
    let error = once(&*store, &delivery, "k", REMEMBER_DEFAULT, refused).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(once(&*store, &delivery, "k", REMEMBER_DEFAULT, Vec::new()).await.unwrap(), Once::Now);
}

#[tokio::test]
async fn a_key_that_a_worker_works_on_is_left_to_it() {
    let store = Stage::new().await.store;
    let delivery = delivery(&*store, "m").await;
    let key: RecordKey = record_key(&delivery.token.inlet, 0, "k").unwrap();
    let value = serde_json::to_vec(&serde_json::json!({"claimed_by": "somebody", "result": null})).unwrap();
    let claim = Op::PutRecord { key, value: value.into(), expect: RecordExpect::Absent, ttl: None };
    commit(&*store, vec![claim]).await.unwrap();
    let busy = once(&*store, &delivery, "k", REMEMBER_DEFAULT, effect("m")).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Unavailable);
    assert_eq!(count(&*store, "effect/").await, 0);
}
