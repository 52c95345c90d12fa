//! What is staged reaches its destination, or stays where it can be seen.

use crate::stage::{Stage, commit, declare, ids_in, message, record, take, to_queue, view};
use onward_core::{
    CauseKind, ErrorKind, Inlet, InletConfig, MessageQuery, MessageState, Payload, RecordExpect,
};
use onward_env::SystemEnv;
use onward_patterns::outbox::Relayed;
use onward_proves::proves;
use std::time::Duration;

const ONE_SENT: Relayed = Relayed { sent: 1, again: 0, dead: 0 };

#[proves("G5")]
#[tokio::test]
async fn a_message_is_sent_when_its_change_is_made_and_never_when_it_is_not() {
    let stage = Stage::new().await;
    let staged = |id: &str| stage.outbox.stage(&to_queue("orders"), message(id)).unwrap();
    let change = |expect| record("order/1", expect);
    commit(&*stage.store, vec![change(RecordExpect::Absent), staged("placed")]).await.unwrap();
    let twice = commit(&*stage.store, vec![staged("ghost"), change(RecordExpect::Absent)]).await;
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(stage.relay.drain().await.unwrap(), ONE_SENT);
    let came = take(&*stage.target, "orders").await.message;
    assert_eq!((came.id.as_str(), &came.data), ("placed", &Payload::json("placed").unwrap()));
    assert_eq!(ids_in(&*stage.target, "orders").await, [""; 0]);
    let unsent = stage.outbox.unsent(&*stage.store).await.unwrap();
    assert_eq!((unsent.depth, unsent.dead, unsent.oldest_waiting), (0, 0, None));
}

#[tokio::test]
async fn what_a_relay_sent_before_it_died_is_recognised_when_it_is_sent_again() {
    let stage = Stage::new().await;
    stage.stage(&to_queue("orders"), message("placed")).await.unwrap();
    // The first relay sent it, and was killed before it could acknowledge.
    commit(&*stage.target, vec![to_queue("orders").op(message("placed"))]).await.unwrap();
    assert_eq!(stage.relay.drain().await.unwrap(), ONE_SENT);
    assert_eq!(ids_in(&*stage.target, "orders").await, ["placed"]);
}

#[tokio::test]
async fn what_its_destination_will_never_take_is_a_dead_letter_and_blocks_no_other_key() {
    let stage = Stage::new().await;
    declare(&*stage.target, "small", InletConfig { payload_bytes_max: 10, ..InletConfig::default() }).await;
    let large = Payload::json(&"x".repeat(100)).unwrap();
    let too_large = onward_core::Message { data: large, ..message("large") };
    stage.stage(&to_queue("small"), too_large).await.unwrap();
    stage.stage(&to_queue("small"), message("fits")).await.unwrap();
    // Somebody put a message into the outbox's queue that is meant for nowhere.
    commit(&*stage.store, vec![to_queue("outbox").op(message("stray"))]).await.unwrap();
    assert_eq!(stage.relay.drain().await.unwrap(), Relayed { sent: 1, again: 0, dead: 2 });
    assert_eq!(ids_in(&*stage.target, "small").await, ["fits"]);
    assert_eq!(stage.outbox.unsent(&*stage.store).await.unwrap().dead, 2);
    let dead = MessageQuery::state(stage.inlet(), MessageState::Dead, 10);
    let dead = stage.store.find(dead).await.unwrap().items;
    assert!(dead.iter().all(|view| view.causes[0].failure.kind == CauseKind::Permanent));
    assert!(dead[0].causes[0].failure.error.contains("`data`"), "{:?}", dead[0].causes);
}

#[tokio::test]
async fn while_a_destination_is_away_nothing_is_lost_and_no_attempt_is_counted() {
    let stage = Stage::new().await;
    stage.stage(&to_queue("orders"), message("placed")).await.unwrap();
    let id = {
        let waiting = MessageQuery::state(stage.inlet(), MessageState::Waiting, 10);
        stage.store.find(waiting).await.unwrap().items.remove(0).message.id
    };
    stage.target.close(Duration::ZERO).await.unwrap();
    let away = Relayed { sent: 0, again: 1, dead: 0 };
    assert_eq!(stage.relay.round(Duration::ZERO).await.unwrap(), away);
    let view = view(&*stage.store, stage.inlet(), &id).await.unwrap();
    assert_eq!((view.state, view.attempts), (MessageState::Delayed, 0));
    assert_eq!(stage.outbox.unsent(&*stage.store).await.unwrap().depth, 1);
}

#[tokio::test]
async fn two_relays_never_send_one_message_under_two_leases() {
    let stage = Stage::new().await;
    for id in ["a", "b", "c"] {
        stage.stage(&to_queue("orders"), message(id)).await.unwrap();
    }
    let (one, two) = futures::join!(stage.relay.drain(), stage.relay.drain());
    assert_eq!(one.unwrap().sent + two.unwrap().sent, 3);
    let mut ids = ids_in(&*stage.target, "orders").await;
    ids.sort();
    assert_eq!(ids, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_due_message_waits_at_its_destination_and_not_in_the_outbox() {
    let stage = Stage::new().await;
    let due = onward_core::Env::now(&*SystemEnv::shared()).plus(Duration::from_secs(3600));
    let later = onward_core::Message { due: Some(due), ..message("later") };
    stage.stage(&to_queue("orders"), later).await.unwrap();
    assert_eq!(stage.relay.drain().await.unwrap(), ONE_SENT);
    let inlet: Inlet = "orders".parse().unwrap();
    let view = view(&*stage.target, inlet, &message("later").id).await.unwrap();
    assert_eq!(view.state, MessageState::Delayed);
    assert!(due.since(view.due.unwrap()) < Duration::from_millis(1), "{:?} instead of {due:?}", view.due);
    assert_eq!(stage.outbox.unsent(&*stage.store).await.unwrap().depth, 0);
}
