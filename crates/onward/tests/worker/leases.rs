//! What a worker holds, for how long, and what happens when it can't.

use crate::{
    gauge::{Gauge, run_for},
    stage::{LEASE, QUEUE, SECOND, Stage, run, within_a_day},
};
use onward::{
    ErrorKind, Message,
    core::{CauseKind, InletConfig, MessageState},
    work::{Context, State, Stop},
};
use onward_env::pass;
use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::sync::mpsc;

on_each_engine! {
    #[proves("T1")]
    async fn a_delayed_message_holds_no_lease_before_it_is_due(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        let message = Message::builder("test.kind").delay(10 * LEASE);
        let (begun, id) = (stage.now(), stage.onward.enqueue(QUEUE, message).await.unwrap().id);
        while stage.now() - begun < 10 * LEASE - SECOND {
            assert_eq!(stage.state(&id).await, Some(MessageState::Delayed));
            stage.pass(SECOND).await;
        }
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!((done.attempts, done.causes.len()), (1, 0));
        assert!(stage.now() - begun >= 10 * LEASE);
        worker.stop().await;
    }

    #[proves("T2", "B7")]
    async fn a_job_of_ten_leases_under_a_healthy_worker_starts_once(stage: Stage) {
        let gauge = Arc::new(Gauge::default());
        let (one, two) = (stage.worker().state(gauge.clone()), stage.worker().state(gauge.clone()));
        let (one, two) = (run(one.handle(QUEUE, run_for)), run(two.handle(QUEUE, run_for)));
        let id = stage.send_data("long", &100u64).await;
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!((done.attempts, gauge.starts()), (1, vec!["long".to_owned()]));
        assert_eq!(one.stop().await.done + two.stop().await.done, 1);
    }

    #[proves("T24")]
    async fn one_heartbeat_extends_all_that_the_process_holds(stage: Stage) {
        let gauge = Arc::new(Gauge::default());
        for n in 0..40 {
            stage.send_data(&format!("m{n}"), &95u64).await;
        }
        let worker = |count| stage.worker().state(gauge.clone()).concurrency(count).drain(60 * SECOND).handle(QUEUE, run_for);
        let (one, two) = (run(worker(30)), run(worker(10)));
        stage.pass(50 * SECOND).await;
        assert_eq!(stage.onward.stats(QUEUE).await.unwrap().books.leased, 40);
        assert_eq!(stage.faults.extended_together.load(SeqCst), 40);
        let extends = stage.faults.extends.load(SeqCst);
        assert!((12..=16).contains(&extends), "{extends} extensions in 5 leases, with one at each third");
        assert_eq!(one.stop().await.done + two.stop().await.done, 40);
    }

    #[proves("T4")]
    async fn a_handler_is_stopped_before_its_lease_can_end_when_the_engine_is_out_of_reach(stage: Stage) {
        let (tell, mut told) = mpsc::unbounded_channel::<(Stop, Duration)>();
        async fn wait(context: Context, tell: State<mpsc::UnboundedSender<(Stop, Duration)>>) {
            let env = context.onward().env().clone();
            let stop = context.cancelled().await;
            tell.send((stop, env.monotonic())).unwrap();
            /// Tells when the handler is dropped.
            struct Dropped(State<mpsc::UnboundedSender<(Stop, Duration)>>, Context);
            impl Drop for Dropped {
                fn drop(&mut self) {
                    self.0.send((Stop::LeaseLost, self.1.onward().env().monotonic())).unwrap_or_default();
                }
            }
            let _dropped = Dropped(tell, context);
            std::future::pending::<()>().await;
        }
        let worker = run(stage.worker().state(tell).handle(QUEUE, wait));
        stage.send("a").await;
        stage.pass(3 * LEASE).await;
        stage.faults.unreachable.store(true, SeqCst);
        // No extension can come after this moment, so the lease can't end later than a lease from here.
        let latest_end = stage.now() + LEASE;
        let (stop, asked) = within_a_day(told.recv()).await.unwrap();
        let (_, dropped) = within_a_day(told.recv()).await.unwrap();
        assert_eq!(stop, Stop::LeaseEnding);
        assert!(asked < dropped && dropped < latest_end, "{asked:?} {dropped:?} {latest_end:?}");
        stage.faults.unreachable.store(false, SeqCst);
        let (_, again) = within_a_day(told.recv()).await.map(|_| ((), stage.now())).unwrap();
        assert!(again > dropped, "the next attempt starts after the first was dropped");
        worker.kill().await;
    }

    #[proves("T3", "B7")]
    async fn a_worker_that_comes_back_after_its_lease_settles_nothing(stage: Stage) {
        stage.retry(5, SECOND / 10).await;
        let (tell, mut told) = mpsc::unbounded_channel::<Context>();
        async fn quick(context: Context, tell: State<mpsc::UnboundedSender<Context>>) {
            tell.send(context.clone()).unwrap();
            if context.attempt() == 1 {
                pass(&**context.onward().env(), 2 * SECOND).await;
            }
        }
        let worker = |stage: &Stage| stage.worker().poll(SECOND / 20).state(tell.clone()).handle(QUEUE, quick);
        stage.faults.hold_settles.store(true, SeqCst);
        let (stale, id) = (run(worker(&stage)), stage.send("a").await);
        let old = within_a_day(told.recv()).await.unwrap();
        stage.pass(LEASE - SECOND / 2).await;
        // Its acknowledgement is on the way when the lease ends; another worker takes the message and is done with it.
        stage.faults.hold_settles.store(false, SeqCst);
        let healthy = run(worker(&stage).name("healthy"));
        while stage.view(&id).await.causes.is_empty() {
            stage.pass_in_step(SECOND / 20).await;
        }
        let new = within_a_day(told.recv()).await.unwrap();
        while stage.state(&id).await != Some(MessageState::Done) {
            stage.pass_in_step(SECOND / 20).await;
        }
        assert_eq!((old.attempt(), new.attempt()), (1, 2));
        assert_eq!(stage.faults.stale_settles.load(SeqCst), 0);
        stage.faults.go.notify_one();
        stage.pass(SECOND).await;
        assert_eq!(stage.faults.stale_settles.load(SeqCst), 1);
        assert_eq!(old.save_progress("late").await.unwrap_err().kind(), ErrorKind::LeaseLost);
        let extended = stage.onward.engine().extend(vec![old.token().clone()], LEASE).await.unwrap();
        assert_eq!(extended[0].as_ref().unwrap_err().kind(), ErrorKind::LeaseLost);
        let (stale, healthy) = (stale.stop().await, healthy.stop().await);
        assert_eq!((stale.done + healthy.done, stale.lost + healthy.lost), (1, 1));
        let view = stage.view(&id).await;
        assert_eq!((view.state, view.attempts, view.causes.len()), (MessageState::Done, 2, 1));
    }

    #[proves("T34", "T5")]
    async fn a_worker_holds_nothing_that_it_cannot_start(stage: Stage) {
        let gauge = Arc::new(Gauge::default());
        for n in 0..10 {
            stage.send_data(&format!("m{n}"), &5u64).await;
        }
        let worker = || run(stage.worker().state(gauge.clone()).concurrency(2).handle(QUEUE, run_for));
        let one = worker();
        stage.pass(SECOND).await;
        let books = stage.onward.stats(QUEUE).await.unwrap().books;
        assert_eq!((books.leased, books.waiting), (2, 8));
        // A free worker finds work while the other is busy.
        let two = worker();
        stage.pass(SECOND).await;
        assert_eq!(gauge.starts().len(), 4);
        assert_eq!(one.stop().await.done + two.stop().await.done, 4);
    }

    async fn concurrency_holds_per_worker_and_per_inlet(stage: Stage) {
        stage.declare("few", InletConfig::default()).await;
        let (few, all) = (Arc::new(Gauge::default()), Arc::new(Gauge::default()));
        let both = (few.clone(), all.clone());
        async fn counted(context: Context, gauges: State<(Arc<Gauge>, Arc<Gauge>)>) {
            let (few, all) = &*gauges;
            let mine = if context.inlet().to_string() == "few" { few } else { all };
            mine.enter(context.id().as_str());
            all.enter("");
            pass(&**context.onward().env(), SECOND).await;
            mine.leave();
            all.leave();
        }
        for queue in [QUEUE, "few"] {
            for n in 0..30 {
                let id = onward::MessageId::try_from(format!("m{n}")).unwrap();
                stage.onward.enqueue(queue, Message::builder("k").id(id)).await.unwrap();
            }
        }
        let worker = stage.worker().state(both).concurrency(6).concurrency_of("few", 2);
        let worker = run(worker.handle(QUEUE, counted).handle("few", counted));
        stage.pass(120 * SECOND).await;
        assert_eq!(worker.stop().await.done, 60);
        assert_eq!(few.most.load(SeqCst), 2);
        // Those of the other queue count themselves twice.
        assert!(all.starts().len() == 90 && all.most.load(SeqCst) <= 12, "{}", all.most.load(SeqCst));
    }

    #[proves("B2", "T8")]
    async fn the_message_of_a_killed_worker_is_done_by_another(stage: Stage) {
        stage.retry(5, SECOND).await;
        let gauge = Arc::new(Gauge::default());
        let worker = || run(stage.worker().state(gauge.clone()).handle(QUEUE, run_for));
        let (killed, id) = (worker(), stage.send_data("a", &30u64).await);
        stage.pass(5 * SECOND).await;
        killed.kill().await;
        let another = worker();
        let done = stage.reaches(&id, MessageState::Done).await;
        assert_eq!((done.attempts, done.causes[0].failure.kind), (2, CauseKind::LeaseExpired));
        assert_eq!(another.stop().await.done, 1);
    }

    #[proves("T9")]
    async fn a_lease_that_ends_on_the_last_attempt_makes_a_dead_letter(stage: Stage) {
        stage.retry(1, SECOND).await;
        let gauge = Arc::new(Gauge::default());
        let worker = run(stage.worker().state(gauge.clone()).handle(QUEUE, run_for));
        let id = stage.send_data("a", &30u64).await;
        stage.pass(5 * SECOND).await;
        worker.kill().await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert_eq!(dead.causes[0].failure.kind, CauseKind::LeaseExpired);
        assert_eq!(gauge.starts().len(), 1);
    }
}
