//! Answers that are lost on their way: what a caller makes of it, and that a repeat with the same ids is safe.

#![allow(clippy::unwrap_used, reason = "a test")]

mod repeats;
mod setup;

use onward::core::{ErrorKind, Failure, Op, Outcome, Receipt};
use onward_core::CauseKind;
use onward_proves::proves;
use setup::{Setup, emails};

#[tokio::test]
#[proves("T51", "AD2")]
async fn a_repeated_publish_answers_the_first_receipt() {
    let setup = Setup::new().await;
    let Receipt::Accepted(accepted) = setup.put("m1").await else { panic!("another receipt") };
    assert!(accepted.duplicate && accepted.id.as_str() == "m1");
}

#[tokio::test]
#[proves("AD14")]
async fn a_repeated_lease_request_gets_the_same_delivery_and_burns_no_attempt() {
    let setup = Setup::new().await;
    setup.put("m1").await;
    let delivery = setup.take(emails()).await;
    assert_eq!((delivery.message.id.as_str(), delivery.attempt), ("m1", 1));
}

#[tokio::test]
#[proves("AD14", "AD4")]
async fn a_repeated_settlement_is_told_so_and_another_outcome_is_a_conflict() {
    let setup = Setup::new().await;
    setup.put("m1").await;
    let token = setup.take(emails()).await.token;
    let ack = Op::Settle { token: token.clone(), outcome: Outcome::Ack { result: None } };
    let receipt = setup.commit(ack).await.unwrap();
    assert!(matches!(&receipt, Receipt::Settled(settled) if settled.already), "{receipt:?}");
    let failure = Failure::new(CauseKind::Permanent, "no");
    let reject = Op::Settle { token, outcome: Outcome::Reject { failure } };
    assert_eq!(setup.once(reject).await.unwrap_err().kind(), ErrorKind::Conflict);
}
