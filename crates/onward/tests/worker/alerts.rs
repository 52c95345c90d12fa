//! What a worker tells without being asked, and what it tells whoever asks.

use crate::stage::{QUEUE, SECOND, Stage, run};
use onward::{
    Message,
    core::{AtomicScope, InletConfig, MessageState, OrderPolicy, StuckHead},
    work::{self, Alert, Context, Permanent, Scale, Worker},
};
use onward_env::pass;
use onward_proves::proves;
use std::{
    io,
    sync::{Arc, Mutex, atomic::Ordering::SeqCst},
    time::Duration,
};
use tracing_subscriber::fmt::MakeWriter;

/// Alerts as they came, by their names in metrics.
type Told = Arc<Mutex<Vec<Alert>>>;

fn tell(worker: Worker) -> (Worker, Told) {
    let told = Told::default();
    let note = told.clone();
    (worker.on_alert(move |alert| note.lock().unwrap().push(alert.clone())), told)
}

fn count(told: &Told, which: impl Fn(&Alert) -> bool) -> usize {
    told.lock().unwrap().iter().filter(|alert| which(alert)).count()
}

async fn enqueue(stage: &Stage, queue: &str, count: usize) {
    for _ in 0..count {
        stage.onward.enqueue(queue, Message::builder("test.kind").json("x")).await.unwrap();
    }
}

on_each_engine! {
    #[proves("T11")]
    async fn a_worker_that_lives_and_takes_nothing_while_work_waits_is_reported(stage: Stage) {
        stage.faults.lease_nothing.store(true, SeqCst);
        let (worker, told) = tell(stage.worker().handle(QUEUE, async || {}));
        let worker = run(worker);
        stage.pass(120 * SECOND).await;
        let nothing = |alert: &Alert| matches!(alert, Alert::TakesNothing { .. });
        assert_eq!(count(&told, nothing), 0, "nothing waits");
        enqueue(&stage, QUEUE, 1).await;
        stage.pass(60 * SECOND).await;
        assert_eq!(count(&told, nothing), 1, "once, while it lasts");
        stage.pass(400 * SECOND).await;
        assert_eq!(count(&told, nothing), 2, "and again after a while");
        worker.stop().await;
    }

    #[proves("H4")]
    async fn dead_letters_are_among_the_alerts(stage: Stage) {
        let (worker, told) = tell(stage.worker().handle(QUEUE, async || -> work::Result { Err(Permanent("bad"))? }));
        let worker = run(worker);
        let id = stage.send("a").await;
        stage.reaches(&id, MessageState::Dead).await;
        stage.pass(10 * SECOND).await;
        assert_eq!(count(&told, |alert| matches!(alert, Alert::Dead(dead) if dead.dead == 1)), 1);
        worker.stop().await;
    }
}

async fn stage() -> Stage {
    Stage::memory(AtomicScope::Store).await
}

#[proves("I2")]
#[tokio::test(start_paused = true)]
async fn a_queue_that_nobody_works_on_is_reported_and_a_paused_one_is_not() {
    let stage = stage().await;
    for queue in ["orphan", "paused", "empty"] {
        stage.declare(queue, InletConfig::default()).await;
    }
    enqueue(&stage, "orphan", 3).await;
    enqueue(&stage, "paused", 3).await;
    stage.onward.pause("paused").await.unwrap();
    let (worker, told) = tell(stage.worker().handle(QUEUE, async || {}));
    let worker = run(worker);
    stage.pass(130 * SECOND).await;
    let told = told.lock().unwrap().clone();
    let orphans: Vec<String> =
        told.iter().filter(|a| matches!(a, Alert::NoWorker { .. })).map(ToString::to_string).collect();
    assert_eq!(orphans.len(), 1, "{told:?}");
    assert!(
        orphans[0].starts_with("orphan: 3 wait") && orphans[0].ends_with("start a worker"),
        "{orphans:?}"
    );
    worker.stop().await;
}

