//! What is worked on at once, and how much in a time: per worker, per queue over all workers, and per key.

use crate::{
    gauge::Gauge,
    stage::{QUEUE, SECOND, Stage, run},
};
use onward::{
    Message, MessageId,
    core::{InletConfig, RateLimit},
    work::{Context, State},
};
use onward_env::pass;
use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

/// Runs for a second.
async fn a_second(context: Context, gauge: State<Arc<Gauge>>) {
    gauge.enter(context.id().as_str());
    pass(&**context.onward().env(), SECOND).await;
    gauge.leave();
}

async fn send(stage: &Stage, key: &str, count: u32) {
    for number in 0..count {
        let id = MessageId::try_from(format!("{key}{number}")).unwrap();
        let message = Message::builder("test.kind").id(id).json(&number).fairness_key(key);
        stage.onward.enqueue(QUEUE, message).await.unwrap();
    }
}

/// How many handlers started of each key within `span`, and how many ran at once at the most, with these rules and two
/// workers of up to `each`.
async fn within(stage: &Stage, config: InletConfig, each: u32, span: Duration) -> (usize, usize, u32) {
    stage.declare(QUEUE, config).await;
    send(stage, "a", 30).await;
    send(stage, "b", 30).await;
    let gauge = Arc::new(Gauge::default());
    let worker = |name: &str| {
        // A permit that comes back with time alone is found at the next look.
        let worker =
            stage.worker().name(name).concurrency(each).poll(HALF_A_SECOND / 10).state(gauge.clone());
        run(worker.handle(QUEUE, a_second))
    };
    let workers = [worker("one"), worker("two")];
    stage.pass(span).await;
    for worker in workers {
        worker.kill().await;
    }
    let starts = gauge.starts();
    let of = |key: &str| starts.iter().filter(|id| id.starts_with(key)).count();
    (of("a"), of("b"), gauge.most.load(SeqCst))
}

const HALF_A_SECOND: Duration = Duration::from_millis(500);

on_each_engine! {
    #[proves("B5")]
    async fn concurrency_and_rates_hold_per_worker_per_queue_over_all_workers_and_per_key(stage: Stage) {
        let rules = InletConfig::default;
        let (.., most) = within(&stage, rules(), 2, HALF_A_SECOND).await;
        assert_eq!(most, 4, "two of each worker");
        fresh(&stage).await;
        let (.., most) = within(&stage, InletConfig { concurrency_max: Some(3), ..rules() }, 8, HALF_A_SECOND).await;
        assert_eq!(most, 3, "over both workers");
        fresh(&stage).await;
        let per_key = InletConfig { concurrency_per_key_max: Some(2), ..rules() };
        assert_eq!(within(&stage, per_key, 8, HALF_A_SECOND).await, (2, 2, 4), "of each key");
        fresh(&stage).await;
        let rate = Some(RateLimit { count: 60, per_ms: 60_000, burst: 5 });
        let (a, b, _) = within(&stage, InletConfig { rate, ..rules() }, 8, 2 * SECOND + HALF_A_SECOND).await;
        assert_eq!(a + b, 5 + 2, "a burst of five, then one a second");
        fresh(&stage).await;
        let rate_per_key = Some(RateLimit { count: 2, per_ms: 1_000, burst: 1 });
        let (a, b, _) = within(&stage, InletConfig { rate_per_key, ..rules() }, 16, SECOND + HALF_A_SECOND / 2).await;
        assert_eq!((a, b), (3, 3), "of each key one at once, then two a second");
    }
}

/// The queue anew, without what it had.
async fn fresh(stage: &Stage) {
    let inlet = onward::core::Inlet::queue(QUEUE).unwrap();
    let change = onward::core::TopologyChange::DropInlet { inlet, only_if_empty: false };
    stage.onward.engine().declare(change).await.unwrap();
}
