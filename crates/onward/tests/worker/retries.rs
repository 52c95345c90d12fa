//! How often and when a failed message comes again, and what its dead letter keeps.

use crate::stage::{QUEUE, SECOND, run, within_a_day};
use onward::{
    Message,
    core::{CauseKind, MessageState, RetryPolicy},
    work::{self, Class, Context, DeadAlarm, RetryAfter, State, handler},
};
use std::{io, sync::atomic::Ordering::SeqCst, time::Duration};
use tokio::sync::mpsc;

/// Tells when each attempt starts, and fails.
async fn fail(context: Context, tell: State<mpsc::UnboundedSender<Duration>>) -> work::Result {
    tell.send(context.onward().env().monotonic())?;
    Err(io::Error::other(format!("failure {}", context.attempt())).into())
}

on_each_engine! {
    #[proves("H1", "B4", "T52")]
    async fn a_transient_error_comes_again_after_the_queues_delay(stage: Stage) {
        stage.retry(3, 40 * SECOND).await;
        let (tell, mut told) = mpsc::unbounded_channel::<Duration>();
        let worker = run(stage.worker().state(tell).handle(QUEUE, fail));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        worker.stop().await;
        let starts: Vec<Duration> = std::iter::from_fn(|| told.try_recv().ok()).collect();
        assert_eq!((starts.len(), dead.attempts), (3, 3));
        for pair in starts.windows(2) {
            let wait = pair[1] - pair[0];
            assert!((40 * SECOND..45 * SECOND).contains(&wait), "{wait:?}");
        }
    }

    #[proves("H2", "H3")]
    async fn after_the_last_attempt_the_dead_letter_keeps_every_cause(stage: Stage) {
        stage.retry(3, SECOND).await;
        let (tell, _told) = mpsc::unbounded_channel::<Duration>();
        let worker = run(stage.worker().state(tell).handle(QUEUE, fail));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        let causes: Vec<_> = dead.causes.iter().map(|c| (c.attempt, &*c.failure.error, &*c.worker)).collect();
        let tester = "tester";
        assert_eq!(causes, [(1, "failure 1", tester), (2, "failure 2", tester), (3, "failure 3", tester)]);
        assert!(dead.causes.iter().all(|cause| cause.failure.kind == CauseKind::Transient));
        assert_eq!(dead.message.data.parse::<String>().unwrap(), "a");
        assert_eq!(worker.stop().await.failed, 3);
    }

    #[proves("H1")]
    async fn retry_after_is_honoured(stage: Stage) {
        let (tell, mut told) = mpsc::unbounded_channel::<Duration>();
        async fn busy(context: Context, tell: State<mpsc::UnboundedSender<Duration>>) -> work::Result {
            tell.send(context.onward().env().monotonic())?;
            match context.attempt() {
                1 => Err(RetryAfter(io::Error::other("too many requests"), 120 * SECOND))?,
                _ => Ok(()),
            }
        }
        let worker = run(stage.worker().state(tell).handle(QUEUE, busy));
        let id = stage.send("a").await;
        stage.reaches(&id, MessageState::Done).await;
        let (first, second) = (told.recv().await.unwrap(), told.recv().await.unwrap());
        assert!((120 * SECOND..123 * SECOND).contains(&(second - first)), "{:?}", second - first);
        worker.stop().await;
    }

    #[proves("B4")]
    async fn each_kind_of_error_has_its_own_policy(stage: Stage) {
        stage.retry(10, SECOND).await;
        async fn by_name(name: String) -> Result<(), io::Error> {
            Err(io::Error::from(if name == "twice" { io::ErrorKind::TimedOut } else { io::ErrorKind::NotFound }))
        }
        let twice = RetryPolicy { attempts_max: 2, ..RetryPolicy::default() };
        let sorted = handler(by_name).on_error(move |error: &io::Error| match error.kind() {
            io::ErrorKind::TimedOut => Class::Retry(twice.clone()),
            _ => Class::Permanent,
        });
        let worker = run(stage.worker().handle(QUEUE, sorted));
        let (once, twice) = (stage.send("once").await, stage.send("twice").await);
        let (once, twice) = (stage.reaches(&once, MessageState::Dead).await, stage.reaches(&twice, MessageState::Dead).await);
        assert_eq!((once.attempts, once.causes[0].failure.kind), (1, CauseKind::Permanent));
        assert_eq!((twice.attempts, twice.causes[1].failure.kind), (2, CauseKind::Transient));
        worker.stop().await;
    }

    async fn a_long_error_is_cut_at_its_bound(stage: Stage) {
        stage.retry(1, SECOND).await;
        let worker = run(stage.worker().handle(QUEUE, async || -> work::Result { Err(io::Error::other("é".repeat(10_000)))? }));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert_eq!(dead.causes[0].failure.error.len(), onward::core::FAILURE_BYTES_MAX);
        worker.stop().await;
    }

    #[proves("H4")]
    async fn dead_letters_are_reported_without_being_asked_for_and_not_as_a_flood(stage: Stage) {
        stage.retry(1, SECOND).await;
        let (tell, mut told) = mpsc::unbounded_channel::<DeadAlarm>();
        let (silence, _deaf) = mpsc::unbounded_channel::<Duration>();
        let worker = stage.worker().state(silence).handle(QUEUE, fail);
        let worker = run(worker.on_dead(move |alarm| tell.send(alarm.clone()).unwrap()));
        for n in 0..50 {
            stage.send(&format!("m{n}")).await;
        }
        let (mut alarms, mut new) = (0, 0);
        while new < 50 {
            let alarm = within_a_day(told.recv()).await.unwrap();
            assert_eq!((alarm.inlet.to_string(), alarm.dead), (QUEUE.to_owned(), new + alarm.new));
            assert_eq!(alarm.latest.unwrap().1, CauseKind::Transient);
            (alarms, new) = (alarms + 1, new + alarm.new);
        }
        assert!(alarms <= 3, "{alarms} alarms for 50 dead letters");
        worker.stop().await;
    }

    #[proves("T51", "G1")]
    async fn a_lost_answer_to_a_settlement_is_asked_for_again_and_nothing_runs_twice(stage: Stage) {
        stage.faults.lost_settle_answers.store(3, SeqCst);
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        let id = stage.send("a").await;
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!(done.attempts, 1);
        let report = worker.stop().await;
        assert_eq!((report.done, report.lost, stage.faults.lost_settle_answers.load(SeqCst)), (1, 0, 0));
    }

    #[proves("T51")]
    async fn a_lost_answer_to_a_lease_burns_no_attempt(stage: Stage) {
        stage.faults.lost_lease_answers.store(1, SeqCst);
        let id = stage.send("a").await;
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!((done.attempts, stage.faults.lost_lease_answers.load(SeqCst)), (1, 0));
        worker.stop().await;
    }

    #[proves("T15")]
    async fn an_engine_that_cannot_be_reached_is_asked_again_until_it_can(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        let message = Message::builder("test.kind").delay(300 * SECOND);
        let id = stage.onward.enqueue(QUEUE, message).await.unwrap().id;
        stage.pass(SECOND).await;
        stage.faults.unreachable.store(true, SeqCst);
        stage.pass(600 * SECOND).await;
        stage.faults.unreachable.store(false, SeqCst);
        let back = stage.now();
        let done = stage.reaches(&id, MessageState::Done).await;
        let took = stage.now() - back;
        assert!(done.attempts == 1 && took <= 10 * SECOND, "twice the cap of 5 s: {took:?}, {}", done.attempts);
        worker.stop().await;
    }
}
