//! What is collected, and when.

use crate::stage::{Stage, message};
use onward_core::{
    CauseKind, Engine, Failure, Filter, InletConfig, Outcome, RetryDelay, StartFrom, TopicConfig,
    TopologyChange,
};
use onward_patterns::claim_check::{Collected, GRACE_DEFAULT};
use std::time::Duration;

const KEPT: Collected = Collected { removed: 0, kept: 1, young: 0 };

#[tokio::test]
async fn a_payload_is_kept_as_long_as_its_message_is_in_hand_and_no_longer() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    stage.put(&queue, "m", 5_000).await.unwrap();
    let collect = || stage.engine.collect(Duration::ZERO);
    assert_eq!(collect().await.unwrap(), KEPT, "waiting");
    let delivery = stage.take_one("pictures").await;
    assert_eq!(collect().await.unwrap(), KEPT, "leased");
    let failure = Failure::new(CauseKind::Transient, "again");
    let delay = RetryDelay::After(Duration::from_millis(1));
    stage.settle(&delivery, Outcome::Retry { delay, failure: failure.clone() }).await;
    assert_eq!(collect().await.unwrap(), KEPT, "delayed");
    stage.settle(&stage.take_one("pictures").await, Outcome::Reject { failure }).await;
    assert_eq!(collect().await.unwrap(), KEPT, "dead");
    stage.put(&queue, "other", 5_000).await.unwrap();
    stage.ack(&stage.take_one("pictures").await).await;
    assert_eq!(collect().await.unwrap(), Collected { removed: 1, ..KEPT }, "one done");
    assert_eq!((stage.files().len(), collect().await.unwrap()), (1, KEPT));
}

#[tokio::test]
async fn a_payload_of_a_topic_is_kept_for_every_subscription_and_for_replay() {
    let stage = Stage::new();
    let topic: onward_core::Name = "arrivals".parse().unwrap();
    let config = TopicConfig::default();
    stage.engine.declare(TopologyChange::Topic { name: topic.clone(), config, update: false }).await.unwrap();
    for name in ["thumbnails", "index"] {
        let change = TopologyChange::Subscription {
            topic: topic.clone(),
            name: name.into(),
            config: Box::default(),
            filter: Filter::default(),
            start: StartFrom::Now,
            update: false,
        };
        stage.engine.declare(change).await.unwrap();
    }
    let publish = onward_core::Op::Publish { topic, message: Box::new(message("m", 5_000)) };
    stage.op(publish).await.unwrap();
    for inlet in ["arrivals:thumbnails", "arrivals:index"] {
        assert_eq!(stage.engine.collect(Duration::ZERO).await.unwrap(), KEPT, "before {inlet}");
        stage.ack(&stage.take_one(inlet).await).await;
    }
    let gone = Collected { removed: 1, kept: 0, young: 0 };
    assert_eq!(stage.engine.collect(Duration::ZERO).await.unwrap(), gone);
}

#[tokio::test]
async fn what_is_young_is_left_alone_and_so_is_what_is_not_ours() {
    let stage = Stage::new();
    let queue: onward_core::Name = "pictures".parse().unwrap();
    stage.put(&queue, "m", 5_000).await.unwrap();
    stage.ack(&stage.take_one("pictures").await).await;
    std::fs::write(stage.folder.path().join("readme.txt"), "not ours").unwrap();
    let young = Collected { young: 1, ..Collected::default() };
    assert_eq!(stage.engine.collect(GRACE_DEFAULT).await.unwrap(), young);
    assert_eq!(stage.engine.collect(Duration::ZERO).await.unwrap().removed, 1);
    assert_eq!(stage.files(), [stage.folder.path().join("readme.txt")]);
}

#[tokio::test]
async fn a_payload_whose_queue_is_gone_is_collected() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    stage.put(&queue, "m", 5_000).await.unwrap();
    let inlet = onward_core::Inlet::Queue(queue);
    stage.engine.declare(TopologyChange::DropInlet { inlet, only_if_empty: false }).await.unwrap();
    assert_eq!(stage.engine.collect(Duration::ZERO).await.unwrap().removed, 1);
}