#[proves("I2", "I1")]
#[tokio::test(start_paused = true)]
async fn lag_is_alerted_as_a_trend_and_by_age_with_the_signal_for_more_workers() {
    let stage = stage().await;
    let slow = async |context: Context| pass(&**context.onward().env(), 2 * SECOND).await;
    let (worker, told) = tell(stage.worker().concurrency(2).alert_age(40 * SECOND).handle(QUEUE, slow));
    let monitor = worker.monitor();
    let worker = run(worker);
    enqueue(&stage, QUEUE, 100).await;
    for _ in 0..30 {
        enqueue(&stage, QUEUE, 20).await;
        stage.pass(5 * SECOND).await;
    }
    assert!(count(&told, |alert| matches!(alert, Alert::Growing(_))) >= 1, "{told:?}");
    assert!(count(&told, |alert| matches!(alert, Alert::Old(_))) >= 1);
    let vitals = monitor.vitals();
    let lag = &vitals.lags[0];
    assert!(lag.depth > 200 && lag.drains_in.is_none(), "{lag:?}");
    assert!((3.5..4.5).contains(&lag.arrives) && (0.8..1.2).contains(&lag.leaves), "{lag:?}");
    assert!((2.5..3.5).contains(&lag.growth), "{lag:?}");
    assert!(vitals.utilisation > 0.9 && vitals.running == 2, "{vitals:?}");
    assert!(vitals.lease_answered_ago.unwrap() <= 3 * SECOND);
    assert_eq!((&*vitals.handlers[0].kind, vitals.handlers[0].failures), ("*", 0));
    assert!((vitals.handlers[0].longest.as_secs_f64() - 2.0).abs() < 0.1, "{:?}", vitals.handlers);
    let scale = Scale { workers_min: 1, workers_max: 20, drain_within: Duration::from_secs(600) };
    let wanted = monitor.workers_wanted(1, &scale);
    assert!((4..=6).contains(&wanted), "four times the pace arrives: {wanted}");
    worker.stop().await;
}

#[proves("J2")]
#[tokio::test(start_paused = true)]
async fn a_key_that_waits_behind_a_dead_letter_is_reported() {
    let stage = stage().await;
    let order = OrderPolicy::ByKey { stuck_head: StuckHead::Wait };
    stage.declare(QUEUE, InletConfig { order, ..InletConfig::default() }).await;
    let fails = async |name: String| -> work::Result {
        if name == "bad" {
            Err(Permanent("bad"))?
        }
        Ok(())
    };
    let (worker, told) = tell(stage.worker().handle(QUEUE, fails));
    for name in ["bad", "behind"] {
        let message = Message::builder("test.kind").order_key("k").json(name);
        stage.onward.enqueue(QUEUE, message).await.unwrap();
    }
    let worker = run(worker);
    stage.pass(20 * SECOND).await;
    assert_eq!(count(&told, |alert| matches!(alert, Alert::KeyStuck { blocked: 1, .. })), 1, "{told:?}");
    worker.stop().await;
}

/// The log as a person would see it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Runs a worker for five minutes, and gives the log.
async fn logged(worker: impl FnOnce(Worker) -> Worker, stage: &Stage) -> String {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let running = run(worker(stage.worker().handle(QUEUE, async || {})));
    stage.pass(300 * SECOND).await;
    running.stop().await;
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[proves("N6", "H4")]
#[tokio::test(start_paused = true)]
async fn without_anybody_to_tell_the_log_is_told_and_says_that_nobody_else_is() {
    let stage = stage().await;
    stage.declare("orphan", InletConfig::default()).await;
    enqueue(&stage, "orphan", 1).await;
    let alone = logged(|worker| worker, &stage).await;
    assert_eq!(alone.matches("nobody but this log is told").count(), 1, "{alone}");
    assert_eq!(alone.matches("start a worker").count(), 1, "{alone}");
    let heard = logged(|worker| worker.on_alert(|_| {}), &stage).await;
    assert!(!heard.contains("nobody but this log"), "{heard}");
    assert!(heard.contains("start a worker"), "the log is told all the same");
}
