//! Gathers: several messages, and what follows once all of them are done.

use crate::stage::{QUEUE, SECOND, Stage, run};
use onward::{
    GatherState, Message,
    core::{AtomicScope, InletConfig, MessageBuilder, MessageState, Selection},
    gather::PartState,
    work::{self, Context, Json, Permanent, State},
};
use onward_env::pass;
use onward_proves::proves;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

fn part(data: &str) -> MessageBuilder {
    Message::builder("test.part").json(data)
}

/// Ends as its data says; `Json` is its result.
async fn work(data: String, context: Context) -> work::Result<Json<String>> {
    let random = context.onward().env().random() % 50;
    pass(&**context.onward().env(), Duration::from_millis(random)).await;
    match &*data {
        "bad" => Err(Permanent("bad"))?,
        "flaky" if context.attempt() == 1 => Err(std::io::Error::other("once"))?,
        "hopeless" => Err(std::io::Error::other("always"))?,
        _ => Ok(Json(format!("{data}!"))),
    }
}

impl Stage {
    async fn accepted(&self, queue: &str) -> u64 {
        self.onward.stats(queue).await.unwrap().books.accepted
    }

    async fn gather_reaches(&self, id: &str, state: GatherState) {
        for _ in 0..1_000 {
            if self.onward.find_gather(id).await.unwrap().unwrap().state == state {
                return;
            }
            self.pass(SECOND).await;
        }
        panic!("{:?}", self.onward.find_gather(id).await.unwrap());
    }

    async fn queues(&self) {
        for queue in ["after", "failed"] {
            self.declare(queue, InletConfig::default()).await;
        }
    }
}

on_each_engine! {
    #[proves("T21")]
    async fn what_follows_is_released_once_by_the_last_of_a_hundred_racing_parts_whoever_is_killed(stage: Stage) {
        stage.queues().await;
        let parts = (0..100).map(|n| (QUEUE, part(&format!("{n}"))));
        assert!(stage.onward.gather("album").all(parts).then("after", part("publish")).start().await.unwrap());
        let parts = (0..100).map(|n| (QUEUE, part(&format!("{n}"))));
        let again = stage.onward.gather("album").all(parts).then("after", part("publish"));
        assert!(!again.start().await.unwrap(), "starting it again changes nothing");
        assert_eq!(stage.accepted(QUEUE).await, 100);
        let worker = || run(stage.worker().concurrency(16).handle(QUEUE, work));
        let mut workers = vec![worker(), worker(), worker()];
        for _ in 0..4 {
            stage.pass(Duration::from_millis(20)).await;
            workers.remove(0).kill().await;
            workers.push(worker());
        }
        for _ in 0..300 {
            stage.pass(SECOND).await;
            if stage.accepted("after").await > 0 {
                break;
            }
        }
        stage.pass(100 * SECOND).await;
        let books = stage.onward.stats(QUEUE).await.unwrap().books;
        assert_eq!((books.done, stage.accepted("after").await), (100, 1));
        for worker in workers {
            worker.stop().await;
        }
        let view = stage.onward.find_gather("album").await.unwrap().unwrap();
        assert!(view.steps[0].iter().all(|part| part.state == PartState::Done));
    }

    #[proves("T20")]
    async fn a_chain_runs_step_by_step_and_later_steps_see_the_results_of_earlier_ones(stage: Stage) {
        stage.queues().await;
        let seen = Arc::new(Mutex::new(Vec::<String>::new()));
        async fn last(context: Context, seen: State<Arc<Mutex<Vec<String>>>>) -> work::Result {
            for step in context.gather().await?.steps.iter().take(2) {
                seen.lock().unwrap().push(step[0].result::<String>()?);
            }
            Ok(())
        }
        let worker = stage.worker().state(seen.clone()).handle(QUEUE, work).handle("after", last);
        let worker = run(worker);
        let chain = stage.onward.gather("chain").then(QUEUE, part("one")).then(QUEUE, part("flaky")).then("after", part("three"));
        chain.start().await.unwrap();
        stage.gather_reaches("chain", GatherState::Done).await;
        assert_eq!(*seen.lock().unwrap(), ["one!", "flaky!"]);
        assert_eq!(worker.stop().await.done, 3);
    }
}

