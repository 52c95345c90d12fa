//! The worker's flow: breakers, adaptive concurrency, shedding, producers at a full queue, priority and order of turns.

use crate::{
    gauge::Gauge,
    stage::{QUEUE, SECOND, run},
};
use onward::{
    ErrorKind, Message, WhenFull,
    core::{InletConfig, MessageState, RateLimit},
    work::{self, Adaptive, Breaker, Context, State, handler},
};
use onward_env::pass;
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
};

/// A dependency that a test takes down and up.
#[derive(Debug, Default)]
struct Downstream {
    down: AtomicBool,
    calls: AtomicU32,
}

async fn call(context: Context, downstream: State<Arc<Downstream>>) -> work::Result {
    pass(&**context.onward().env(), SECOND / 10).await;
    downstream.calls.fetch_add(1, SeqCst);
    match downstream.down.load(SeqCst) {
        true => Err(io::Error::other("connection refused"))?,
        false => Ok(()),
    }
}

on_each_engine! {
    #[proves("H7")]
    async fn while_a_dependency_is_down_consumption_pauses_and_no_attempts_are_burned(stage: Stage) {
        stage.retry(3, SECOND).await;
        let (downstream, breaker) = (Arc::new(Downstream::default()), Breaker::with("mail", 3, 10 * SECOND));
        downstream.down.store(true, SeqCst);
        let mut ids = Vec::new();
        for n in 0..20 {
            ids.push(stage.send(&format!("m{n}")).await);
        }
        let worker = stage.worker().concurrency(1).state(downstream.clone());
        let worker = run(worker.handle(QUEUE, handler(call).depends_on(&breaker)));
        stage.pass(5 * SECOND).await;
        assert!(breaker.is_open());
        assert_eq!(downstream.calls.load(SeqCst), 3);
        let deliveries = stage.onward.stats(QUEUE).await.unwrap().deliveries;
        stage.pass(3 * SECOND).await;
        assert_eq!(stage.onward.stats(QUEUE).await.unwrap().deliveries, deliveries, "nothing is even leased");
        stage.pass(600 * SECOND).await;
        let probes = downstream.calls.load(SeqCst) - 3;
        assert!((3..=8).contains(&probes), "ten minutes of pauses that double: {probes} probes");
        downstream.down.store(false, SeqCst);
        for id in &ids {
            let done = stage.reaches(id, MessageState::Done).await;
            assert!(done.attempts <= 3, "{done:?}");
        }
        assert!(!breaker.is_open());
        let report = worker.stop().await;
        assert_eq!((report.done, report.failed), (20, 2), "two failed before it opened, the third and all probes were put back");
    }

    async fn a_handler_of_another_dependency_goes_on(stage: Stage) {
        stage.declare("other", InletConfig::default()).await;
        let (downstream, breaker) = (Arc::new(Downstream::default()), Breaker::with("mail", 1, 300 * SECOND));
        downstream.down.store(true, SeqCst);
        let worker = stage.worker().state(downstream).handle(QUEUE, handler(call).depends_on(&breaker));
        let worker = run(worker.handle("other", async || {}));
        stage.send("a").await;
        stage.pass(5 * SECOND).await;
        assert!(breaker.is_open());
        stage.onward.enqueue("other", Message::builder("test.kind")).await.unwrap();
        stage.pass(3 * SECOND).await;
        assert_eq!(worker.stop().await.done, 1);
    }

    #[proves("I3")]
    async fn concurrency_follows_what_the_downstream_bears(stage: Stage) {
        stage.retry(1_000, SECOND).await;
        /// Bears six at once, and refuses more.
        async fn bears_six(context: Context, gauge: State<Arc<Gauge>>) -> work::Result {
            gauge.enter(context.id().as_str());
            let over = gauge.running.load(SeqCst) > 6;
            pass(&**context.onward().env(), SECOND).await;
            gauge.leave();
            if over { Err(io::Error::other("503"))? }
            Ok(())
        }
        let gauge = Arc::new(Gauge::default());
        let worker = stage.worker().state(gauge.clone()).concurrency(64).adaptive(Adaptive { min: 1, latency_max: None });
        let worker = worker.handle(QUEUE, bears_six);
        let monitor = worker.monitor();
        for n in 0..400 {
            stage.send(&format!("m{n}")).await;
        }
        let worker = run(worker);
        for _ in 0..30 {
            stage.pass(SECOND).await;
            assert!((1..=9).contains(&monitor.vitals().capacity), "{:?}", monitor.vitals());
        }
        assert!(gauge.most.load(SeqCst) > 4, "it rose from where it began");
        let report = worker.stop().await;
        assert!(report.done > 3 * report.failed, "{report:?}");
    }

    #[proves("I2")]
    async fn low_priority_that_is_old_is_shed_where_that_is_chosen_and_counted(stage: Stage) {
        let send = async |id: &str, priority| {
            let id = onward::MessageId::try_from(id).unwrap();
            let message = Message::builder("test.kind").id(id).priority(priority).json("x");
            stage.onward.enqueue(QUEUE, message).await.unwrap().id
        };
        let (low, high) = (send("low", 1).await, send("high", 6).await);
        stage.pass(120 * SECOND).await;
        let young = send("young", 1).await;
        let worker = run(stage.worker().handle(QUEUE, handler(async || {}).shed_below(3, 60 * SECOND)));
        stage.reaches(&low, MessageState::Cancelled).await;
        stage.reaches(&high, MessageState::Done).await;
        stage.reaches(&young, MessageState::Done).await;
        let report = worker.stop().await;
        assert_eq!((report.shed, report.done, report.cancelled), (1, 2, 0));
    }

    #[proves("I3")]
    async fn producers_at_a_full_queue_are_refused_or_held_back_as_they_choose(stage: Stage) {
        stage.declare(QUEUE, InletConfig { depth_max: 2, ..InletConfig::default() }).await;
        let message = || Message::builder("test.kind").json("x");
        let refused = stage.onward.producer(QUEUE, WhenFull::Refuse);
        refused.enqueue(message()).await.unwrap();
        refused.enqueue(message()).await.unwrap();
        assert_eq!(refused.enqueue(message()).await.unwrap_err().kind(), ErrorKind::Full);

        let begun = stage.now();
        let brief = stage.onward.producer(QUEUE, WhenFull::Block(5 * SECOND));
        assert_eq!(brief.enqueue(message()).await.unwrap_err().kind(), ErrorKind::Full);
        assert!((5 * SECOND..6 * SECOND).contains(&(stage.now() - begun)));

        let blocked = stage.onward.producer(QUEUE, WhenFull::Block(600 * SECOND));
        let waits = tokio::spawn(async move { blocked.enqueue(message()).await });
        stage.pass(20 * SECOND).await;
        assert!(!waits.is_finished());
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        let accepted = waits.await.unwrap().unwrap();
        assert!(!accepted.duplicate);
        stage.reaches(&accepted.id, MessageState::Done).await;
        worker.stop().await;
    }

    #[proves("I3")]
    async fn producers_can_be_slowed_before_the_queue_is_full(stage: Stage) {
        stage.declare(QUEUE, InletConfig { depth_max: 10, ..InletConfig::default() }).await;
        let slowed = stage.onward.producer(QUEUE, WhenFull::Delay(0.5, 10 * SECOND));
        let mut took = Vec::new();
        for _ in 0..10 {
            let begun = stage.now();
            slowed.enqueue(Message::builder("test.kind")).await.unwrap();
            took.push(stage.now() - begun);
            stage.pass(2 * SECOND).await;
        }
        assert!(took[..6].iter().all(|took| *took < SECOND), "{took:?}");
        assert!(took[6..].windows(2).all(|pair| pair[0] < pair[1]), "{took:?}");
        assert!((8 * SECOND..9 * SECOND).contains(&took[9]), "{took:?}");
    }

    #[proves("T33")]
    async fn priority_holds_through_a_rate_a_retry_and_a_pause(stage: Stage) {
        let rate = Some(RateLimit { count: 1, per_ms: 1_000, burst: 1 });
        let retry = onward::core::RetryPolicy {
            curve: onward::core::Curve::Fixed { every_ms: 500 },
            jitter: onward::core::Jitter::None,
            ..Default::default()
        };
        stage.declare(QUEUE, InletConfig { rate, retry, ..InletConfig::default() }).await;
        let order = Arc::new(Mutex::new(Vec::<String>::new()));
        async fn note(name: String, context: Context, order: State<Arc<Mutex<Vec<String>>>>) -> work::Result {
            order.lock().unwrap().push(name.clone());
            match (&*name, context.attempt()) {
                ("high 1", 1) => Err(io::Error::other("once"))?,
                _ => Ok(()),
            }
        }
        stage.onward.pause(QUEUE).await.unwrap();
        for name in ["low 1", "low 2", "high 1", "high 2"] {
            let priority = if name.starts_with("low") { 2 } else { 8 };
            stage.onward.enqueue(QUEUE, Message::builder("test.kind").priority(priority).json(name)).await.unwrap();
        }
        let worker = run(stage.worker().concurrency(1).state(order.clone()).handle(QUEUE, note));
        stage.pass(3 * SECOND).await;
        stage.onward.resume(QUEUE).await.unwrap();
        stage.pass(30 * SECOND).await;
        let mut order = order.lock().unwrap().clone();
        order[..3].sort();
        assert_eq!(order, ["high 1", "high 1", "high 2", "low 1", "low 2"]);
        worker.stop().await;
    }

    #[proves("T32")]
    async fn a_single_message_of_one_tenant_waits_at_most_one_round_of_another_with_many(stage: Stage) {
        let order = Arc::new(Mutex::new(Vec::<String>::new()));
        async fn note(name: String, order: State<Arc<Mutex<Vec<String>>>>) {
            order.lock().unwrap().push(name);
        }
        let send = async |tenant: &str| {
            let message = Message::builder("test.kind").fairness_key(tenant).json(tenant);
            stage.onward.enqueue(QUEUE, message).await.unwrap();
        };
        for _ in 0..300 {
            send("large").await;
        }
        send("small").await;
        let worker = stage.worker().concurrency(4).state(order.clone()).handle(QUEUE, note);
        worker.run_until_empty().await.unwrap();
        let place = order.lock().unwrap().iter().position(|name| name == "small").unwrap();
        assert!(place <= 4, "after {place} of the other");
    }

    #[proves("T34")]
    async fn no_free_worker_idles_while_another_holds_an_unstarted_message(stage: Stage) {
        let gauge = Arc::new(Gauge::default());
        let slow = || stage.worker().concurrency(2).state(gauge.clone()).handle(QUEUE, crate::gauge::run_for);
        let first = run(slow());
        for n in 0..5 {
            stage.send_data(&format!("m{n}"), &30u64).await;
        }
        stage.pass(2 * SECOND).await;
        assert_eq!(gauge.running.load(SeqCst), 2);
        assert_eq!(stage.onward.stats(QUEUE).await.unwrap().books.leased, 2, "nothing is held that does not run");
        let second = run(slow());
        stage.pass(2 * SECOND).await;
        assert_eq!(gauge.running.load(SeqCst), 4);
        stage.pass(120 * SECOND).await;
        assert_eq!(first.stop().await.done + second.stop().await.done, 5);
    }
}
