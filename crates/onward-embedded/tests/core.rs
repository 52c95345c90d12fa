//! Enqueue, lease, settle: the way of one message.

mod support;

use onward_core::*;
use onward_proves::proves;
use support::*;

#[tokio::test]
#[proves("B1", "B2")]
async fn a_message_goes_from_enqueue_to_ack_and_is_gone() {
    let bench = Bench::new();
    let accepted = bench.put("a").await;
    assert!(accepted.declared && !accepted.duplicate);
    assert_eq!(accepted.durability, Durability::Memory);
    let delivery = bench.lease().await.unwrap();
    assert_eq!((delivery.message.id.as_str(), delivery.attempt), ("a", 1));
    assert!(bench.lease().await.is_none());
    let settled = bench.ack(&delivery).await;
    assert_eq!((settled.state, settled.already), (MessageState::Done, false));
    assert!(bench.lease().await.is_none());
    let stats = bench.stats().await;
    assert_eq!((stats.books.accepted, stats.books.done, stats.bytes), (1, 1, 0));
}
