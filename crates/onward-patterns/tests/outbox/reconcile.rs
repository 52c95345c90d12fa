//! Work whose message was never staged is found, and staged once.

use crate::stage::{Stage, ids_in, message, to_queue};
use onward_core::{ErrorKind, Message, Payload};
use onward_env::SystemEnv;
use onward_proves::proves;
use std::time::Duration;

#[proves("G5")]
#[tokio::test]
async fn what_was_never_sent_is_sent_and_what_was_is_not_sent_again() {
    let stage = Stage::new().await;
    let to = to_queue("orders");
    for id in ["sent", "waiting"] {
        stage.stage(&to, message(id)).await.unwrap();
        if id == "sent" {
            stage.relay.drain().await.unwrap();
        }
    }
    let env = SystemEnv::shared();
    let ages_ago = env.now().minus(Duration::from_secs(30 * 24 * 3600));
    let expected = vec![
        (to.clone(), message("sent")),
        (to.clone(), message("waiting")),
        (to.clone(), message("lost")),
        (to.clone(), Message { timestamp: ages_ago, ..message("ancient") }),
        (to.clone(), Message { data: Payload::json("other").unwrap(), ..message("sent") }),
    ];
    let found = stage.outbox.reconcile(&*stage.store, &*env, expected.clone()).await.unwrap();
    assert_eq!(
        (found.known, &found.never_sent, &found.too_old),
        (2, &vec![message("lost").id], &vec![message("ancient").id],)
    );
    let (refused, why) = &found.refused[0];
    assert_eq!((refused, why.kind()), (&message("sent").id, ErrorKind::Conflict));
    let again = stage.outbox.reconcile(&*stage.store, &*env, expected).await.unwrap();
    assert_eq!((again.known, again.never_sent.len()), (3, 0));
    stage.relay.drain().await.unwrap();
    let mut ids = ids_in(&*stage.target, "orders").await;
    ids.sort();
    assert_eq!(ids, ["lost", "sent", "waiting"]);
}
