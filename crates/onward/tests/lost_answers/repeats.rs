//! Every claim, settlement and write is repeated after its answer was lost, for every kind of inlet and every outcome.

use crate::setup::{Setup, emails, message};
use onward::Engine;
use onward::core::{
    CauseKind, ErrorKind, Event, EventRead, EventScope, Expected, Failure, Filter, Inlet, InletConfig, Op,
    Outcome, Receipt, RecordExpect, RecordKey, RetryDelay, StartFrom, TopicConfig, TopologyChange,
};
use onward_proves::proves;
use std::time::Duration;

const LATER: Duration = Duration::from_secs(3_600);

fn mail() -> Inlet {
    "news:mail".parse().unwrap()
}

async fn declare(setup: &Setup) {
    let config = TopicConfig { retention_ms: Some(7 * 24 * 3_600_000), ..TopicConfig::default() };
    let topic = TopologyChange::Topic { name: "news".parse().unwrap(), config, update: false };
    let subscription = TopologyChange::Subscription {
        topic: "news".parse().unwrap(),
        name: "mail".into(),
        config: Box::new(InletConfig::default()),
        filter: Filter::default(),
        start: StartFrom::Now,
        update: false,
    };
    for change in [topic, subscription] {
        setup.client.declare(change).await.unwrap();
    }
}

async fn publish(setup: &Setup, id: &str) {
    let op = Op::Publish { topic: "news".parse().unwrap(), message: Box::new(message(id)) };
    let receipt = setup.commit(op).await.unwrap();
    assert!(matches!(&receipt, Receipt::Accepted(accepted) if accepted.duplicate), "{receipt:?}");
}

fn outcomes() -> [Outcome; 4] {
    let failure = Failure::new(CauseKind::Transient, "no");
    [
        Outcome::Ack { result: None },
        Outcome::Retry { delay: RetryDelay::After(LATER), failure: failure.clone() },
        Outcome::Release { delay: LATER },
        Outcome::Reject { failure },
    ]
}

#[tokio::test]
#[proves("AD14", "LOG17")]
async fn every_claim_and_settlement_is_safe_to_repeat_also_after_a_restart() {
    let mut setup = Setup::new().await;
    declare(&setup).await;
    let mut settled = Vec::new();
    for (number, outcome) in outcomes().into_iter().enumerate() {
        setup.put(&format!("q{number}")).await;
        publish(&setup, &format!("t{number}")).await;
        for inlet in [emails(), mail()] {
            let delivery = setup.take(inlet).await;
            assert_eq!(delivery.attempt, 1, "a lost answer has counted an attempt");
            let op = Op::Settle { token: delivery.token, outcome: outcome.clone() };
            let receipt = setup.commit(op.clone()).await.unwrap();
            assert!(matches!(&receipt, Receipt::Settled(settled) if settled.already), "{receipt:?}");
            settled.push((op, receipt));
        }
    }
    setup.reopen().await;
    for (op, first) in settled {
        let Op::Settle { token, outcome } = op.clone() else { panic!("another operation") };
        assert_eq!(setup.once(op).await.unwrap(), first, "another answer after a restart");
        for other in outcomes().into_iter().filter(|other| *other != outcome) {
            let refused = setup.once(Op::Settle { token: token.clone(), outcome: other }).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        }
    }
    for stats in setup.client.stats(vec![emails(), mail()]).await.unwrap() {
        let books = stats.books;
        assert_eq!((books.accepted, books.done, books.dead, books.delayed), (4, 1, 1, 2), "{books:?}");
        assert_eq!(stats.deliveries, 4);
    }
}

#[tokio::test]
#[proves("AD14", "AD2")]
async fn what_is_published_appended_and_written_is_there_once_though_every_answer_was_lost() {
    let setup = Setup::new().await;
    declare(&setup).await;
    for id in ["a", "b"] {
        publish(&setup, id).await;
    }
    let kept = EventRead::all_of(EventScope::Topic("news".parse().unwrap()));
    assert_eq!(setup.client.read_events(kept).await.unwrap().events.len(), 2);
    for (id, expected) in [("e0", Expected::NoStream), ("e1", Expected::Revision(0)), ("e2", Expected::Any)] {
        let (stream, condition) = ("account-1".parse().unwrap(), None);
        let events = vec![Event { message: message(id), tags: Vec::new() }];
        let receipt = setup.commit(Op::Append { stream, events, expected, condition }).await.unwrap();
        assert!(matches!(&receipt, Receipt::Appended(appended) if appended.duplicate), "{receipt:?}");
    }
    let slice = setup.client.read_events(EventRead::all_of(EventScope::All)).await.unwrap();
    assert_eq!(slice.events.iter().map(|event| event.revision).collect::<Vec<_>>(), [0, 1, 2]);
    // A record's condition no longer holds when the write happened at the first time: the caller reads and sees it.
    let (key, value) = (RecordKey::try_from("a").unwrap(), "1".into());
    let put = Op::PutRecord { key, value, expect: RecordExpect::Absent, ttl: None };
    assert_eq!(setup.commit(put).await.unwrap_err().kind(), ErrorKind::Conflict);
}
