//! What a handler returns, and what becomes of its message.

use crate::stage::{QUEUE, SECOND, run, within_a_day};
use onward::{
    Message, MessageId,
    core::{CauseKind, MessageState},
    work::{self, Cancel, Context, Json, Permanent, Release, State, Stop, handler},
};
use onward_env::pass;
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::{Notify, mpsc};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Welcome {
    user: u64,
}

on_each_engine! {
    #[proves("G2", "A1")]
    async fn a_message_is_acknowledged_only_after_its_handler_returned(stage: Stage) {
        let (started, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begin, until) = (started.clone(), go.clone());
        let worker = run(stage.worker().handle(QUEUE, move || {
            let (begin, until) = (begin.clone(), until.clone());
            async move {
                begin.notify_one();
                until.notified().await;
            }
        }));
        let id = stage.send("a").await;
        started.notified().await;
        assert_eq!(stage.state(&id).await, Some(MessageState::Leased));
        go.notify_one();
        stage.reaches(&id, MessageState::Done).await;
        assert_eq!(worker.stop().await.done, 1);
    }

    async fn a_handler_takes_data_message_context_and_state_in_any_shape(stage: Stage) {
        stage.declare("json", Default::default()).await;
        stage.declare("whole", Default::default()).await;
        stage.declare("context", Default::default()).await;
        let (tell, mut told) = mpsc::unbounded_channel::<String>();
        async fn plain(welcome: Welcome, context: Context, tell: State<mpsc::UnboundedSender<String>>) {
            tell.send(format!("plain {} {}", welcome.user, context.attempt())).unwrap();
        }
        async fn json(Json(welcome): Json<Welcome>, message: Message, tell: State<mpsc::UnboundedSender<String>>) {
            tell.send(format!("json {} {}", welcome.user, message.id)).unwrap();
        }
        async fn whole(message: Message, tell: State<mpsc::UnboundedSender<String>>) -> work::Result {
            tell.send(format!("whole {}", message.kind))?;
            Ok(())
        }
        async fn context(context: Context, tell: State<mpsc::UnboundedSender<String>>) {
            tell.send(format!("context {}", context.inlet())).unwrap();
        }
        let worker = stage.worker().state(tell).handle(QUEUE, plain).handle("json", json);
        let worker = run(worker.handle("whole", whole).handle("context", context));
        for queue in [QUEUE, "json", "whole", "context"] {
            let id = MessageId::try_from("an-id").unwrap();
            let message = Message::builder("user.joined").id(id).json(&Welcome { user: 7 });
            stage.onward.enqueue(queue, message).await.unwrap();
        }
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(within_a_day(told.recv()).await.unwrap());
        }
        all.sort();
        assert_eq!(all, ["context context", "json 7 an-id", "plain 7 1", "whole user.joined"]);
        assert_eq!(worker.stop().await.done, 4);
    }

    #[proves("T55", "H3")]
    async fn a_panic_is_a_failed_attempt_with_its_message_and_the_worker_goes_on(stage: Stage) {
        stage.retry(2, SECOND).await;
        let worker = run(stage.worker().concurrency(1).handle(QUEUE, async |name: String| {
            assert_ne!(name, "bad", "a bad day");
        }));
        let (bad, good) = (stage.send("bad").await, stage.send("good").await);
        let dead = stage.reaches(&bad, MessageState::Dead).await;
        stage.reaches(&good, MessageState::Done).await;
        let causes: Vec<_> = dead.causes.iter().map(|cause| (cause.failure.kind, cause.attempt)).collect();
        assert_eq!(causes, [(CauseKind::Panicked, 1), (CauseKind::Panicked, 2)]);
        let failure = &dead.causes[0].failure;
        assert!(failure.error.contains("a bad day"), "{}", failure.error);
        assert!(failure.detail.as_ref().unwrap().contains("outcomes.rs"), "{:?}", failure.detail);
        assert_eq!((&*dead.causes[0].worker, worker.stop().await.failed), ("tester", 2));
    }

    #[proves("T55")]
    async fn a_panic_before_the_first_await_is_caught_as_well(stage: Stage) {
        stage.retry(1, SECOND).await;
        let worker = run(stage.worker().handle(QUEUE, |name: String| {
            assert!(name.is_empty(), "at once");
            async {}
        }));
        let dead = stage.send("x").await;
        let dead = stage.reaches(&dead, MessageState::Dead).await;
        assert_eq!(dead.causes[0].failure.kind, CauseKind::Panicked);
        assert_eq!(worker.stop().await.failed, 1);
    }

    #[proves("T45", "T55", "H6")]
    async fn data_that_does_not_fit_is_a_dead_letter_with_its_bytes_and_the_reason(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async |_: Welcome| {}));
        let bad = stage.send_data("bad", &"no user").await;
        let good = stage.send_data("good", &Welcome { user: 1 }).await;
        let dead = stage.reaches(&bad, MessageState::Dead).await;
        stage.reaches(&good, MessageState::Done).await;
        assert_eq!(dead.causes.len(), 1);
        assert_eq!(dead.causes[0].failure.kind, CauseKind::Undecodable);
        assert!(dead.causes[0].failure.error.contains("does not fit"), "{:?}", dead.causes);
        assert_eq!(&dead.message.data.as_bytes()[..], b"\"no user\"");
        assert_eq!(worker.stop().await.failed, 1);
    }

    #[proves("T55", "H7")]
    async fn a_handler_that_takes_too_long_is_told_then_dropped_and_the_worker_goes_on(stage: Stage) {
        stage.retry(1, SECOND).await;
        let (tell, mut told) = mpsc::unbounded_channel::<Stop>();
        async fn slow(name: String, context: Context, tell: State<mpsc::UnboundedSender<Stop>>) {
            if name == "slow" {
                tell.send(context.cancelled().await).unwrap();
                std::future::pending::<()>().await;
            }
        }
        let slow = handler(slow).timeout(60 * SECOND);
        let worker = run(stage.worker().concurrency(1).state(tell).handle(QUEUE, slow));
        let (slow, next) = (stage.send("slow").await, stage.send("next").await);
        let begun = stage.now();
        assert_eq!(within_a_day(told.recv()).await, Some(Stop::Timeout));
        let told_after = stage.now() - begun;
        assert!((60 * SECOND..62 * SECOND).contains(&told_after), "{told_after:?}");
        let dead = stage.reaches(&slow, MessageState::Dead).await;
        assert_eq!(dead.causes[0].failure.kind, CauseKind::Timeout);
        stage.reaches(&next, MessageState::Done).await;
        let report = worker.stop().await;
        assert_eq!((report.failed, report.done), (1, 1));
    }

    async fn a_handler_may_give_itself_more_time(stage: Stage) {
        async fn long(context: Context) {
            context.extend(300 * SECOND);
            pass(&**context.onward().env(), 200 * SECOND).await;
        }
        let worker = run(stage.worker().handle(QUEUE, handler(long).timeout(60 * SECOND)));
        let id = stage.send("a").await;
        assert_eq!(stage.reaches(&id, MessageState::Done).await.attempts, 1);
        worker.stop().await;
    }

    #[proves("T45", "H6")]
    async fn an_unknown_type_is_left_to_others_and_then_set_aside(stage: Stage) {
        let known = handler(async || {}).kind("known");
        let worker = run(stage.worker().unknown_releases_max(3).handle(QUEUE, known));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        let causes: Vec<_> = dead.causes.iter().map(|cause| (cause.failure.kind, cause.attempt)).collect();
        assert_eq!(causes, [(CauseKind::UnknownType, 1)], "leaving it counts no attempt");
        let report = worker.stop().await;
        assert_eq!((report.released, report.failed), (3, 1));
    }

    #[proves("T45", "T46")]
    async fn a_type_that_one_worker_does_not_know_is_done_by_another_that_does(stage: Stage) {
        let old = run(stage.worker().handle(QUEUE, handler(async || {}).kind("old.kind")));
        let id = stage.send("a").await;
        stage.pass(2 * SECOND).await;
        let new = run(stage.worker().handle(QUEUE, handler(async || {}).kind("test.kind")));
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!(done.attempts, 1);
        assert_eq!((new.stop().await.done, old.stop().await.done), (1, 0));
    }

    async fn what_a_handler_puts_back_counts_no_attempt_and_waits_as_long_as_it_says(stage: Stage) {
        let runs = Arc::new(AtomicU32::new(0));
        let count = runs.clone();
        let worker = run(stage.worker().handle(QUEUE, move |context: Context| {
            let first = count.fetch_add(1, SeqCst) == 0;
            async move {
                assert_eq!(context.attempt(), 1);
                if first { Err(Release(Duration::from_secs(30)))? }
                Ok::<(), work::Error>(())
            }
        }));
        let (begun, id) = (stage.now(), stage.send("a").await);
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!((done.attempts, done.causes.len()), (1, 0));
        assert!(stage.now() - begun >= 30 * SECOND);
        let report = worker.stop().await;
        assert_eq!((report.released, report.done), (1, 1));
    }

    #[proves("H1")]
    async fn a_permanent_error_goes_to_the_dead_letters_at_once(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async || -> work::Result { Err(Permanent("no such user"))? }));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert_eq!((dead.attempts, dead.causes[0].failure.kind), (1, CauseKind::Permanent));
        assert_eq!(&*dead.causes[0].failure.error, "no such user");
        worker.stop().await;
    }

    async fn a_handler_can_cancel_its_message(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async || -> work::Result { Err(Cancel)? }));
        let id = stage.send("a").await;
        stage.reaches(&id, MessageState::Cancelled).await;
        assert_eq!(worker.stop().await.cancelled, 1);
    }

    async fn what_a_handler_answers_is_kept_as_the_result(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async |name: String| Json(format!("hello {name}"))));
        let id = stage.send("a").await;
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!(done.result.unwrap().parse::<String>().unwrap(), "hello a");
        worker.stop().await;
    }

    #[proves("F2")]
    async fn what_a_handler_emits_carries_correlation_and_causation_and_goes_with_the_acknowledgement(stage: Stage) {
        stage.retry(5, SECOND).await;
        stage.declare("next", Default::default()).await;
        async fn pass_on(name: String, context: Context) -> work::Result {
            context.emit("next", Message::builder("next.step").json(&name))?;
            if context.attempt() == 1 { return Err(std::io::Error::other("not yet").into()); }
            Ok(())
        }
        let worker = run(stage.worker().handle(QUEUE, pass_on));
        let message = Message::builder("test.kind").json("a").correlation_id("order-7");
        let id = stage.onward.enqueue(QUEUE, message).await.unwrap().id;
        stage.reaches(&id, MessageState::Done).await;
        worker.stop().await;
        let query = onward::core::MessageQuery::state("next".parse().unwrap(), MessageState::Waiting, 10);
        let next = stage.onward.engine().find(query).await.unwrap().items;
        assert_eq!(next.len(), 1, "the failed attempt emitted nothing");
        assert_eq!(next[0].message.correlation_id.as_deref(), Some("order-7"));
        assert_eq!(next[0].message.causation_id.as_deref(), Some(id.as_str()));
    }
}
