//! Handlers of other kinds: plain functions on a thread, batches, and handlers within `tower` layers.

use crate::stage::{QUEUE, SECOND, run};
use onward::{
    core::{CauseKind, Curve, Jitter, MessageState, RetryPolicy},
    work::{self, Context, Item, Permanent, RetryAfter, State, batch, blocking, handler},
};
use onward_env::pass;
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};
use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

/// The sizes of the batches that were run.
type Sizes = Arc<Mutex<Vec<usize>>>;

/// Each message says what becomes of it.
fn in_batches(sizes: Sizes) -> work::Handling {
    batch(3, SECOND, move |items: Vec<Item<String>>| {
        sizes.lock().unwrap().push(items.len());
        async move {
            items
                .into_iter()
                .map(|item| match &*item.data {
                    "bad" => Err(Permanent("a bad row").into()),
                    "flaky" if item.context.attempt() == 1 => Err(io::Error::other("locked").into()),
                    _ => Ok(()),
                })
                .collect::<Vec<work::Result>>()
        }
    })
}

type Starts = Arc<Mutex<Vec<(String, Duration)>>>;

on_each_engine! {
    async fn a_plain_function_runs_on_a_thread_with_its_arguments(stage: Stage) {
        let here = std::thread::current().id();
        let seen = Arc::new(Mutex::new(None::<String>));
        let work = |name: String, context: Context, seen: State<Arc<Mutex<Option<String>>>>| -> work::Result {
            *seen.lock().unwrap() = Some(format!("{name} {} {:?}", context.attempt(), std::thread::current().id()));
            Ok(())
        };
        let worker = run(stage.worker().state(seen.clone()).handle(QUEUE, blocking(work)));
        let id = stage.send("a").await;
        stage.reaches(&id, MessageState::Done).await;
        let seen = seen.lock().unwrap().clone().unwrap();
        assert!(seen.starts_with("a 1 ") && !seen.ends_with(&format!("{here:?}")), "{seen}");
        assert_eq!(worker.stop().await.done, 1);
    }

    #[proves("T55")]
    async fn a_panic_on_a_thread_is_a_failed_attempt_with_its_place(stage: Stage) {
        stage.retry(1, SECOND).await;
        let worker = run(stage.worker().handle(QUEUE, blocking(|name: String| assert_eq!(name, "", "on a thread"))));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        let failure = &dead.causes[0].failure;
        assert_eq!(failure.kind, CauseKind::Panicked);
        assert!(failure.error.contains("on a thread"), "{}", failure.error);
        assert!(failure.detail.as_ref().unwrap().contains("kinds.rs"), "{:?}", failure.detail);
        assert_eq!(worker.stop().await.failed, 1);
    }

    #[proves("T45")]
    async fn data_that_a_plain_function_cannot_read_is_a_dead_letter(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, blocking(|_: u64| {})));
        let id = stage.send("not a number").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert_eq!(dead.causes[0].failure.kind, CauseKind::Undecodable);
        worker.stop().await;
    }

    #[proves("I2")]
    async fn each_message_of_a_batch_has_its_own_outcome(stage: Stage) {
        stage.retry(3, 10 * SECOND).await;
        let sizes = Sizes::default();
        let ids = [stage.send("fine").await, stage.send("bad").await, stage.send("flaky").await];
        let unread = stage.send_data("unread", &7u64).await;
        let worker = run(stage.worker().handle(QUEUE, in_batches(sizes.clone())));
        let fine = stage.reaches(&ids[0], MessageState::Done).await;
        let bad = stage.reaches(&ids[1], MessageState::Dead).await;
        let flaky = stage.reaches(&ids[2], MessageState::Done).await;
        let unread = stage.reaches(&unread, MessageState::Dead).await;
        assert_eq!((fine.attempts, flaky.attempts), (1, 2));
        assert_eq!(&*bad.causes[0].failure.error, "a bad row");
        assert_eq!(unread.causes[0].failure.kind, CauseKind::Undecodable);
        assert_eq!(*sizes.lock().unwrap(), [3, 1], "the three together, then the flaky one again");
        let report = worker.stop().await;
        assert_eq!((report.done, report.failed), (2, 3));
    }

    async fn a_batch_does_not_wait_for_more_than_it_takes_nor_longer_than_it_says(stage: Stage) {
        let sizes = Sizes::default();
        let mut ids = Vec::new();
        for n in 0..7 {
            ids.push(stage.send(&format!("m{n}")).await);
        }
        let begun = stage.now();
        let worker = run(stage.worker().handle(QUEUE, in_batches(sizes.clone())));
        for id in &ids {
            stage.reaches(id, MessageState::Done).await;
        }
        let mut sizes = sizes.lock().unwrap().clone();
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 3, 3]);
        assert!(stage.now() - begun < 5 * SECOND);
        worker.stop().await;
    }

    async fn with_too_few_outcomes_all_of_a_batch_have_failed(stage: Stage) {
        stage.retry(1, SECOND).await;
        let short = batch(2, SECOND, |items: Vec<Item<String>>| async move {
            items.into_iter().skip(1).map(|_| ()).collect::<Vec<()>>()
        });
        let ids = [stage.send("a").await, stage.send("b").await];
        let worker = run(stage.worker().handle(QUEUE, short));
        for id in &ids {
            let dead = stage.reaches(id, MessageState::Dead).await;
            assert_eq!(&*dead.causes[0].failure.error, "the batch handler answered 1 outcomes for 2 messages");
        }
        worker.stop().await;
    }

    async fn a_member_that_is_cancelled_leaves_its_batch_alone(stage: Stage) {
        let slow = batch(2, SECOND, |items: Vec<Item<String>>| async move {
            let env = items[0].context.onward().env().clone();
            pass(&*env, 40 * SECOND).await;
        });
        let worker = run(stage.worker().grace(SECOND).handle(QUEUE, slow));
        let ids = [stage.send("a").await, stage.send("b").await];
        stage.pass(5 * SECOND).await;
        stage.onward.cancel(QUEUE, &ids[0]).await.unwrap();
        stage.reaches(&ids[0], MessageState::Cancelled).await;
        assert_eq!(stage.reaches(&ids[1], MessageState::Done).await.attempts, 1);
        let report = worker.stop().await;
        assert_eq!((report.done, report.cancelled), (1, 1));
    }

    async fn a_panic_fails_a_batch_and_not_the_worker(stage: Stage) {
        stage.retry(2, SECOND).await;
        let calls = Arc::new(AtomicU32::new(0));
        let count = calls.clone();
        let flaky = batch(2, SECOND, move |_: Vec<Item<String>>| {
            let first = count.fetch_add(1, SeqCst) == 0;
            async move { assert!(!first, "the first time") }
        });
        let ids = [stage.send("a").await, stage.send("b").await];
        let worker = run(stage.worker().handle(QUEUE, flaky));
        for id in &ids {
            let done = stage.reaches(id, MessageState::Done).await;
            assert_eq!((done.attempts, done.causes[0].failure.kind), (2, CauseKind::Panicked));
        }
        worker.stop().await;
    }

    async fn layers_bound_and_time_a_handler_and_carry_its_errors_unchanged(stage: Stage) {
        stage.retry(1, SECOND).await;
        let most = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let gauge = most.clone();
        let work = move |name: String, context: Context| {
            let gauge = gauge.clone();
            async move {
                gauge.1.fetch_max(gauge.0.fetch_add(1, SeqCst) + 1, SeqCst);
                pass(&**context.onward().env(), if name == "slow" { 60 * SECOND } else { SECOND }).await;
                gauge.0.fetch_sub(1, SeqCst);
                if name == "bad" { Err(Permanent("no such row"))? }
                Ok::<_, work::Error>(())
            }
        };
        // Time is inside, so waiting for a place does not count.
        let layered = handler(work).layer(TimeoutLayer::new(20 * SECOND)).layer(ConcurrencyLimitLayer::new(1));
        let worker = run(stage.worker().handle(QUEUE, layered));
        let (fine, bad, slow) = (stage.send("fine").await, stage.send("bad").await, stage.send("slow").await);
        stage.reaches(&fine, MessageState::Done).await;
        let bad = stage.reaches(&bad, MessageState::Dead).await;
        let slow = stage.reaches(&slow, MessageState::Dead).await;
        assert_eq!((bad.causes[0].failure.kind, &*bad.causes[0].failure.error), (CauseKind::Permanent, "no such row"));
        assert_eq!((slow.causes[0].failure.kind, &*slow.causes[0].failure.error), (CauseKind::Transient, "request timed out"));
        assert_eq!(most.1.load(SeqCst), 1);
        worker.stop().await;
    }

    #[proves("H7")]
    async fn a_layer_that_repeats_the_handler_is_refused_since_one_layer_owns_retries(stage: Stage) {
        #[derive(Clone)]
        struct Again;
        impl<E> tower::retry::Policy<Context, Option<onward::Payload>, E> for Again {
            type Future = std::future::Ready<()>;
            fn retry(&mut self, _: &mut Context, answer: &mut Result<Option<onward::Payload>, E>) -> Option<Self::Future> {
                answer.is_err().then(|| std::future::ready(()))
            }
            fn clone_request(&mut self, context: &Context) -> Option<Context> {
                Some(context.clone())
            }
        }
        let runs = Arc::new(AtomicU32::new(0));
        let count = runs.clone();
        let fails = move || {
            count.fetch_add(1, SeqCst);
            async { Err::<(), _>(io::Error::other("down")) }
        };
        let repeated = handler(fails).layer(tower::retry::RetryLayer::new(Again)).layer(tower::util::MapResultLayer::new(
            |answer: Result<_, tower::BoxError>| answer,
        ));
        // Its own repetition has no end, so the worker's refusal must reach through it.
        let worker = run(stage.worker().handle(QUEUE, repeated.timeout(5 * SECOND)));
        let id = stage.send("a").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert!(dead.causes[0].failure.error.contains("retries are the queue's"), "{:?}", dead.causes);
        assert_eq!(runs.load(SeqCst), 1);
        worker.stop().await;
    }

    #[proves("B4", "H1")]
    async fn a_handler_has_its_own_policy_or_curve_and_an_error_that_says_how_long_goes_before(stage: Stage) {
        stage.retry(10, 600 * SECOND).await;
        stage.declare("curved", onward::core::InletConfig::default()).await;
        let starts = Arc::new(Mutex::new(Vec::<(String, Duration)>::new()));
        async fn fail(name: String, context: Context, starts: State<Starts>) -> work::Result {
            starts.lock().unwrap().push((name.clone(), context.onward().env().monotonic()));
            match (&*name, context.attempt()) {
                ("later", 1) => Err(RetryAfter(io::Error::other("429"), 90 * SECOND))?,
                (_, 1 | 2) => Err(io::Error::other("down"))?,
                _ => Ok(()),
            }
        }
        let policy = RetryPolicy { curve: Curve::Fixed { every_ms: 30_000 }, jitter: Jitter::None, ..RetryPolicy::default() };
        let by_policy = handler(fail).retry(policy);
        let by_curve = handler(fail).retry_curve(|attempt, _| Duration::from_secs(7) * attempt);
        let worker = run(stage.worker().state(starts.clone()).handle(QUEUE, by_policy).handle("curved", by_curve));
        let (plain, later) = (stage.send("plain").await, stage.send("later").await);
        stage.onward.enqueue("curved", onward::Message::builder("test.kind").json("curved")).await.unwrap();
        stage.reaches(&plain, MessageState::Done).await;
        stage.reaches(&later, MessageState::Done).await;
        let starts = starts.lock().unwrap().clone();
        let waits = |name: &str| {
            let of: Vec<_> = starts.iter().filter(|s| s.0 == name).map(|s| s.1).collect();
            of.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect::<Vec<_>>()
        };
        assert!(matches!(waits("plain")[..], [30..=31, 30..=31]), "{:?}", waits("plain"));
        assert!(matches!(waits("later")[..], [90..=91, 30..=31]), "{:?}", waits("later"));
        assert!(matches!(waits("curved")[..], [7..=8, 14..=15]), "{:?}", waits("curved"));
        worker.stop().await;
    }
}
