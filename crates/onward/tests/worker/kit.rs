//! The testing kit, as users meet it.

use onward::{
    Message,
    core::{CauseKind, InletConfig},
    testing::Kit,
    work::{self, Permanent, Release},
};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

async fn work(name: String) -> work::Result {
    match &*name {
        "bad" => Err(Permanent("bad"))?,
        "later" => Err(Release(HOUR))?,
        _ => Ok(()),
    }
}

fn message(data: &str) -> onward::core::MessageBuilder {
    Message::builder("test.work").json(data)
}

#[tokio::test(start_paused = true)]
async fn what_is_due_runs_and_what_is_not_stays() {
    let kit = Kit::start();
    kit.declare("work", InletConfig::default()).await.unwrap();
    kit.onward().enqueue("work", message("now")).await.unwrap();
    kit.onward().enqueue("work", message("bad")).await.unwrap();
    kit.onward().enqueue("work", message("tomorrow").delay(24 * HOUR)).await.unwrap();
    let report = kit.run_due(kit.worker().handle("work", work)).await.unwrap();
    assert_eq!((report.done, report.failed), (1, 1));
    assert_eq!(kit.enqueued("work").await.len(), 1);
    assert_eq!(kit.dead("work").await[0].causes[0].failure.kind, CauseKind::Permanent);

    kit.pass(24 * HOUR).await;
    let report = kit.run_due(kit.worker().handle("work", work)).await.unwrap();
    assert_eq!((report.done, kit.enqueued("work").await.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn draining_lets_delays_pass_without_waiting_for_them() {
    let kit = Kit::start();
    kit.onward().enqueue("work", message("next week").delay(7 * 24 * HOUR)).await.unwrap();
    let report = kit.drain(kit.worker().handle("work", work)).await.unwrap();
    assert_eq!(report.done, 1);
    kit.assert_empty("work").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "no `mail.send` waits in `work`; there: [\"test.work\"]")]
async fn an_assertion_says_what_is_there_instead() {
    let kit = Kit::start();
    kit.onward().enqueue("work", message("a")).await.unwrap();
    kit.assert_enqueued("work", "test.work").await;
    kit.assert_enqueued("work", "mail.send").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "`work` is not empty")]
async fn a_dead_letter_is_not_empty() {
    let kit = Kit::start();
    kit.onward().enqueue("work", message("bad")).await.unwrap();
    kit.run_due(kit.worker().handle("work", work)).await.unwrap();
    kit.assert_empty("work").await;
}
