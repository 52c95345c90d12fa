//! Idempotent handlers: once per key, whatever is delivered twice.

use crate::stage::{LEASE, QUEUE, SECOND, Stage, run};
use onward::{
    Message, MessageId,
    core::{AtomicScope, MessageState, Op, RecordExpect, RecordKey, RecordQuery},
    work::{self, Context, Handling, Json, State, handler},
};
use onward_env::pass;
use onward_proves::proves;
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, Mutex, atomic::Ordering::SeqCst},
    time::Duration,
};

#[derive(Serialize, Deserialize)]
struct Charge {
    order: String,
    seconds: u64,
    fails_on: Option<u32>,
}

/// Begins and ends of runs.
type Runs = Arc<Mutex<Vec<(String, &'static str)>>>;

async fn charge(charge: Charge, context: Context, runs: State<Runs>) -> work::Result<Json<String>> {
    let note = |what| runs.lock().unwrap().push((context.id().to_string(), what));
    note("begin");
    pass(&**context.onward().env(), Duration::from_secs(charge.seconds)).await;
    note("end");
    match charge.fails_on == Some(context.attempt()) {
        true => Err(std::io::Error::other("declined").into()),
        false => Ok(Json(format!("charged for {}", context.id()))),
    }
}

fn once_per_order() -> Handling {
    handler(charge).with_effects().idempotent_by(|charge: &Charge| charge.order.clone())
}

impl Stage {
    async fn charge(&self, id: &str, order: &str, seconds: u64, fails_on: Option<u32>) -> MessageId {
        self.send_data(id, &Charge { order: order.into(), seconds, fails_on }).await
    }
}

async fn a_second_message_of_one_key_is_skipped(stage: Stage) {
    let runs = Runs::default();
    let worker = run(stage.worker().state(runs.clone()).handle(QUEUE, once_per_order()));
    let first = stage.charge("first", "o1", 1, None).await;
    stage.reaches(&first, MessageState::Done).await;
    let second = stage.charge("second", "o1", 1, None).await;
    let other = stage.charge("other", "o2", 1, None).await;
    let second = stage.reaches(&second, MessageState::Done).await;
    stage.reaches(&other, MessageState::Done).await;
    let ran: Vec<String> = runs.lock().unwrap().iter().map(|run| run.0.clone()).collect();
    assert_eq!(ran, ["first", "first", "other", "other"]);
    assert_eq!(second.result.unwrap().parse::<String>().unwrap(), "charged for first");
    let report = worker.stop().await;
    assert_eq!((report.done, report.skipped), (2, 1));
}

async fn a_failed_attempt_marks_nothing_as_processed(stage: Stage) {
    let runs = Runs::default();
    let worker = run(stage.worker().state(runs.clone()).handle(QUEUE, once_per_order()));
    let first = stage.charge("first", "o1", 0, Some(1)).await;
    let done = stage.reaches(&first, MessageState::Done).await;
    assert_eq!((done.attempts, runs.lock().unwrap().len()), (2, 4));
    worker.stop().await;
}

async fn concurrent_duplicates_run_one_after_the_other(stage: Stage) {
    let runs = Runs::default();
    let ids =
        [stage.charge("first", "o1", 25, Some(1)).await, stage.charge("second", "o1", 25, Some(1)).await];
    let worker = run(stage.worker().state(runs.clone()).handle(QUEUE, once_per_order()));
    for id in &ids {
        stage.reaches(id, MessageState::Done).await;
    }
    let runs: Vec<_> = runs.lock().unwrap().clone();
    for pair in runs.chunks(2) {
        assert_eq!((&pair[0].0, pair[0].1, pair[1].1), (&pair[1].0, "begin", "end"), "{runs:?}");
    }
    // First attempts fail; whichever of the two succeeds first is the one that counts, and the other is skipped.
    assert!(runs.len() >= 4, "{runs:?}");
    assert_eq!(worker.stop().await.skipped, 1);
}

async fn the_claim_of_a_dead_worker_is_taken_over_by_another_message(stage: Stage) {
    let runs = Runs::default();
    let worker = || run(stage.worker().state(runs.clone()).handle(QUEUE, once_per_order()));
    let killed = worker();
    stage.retry(5, 1000 * SECOND).await;
    stage.charge("first", "o1", 8, None).await;
    stage.pass(5 * SECOND).await;
    killed.kill().await;
    let (begun, second) = (stage.now(), stage.charge("second", "o1", 8, None).await);
    let another = worker();
    stage.reaches(&second, MessageState::Done).await;
    let took = stage.now() - begun;
    assert!(took >= 8 * SECOND && took < 2 * LEASE + 8 * SECOND, "{took:?}");
    let ran: Vec<_> = runs.lock().unwrap().iter().map(|run| run.0.clone()).collect();
    assert_eq!(ran, ["first", "second", "second"]);
    another.stop().await;
}

on_each_engine! {
    #[proves("G3")]
    async fn what_was_processed_is_skipped_with_the_first_result(stage: Stage) {
        a_second_message_of_one_key_is_skipped(stage).await;
    }

    #[proves("G7")]
    async fn a_failure_leaves_the_key_free(stage: Stage) {
        a_failed_attempt_marks_nothing_as_processed(stage).await;
    }

    #[proves("G7")]
    async fn concurrent_duplicates_wait_for_each_other(stage: Stage) {
        concurrent_duplicates_run_one_after_the_other(stage).await;
    }

    #[proves("G3", "T8")]
    async fn a_claim_ends_with_the_lease_that_made_it(stage: Stage) {
        the_claim_of_a_dead_worker_is_taken_over_by_another_message(stage).await;
    }

    #[proves("G6")]
    async fn other_data_under_a_known_key_is_refused_done_or_running(stage: Stage) {
        let runs = Runs::default();
        let worker = run(stage.worker().state(runs.clone()).handle(QUEUE, once_per_order()));
        let first = stage.charge("first", "o1", 5, None).await;
        stage.pass(SECOND).await;
        let while_running = stage.charge("second", "o1", 6, None).await;
        let dead = stage.reaches(&while_running, MessageState::Dead).await;
        assert_eq!(stage.state(&first).await, Some(MessageState::Leased));
        assert!(dead.causes[0].failure.error.contains("another message"), "{:?}", dead.causes);
        stage.reaches(&first, MessageState::Done).await;
        let afterwards = stage.charge("third", "o1", 6, None).await;
        stage.reaches(&afterwards, MessageState::Dead).await;
        let again = stage.charge("fourth", "o1", 5, None).await;
        let replayed = stage.reaches(&again, MessageState::Done).await;
        assert_eq!(replayed.result.unwrap().parse::<String>().unwrap(), "charged for first");
        assert_eq!(runs.lock().unwrap().len(), 2);
        let report = worker.stop().await;
        assert_eq!((report.done, report.skipped, report.failed), (1, 1, 2));
    }

    async fn where_the_key_alone_counts_other_data_is_the_same_work(stage: Stage) {
        let runs = Runs::default();
        let worker = run(stage.worker().state(runs.clone()).handle(QUEUE, once_per_order().key_alone()));
        let first = stage.charge("first", "o1", 1, None).await;
        stage.reaches(&first, MessageState::Done).await;
        let other = stage.charge("second", "o1", 2, None).await;
        stage.reaches(&other, MessageState::Done).await;
        let ran = runs.lock().unwrap().len();
        assert_eq!((ran, worker.stop().await.skipped), (2, 1));
    }

    #[proves("G4", "G1")]
    async fn an_effect_in_the_commit_of_the_acknowledgement_happens_once_whatever_is_lost(stage: Stage) {
        /// Adds one to a balance that is kept as a record.
        async fn deposit(context: Context) -> work::Result {
            let key = RecordKey::try_from("bank/balance/1")?;
            let query = RecordQuery::Keys(vec![key.clone()]);
            let record = context.onward().engine().get_records(query).await?.items.pop();
            let expect = record.as_ref().map_or(RecordExpect::Absent, |record| RecordExpect::Revision(record.revision));
            let balance: u64 = record.map_or(0, |record| String::from_utf8_lossy(&record.value).parse().unwrap());
            let value = (balance + 1).to_string().into();
            context.commit_with(Op::PutRecord { key, value, expect, ttl: None })?;
            if context.attempt() == 1 && balance % 3 == 1 { Err(std::io::Error::other("after the effect"))? }
            Ok(())
        }
        stage.retry(20, SECOND).await;
        stage.faults.lost_settle_answers.store(5, SeqCst);
        let mut ids = Vec::new();
        for n in 0..10 {
            ids.push(stage.send(&format!("m{n}")).await);
        }
        let worker = run(stage.worker().handle(QUEUE, handler(deposit).with_effects().idempotent()));
        for id in &ids {
            stage.reaches(id, MessageState::Done).await;
        }
        worker.stop().await;
        let query = RecordQuery::Keys(vec![RecordKey::try_from("bank/balance/1").unwrap()]);
        let balance = stage.onward.engine().get_records(query).await.unwrap().items.pop().unwrap();
        assert_eq!(&balance.value[..], b"10");
    }

    async fn a_refused_effect_is_a_failed_attempt(stage: Stage) {
        stage.retry(1, SECOND).await;
        let worker = run(stage.worker().handle(QUEUE, async |context: Context| -> work::Result {
            let (key, expect) = (RecordKey::try_from("bank/none")?, RecordExpect::Present);
            Ok(context.commit_with(Op::PutRecord { key, value: "x".into(), expect, ttl: None })?)
        }));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert!(dead.causes[0].failure.error.contains("was refused"), "{:?}", dead.causes);
        assert_eq!(worker.stop().await.failed, 1);
    }
}

/// Engines that can't commit a record and an acknowledgement together claim, run, record and acknowledge in turn.
mod without_a_common_commit {
    use super::*;

    async fn stage() -> Stage {
        Stage::memory(AtomicScope::Operation).await
    }

    #[proves("G3")]
    #[tokio::test(start_paused = true)]
    async fn what_was_processed_is_skipped() {
        a_second_message_of_one_key_is_skipped(stage().await).await;
    }

    #[proves("G7")]
    #[tokio::test(start_paused = true)]
    async fn a_failure_leaves_the_key_free() {
        a_failed_attempt_marks_nothing_as_processed(stage().await).await;
    }

    #[proves("G7")]
    #[tokio::test(start_paused = true)]
    async fn concurrent_duplicates_wait_for_each_other() {
        concurrent_duplicates_run_one_after_the_other(stage().await).await;
    }

    #[proves("G4")]
    #[tokio::test(start_paused = true)]
    async fn effects_with_the_acknowledgement_are_refused_before_they_happen() {
        let stage = stage().await;
        let emit = async |context: Context| -> work::Result {
            context.emit("next", Message::builder("next.step"))?;
            Ok(())
        };
        let worker = run(stage.worker().handle(QUEUE, emit));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert!(dead.causes[0].failure.error.contains("all-or-nothing"), "{:?}", dead.causes);
        worker.stop().await;
    }
}
