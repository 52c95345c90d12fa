//! What a worker refuses to start with, and what it warns of: each with a case that triggers it and one that doesn't.

use crate::stage::{QUEUE, SECOND, Stage};
use onward::{
    ErrorKind,
    core::{AtomicScope, InletConfig, OrderPolicy, StuckHead},
    work::{Handling, State, Worker, handler},
};
use onward_proves::proves;

async fn nothing() {}

async fn stage() -> Stage {
    Stage::memory(AtomicScope::Store).await
}

/// The refusal of a worker; none when it would start.
async fn refusal(worker: Worker) -> Option<String> {
    let error = worker.check().await.err()?;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.mend_text().is_some(), "{error} names no mend");
    let text = error.to_string();
    assert_eq!(worker.run_until(async {}).await.unwrap_err().to_string(), text);
    Some(text)
}

async fn refusal_of(stage: &Stage, handling: Handling) -> Option<String> {
    refusal(stage.worker().handle(QUEUE, handling)).await
}

#[proves("N2")]
#[tokio::test(start_paused = true)]
async fn a_handler_with_effects_and_without_idempotency_is_refused_unless_said() {
    let stage = stage().await;
    let refused = refusal_of(&stage, handler(nothing).with_effects()).await.unwrap();
    assert!(refused.contains("not idempotent"), "{refused}");
    assert_eq!(refusal_of(&stage, handler(nothing).with_effects().idempotent()).await, None);
    assert_eq!(refusal_of(&stage, handler(nothing).with_effects().effects_may_repeat()).await, None);
    assert_eq!(refusal_of(&stage, handler(nothing)).await, None);
}

#[proves("N7")]
#[tokio::test(start_paused = true)]
async fn a_handler_that_relies_on_order_is_refused_on_an_inlet_without() {
    let stage = stage().await;
    let refused = refusal_of(&stage, handler(nothing).ordered()).await.unwrap();
    assert!(refused.contains("keeps none"), "{refused}");
    let order = OrderPolicy::ByKey { stuck_head: StuckHead::Wait };
    stage.declare(QUEUE, InletConfig { order, ..InletConfig::default() }).await;
    assert_eq!(refusal_of(&stage, handler(nothing).ordered()).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_for_good_before_the_timeout_is_refused() {
    let stage = stage().await;
    let config = InletConfig { lease_total_max_ms: Some(60_000), ..InletConfig::default() };
    stage.declare(QUEUE, config).await;
    let refused = refusal_of(&stage, handler(nothing).timeout(61 * SECOND)).await.unwrap();
    assert!(refused.contains("ends for good"), "{refused}");
    assert_eq!(refusal_of(&stage, handler(nothing).timeout(60 * SECOND)).await, None);
}

#[proves("G3")]
#[tokio::test(start_paused = true)]
async fn keys_that_are_forgotten_before_the_last_retry_are_warned_of() {
    let stage = stage().await;
    let warnings = async |ttl| {
        let once = handler(nothing).idempotent().remember(ttl);
        stage.worker().handle(QUEUE, once).check().await.unwrap()
    };
    assert!(warnings(60 * SECOND).await[0].what.contains("forgotten"));
    assert_eq!(warnings(7 * 86_400 * SECOND).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_or_double_is_refused_before_anything_is_leased() {
    let stage = stage().await;
    async fn needs(_: State<String>) {}
    let refused = refusal_of(&stage, handler(needs)).await.unwrap();
    assert!(refused.contains("String"), "{refused}");
    assert_eq!(refusal(stage.worker().state("there".to_owned()).handle(QUEUE, needs)).await, None);

    let twice = stage.worker().handle(QUEUE, nothing).handle(QUEUE, nothing);
    assert!(refusal(twice).await.unwrap().contains("two handlers"));
    let by_kind = stage.worker().handle(QUEUE, handler(nothing).kind("a"));
    assert_eq!(refusal(by_kind.handle(QUEUE, handler(nothing).kind("b")).handle(QUEUE, nothing)).await, None);

    assert!(refusal(stage.worker()).await.unwrap().contains("nothing to do"));
    assert!(refusal(stage.worker().handle("Not A Name", nothing)).await.unwrap().contains("not a name"));
    assert!(refusal(stage.worker().handle(QUEUE, nothing).concurrency(0)).await.is_some());
    assert!(refusal(stage.worker().handle(QUEUE, nothing).concurrency_of("other", 1)).await.is_some());
}
