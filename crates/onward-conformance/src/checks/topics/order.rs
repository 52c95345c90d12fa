//! Order, failures and deaths within one subscription.

use super::support::Sub;
use crate::bench::{reject, retry_after, rules};
use crate::check::{ensure, ensure_eq};
use crate::{Bench, Done};
use onward_core::{
    BulkId, InletConfig, LeaseRequest, MessageState, Op, OrderPolicy, ProcessId, Selection, StuckHead,
    TopicConfig,
};
use std::time::Duration;

/// More messages than any engine takes ahead, so that a stuck key must not fill what it looks at.
const MANY: u64 = 600;

pub(super) async fn key_order_in_a_subscription(b: &mut Bench) -> Done {
    let config = InletConfig { order: OrderPolicy::ByKey { stuck_head: StuckHead::Wait }, ..rules() };
    let sub = Sub::new(b, TopicConfig::default(), config).await?;
    for index in 0..MANY {
        sub.publish(b, b.message(&format!("a{index}")).order_key("a")).await?;
    }
    for index in 0..5 {
        sub.publish(b, b.message(&format!("b{index}")).order_key("b")).await?;
    }
    let head = sub.await_take(b).await?;
    ensure_eq!(head.message.id.as_str(), "a0", "the first of its key");
    // While the first of `a` is held and fails for good, `b` goes on in order.
    sub.takes(b, &["b0", "b1"]).await?;
    b.settle(&head.token, reject()).await?;
    sub.takes(b, &["b2", "b3", "b4"]).await?;
    sub.nothing(b).await?;
    let redrive = Op::Redrive {
        inlet: sub.inlet.clone(),
        selection: Selection::default(),
        spacing: Duration::ZERO,
        bulk: BulkId::generate(b.env()),
        dry_run: false,
    };
    b.op(redrive).await?;
    for index in 0..10 {
        sub.takes(b, &[&format!("a{index}")]).await?;
    }
    let many = LeaseRequest { count_max: 10, ..sub.request(b) };
    let held = b.engine().lease(many).await?;
    ensure_eq!(held.len(), 1, "messages of one key held at once");
    b.settle(&held[0].token, retry_after(Duration::from_millis(50))).await?;
    sub.nothing(b).await?;
    sub.takes(b, &["a10", "a11"]).await
}

pub(super) async fn subscription_retries_and_dead_letters(b: &mut Bench) -> Done {
    let mut config = rules();
    config.retry.attempts_max = 3;
    let sub = Sub::new(b, TopicConfig::default(), config).await?;
    let other = sub.beside(b, "other").await?;
    sub.publish(b, b.message("m").header("a", "ü")).await?;
    for attempt in 1..=3 {
        let delivery = sub.await_take(b).await?;
        ensure_eq!(delivery.attempt, attempt, "the attempt");
        b.settle(&delivery.token, retry_after(Duration::from_millis(1))).await?;
    }
    sub.nothing(b).await?;
    let view = sub.view(b, "m").await?;
    let shown = view.as_ref().map(|v| (v.state, v.attempts, v.causes.len()));
    ensure_eq!(shown, Some((MessageState::Dead, 3, 3)), "state, attempts and causes");
    ensure_eq!(view.and_then(|v| v.message.headers.get("a").cloned()), Some("ü".into()), "its header");
    ensure_eq!(other.stats(b).await?.books.dead, 0, "dead letters of the other subscription");
    other.takes(b, &["m"]).await?;
    let redrive = Op::Redrive {
        inlet: sub.inlet.clone(),
        selection: Selection::default(),
        spacing: Duration::ZERO,
        bulk: BulkId::generate(b.env()),
        dry_run: false,
    };
    b.op(redrive).await?;
    sub.takes(b, &["m"]).await?;
    other.nothing(b).await?;
    ensure!(sub.stats(b).await?.books.balance(), "the books do not balance");
    Ok(())
}

pub(super) async fn rebalance_never_commits_past_gap(b: &mut Bench) -> Done {
    let sub = Sub::new(b, TopicConfig::default(), rules()).await?;
    sub.publish_ids(b, &["m0", "m1", "m2", "m3", "m4"]).await?;
    let doomed = LeaseRequest { count_max: 5, ..sub.request(b) };
    let doomed = LeaseRequest { holder: crate::bench::holder("w", "doomed"), ..doomed };
    let held = b.engine().lease(doomed).await?;
    ensure_eq!(held.len(), 5, "deliveries in flight");
    // The third and the last are acknowledged, then their worker dies.
    b.ack(&held[2]).await?;
    b.ack(&held[4]).await?;
    b.op(Op::EndProcess { process: ProcessId("doomed".into()), died: true }).await?;
    let stale = b.settle(&held[0].token, crate::bench::ack()).await;
    ensure!(stale.is_err(), "the lease of a dead process settles");
    sub.publish_ids(b, &["m5"]).await?;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let delivery = sub.await_take(b).await?;
        seen.push(delivery.message.id.to_string());
        b.ack(&delivery).await?;
    }
    seen.sort();
    ensure_eq!(seen, ["m0", "m1", "m3", "m5"], "what comes after the death");
    sub.nothing(b).await
}