async fn stage() -> Stage {
    Stage::memory(AtomicScope::Store).await
}

#[proves("T20")]
#[tokio::test(start_paused = true)]
async fn every_mix_of_ends_leads_to_a_final_state_with_one_message_of_it() {
    let stage = stage().await;
    stage.retry(2, SECOND).await;
    stage.queues().await;
    let worker = run(stage.worker().handle(QUEUE, work));
    let ends = ["fine", "bad", "hopeless", "cancelled", "expired"];
    let mut cases: Vec<Vec<&str>> = vec![vec![]];
    for first in ends {
        cases.push(vec![first]);
        for second in ends {
            cases.push(vec![first, second]);
        }
    }
    let (mut done, mut failed) = (0, 0);
    for (n, case) in cases.iter().enumerate() {
        let far = Duration::from_secs(3_600);
        let parts = case.iter().map(|end| match *end {
            "cancelled" => (QUEUE, part(end).delay(far)),
            "expired" => (QUEUE, part(end).delay(SECOND * 60).ttl(SECOND * 61)),
            _ => (QUEUE, part(end)),
        });
        let id = format!("case {n}");
        if case.contains(&"expired") {
            // What is due is not taken before it expires.
            stage.onward.pause(QUEUE).await.unwrap();
        }
        let gather = stage.onward.gather(&id).all(parts).then("after", part("after"));
        gather.on_failure("failed", part("failed")).start().await.unwrap();
        for pending in &stage.onward.find_gather(&id).await.unwrap().unwrap().steps[0] {
            let view = stage.view(&pending.id).await;
            if view.message.data.parse::<String>().unwrap() == "cancelled" {
                stage.onward.cancel(QUEUE, &pending.id).await.unwrap();
            }
        }
        if case.contains(&"expired") {
            stage.pass(70 * SECOND).await;
            stage.onward.resume(QUEUE).await.unwrap();
        }
        match case.iter().all(|end| *end == "fine") {
            true => done += 1,
            false => {
                failed += 1;
                stage.gather_reaches(&id, GatherState::Failed).await;
            }
        }
    }
    stage.pass(300 * SECOND).await;
    assert_eq!((stage.accepted("after").await, stage.accepted("failed").await), (done, failed));
    worker.stop().await;
}

#[proves("T20")]
#[tokio::test(start_paused = true)]
async fn a_dead_part_can_be_waited_for_until_it_is_redriven() {
    let stage = stage().await;
    stage.queues().await;
    let worker = run(stage.worker().handle(QUEUE, async |data: String, context: Context| -> work::Result {
        if data == "bad" && context.causes().is_empty() {
            Err(Permanent("bad"))?
        }
        Ok(())
    }));
    let gather = stage.onward.gather("g").all([(QUEUE, part("bad")), (QUEUE, part("fine"))]);
    gather.then("after", part("after")).wait_for_redrive().start().await.unwrap();
    let bad = stage.onward.find_gather("g").await.unwrap().unwrap().steps[0][0].id.clone();
    stage.reaches(&bad, MessageState::Dead).await;
    stage.pass(300 * SECOND).await;
    assert_eq!(stage.accepted("after").await, 0);
    stage.onward.redrive(QUEUE, Selection::default()).await.unwrap();
    stage.reaches(&bad, MessageState::Done).await;
    assert_eq!(stage.accepted("after").await, 1);
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_common_commit_a_gather_is_refused_before_anything_is_sent() {
    let stage = Stage::memory(AtomicScope::Operation).await;
    let refused = stage.onward.gather("g").then(QUEUE, part("a")).start().await.unwrap_err();
    assert_eq!(refused.kind(), onward::ErrorKind::Unsupported);
    assert_eq!(stage.accepted(QUEUE).await, 0);
}
