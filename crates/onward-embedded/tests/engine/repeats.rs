//! For how long a settlement is known again.

use crate::support::*;
use onward_core::*;
use onward_embedded::SETTLED_MAX;
use onward_proves::proves;

/// Puts, takes and acknowledges so many messages.
async fn settle_many(bench: &Bench, numbers: std::ops::Range<usize>) {
    let numbers: Vec<usize> = numbers.collect();
    for some in numbers.chunks(500) {
        let ids = some.iter().map(|number| bench.message(&format!("m{number}")));
        let op = |message: MessageBuilder| Op::Enqueue {
            queue: name(),
            message: Box::new(message.build(&*bench.env).unwrap()),
        };
        bench.commit(ids.map(op).collect()).await.unwrap();
        let held = bench.lease_many("p1", some.len() as u32).await;
        assert_eq!(held.len(), some.len());
        let op = |delivery: Delivery| Op::Settle { token: delivery.token, outcome: ack() };
        bench.commit(held.into_iter().map(op).collect()).await.unwrap();
    }
}

#[tokio::test]
#[proves("AD14")]
async fn a_settlement_is_told_to_be_a_repeat_for_as_many_later_ones_as_is_stated() {
    let bench = Bench::new();
    bench.put("first").await;
    let first = bench.lease().await.unwrap();
    bench.ack(&first).await;
    settle_many(&bench, 0..SETTLED_MAX).await;
    assert!(bench.ack(&first).await.already, "forgotten within the window");
    assert_eq!(kind(bench.settle(&first.token, reject()).await), ErrorKind::Conflict);
    settle_many(&bench, SETTLED_MAX..2 * SETTLED_MAX + 500).await;
    // Beyond it a repeat is taken for what comes late: it settles nothing.
    assert_eq!(kind(bench.settle(&first.token, ack()).await), ErrorKind::LeaseLost);
    assert_eq!(bench.stats().await.books.done, 2 * SETTLED_MAX as u64 + 501);
}
