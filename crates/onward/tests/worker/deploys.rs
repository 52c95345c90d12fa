//! Workers of several versions share a queue, and messages of several versions share a handler.

use crate::stage::{QUEUE, SECOND, Stage, run};
use onward::{
    Message, MessageId,
    core::{AtomicScope, CauseKind, MessageState},
    work::{State, Worker, handler},
};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

#[derive(Serialize, Deserialize)]
struct UserV1 {
    name: String,
}

#[derive(Serialize, Deserialize)]
struct UserV2 {
    first: String,
    last: String,
}

#[derive(Serialize, Deserialize)]
struct UserV3 {
    first: String,
    last: String,
    nick: Option<String>,
}

fn split(user: UserV1) -> UserV2 {
    let (first, last) = user.name.split_once(' ').unwrap_or((&user.name, ""));
    UserV2 { first: first.into(), last: last.into() }
}

fn with_nick(user: UserV2) -> UserV3 {
    UserV3 { first: user.first, last: user.last, nick: None }
}

type Seen = Arc<Mutex<Vec<String>>>;

async fn greet(user: UserV3, message: Message, seen: State<Seen>) {
    let nick = user.nick.unwrap_or_default();
    seen.lock().unwrap().push(format!("{}|{}|{nick}|v{}", user.first, user.last, message.version));
}

impl Stage {
    async fn send_version<T: Serialize>(&self, kind: &str, version: u32, data: &T) -> MessageId {
        let message = Message::builder(kind).version(version).json(data);
        self.onward.enqueue(QUEUE, message).await.unwrap().id
    }
}

fn newest(seen: &Seen, worker: Worker) -> Worker {
    let greet = handler(greet)
        .kind("user.joined")
        .alias("UserJoined")
        .versions(3..=3)
        .upcast(1, split)
        .upcast(2, with_nick);
    worker.state(seen.clone()).handle(QUEUE, greet)
}

on_each_engine! {
    #[proves("T47")]
    async fn a_handler_takes_old_names_and_is_given_old_data_brought_up(stage: Stage) {
        let seen = Seen::default();
        let worker = run(newest(&seen, stage.worker().concurrency(1)));
        let ids = [
            stage.send_version("UserJoined", 1, &UserV1 { name: "Ada Lovelace".into() }).await,
            stage.send_version("user.joined", 2, &UserV2 { first: "Alan".into(), last: "Turing".into() }).await,
            stage.send_version("user.joined", 3, &UserV3 { first: "Grace".into(), last: "Hopper".into(), nick: Some("G".into()) }).await,
        ];
        for id in &ids {
            stage.reaches(id, MessageState::Done).await;
        }
        assert_eq!(*seen.lock().unwrap(), ["Ada|Lovelace||v3", "Alan|Turing||v3", "Grace|Hopper|G|v3"]);
        assert_eq!(stage.view(&ids[0]).await.message.version, 1, "what is kept stays as it was sent");
        worker.stop().await;
    }

    #[proves("T46", "T45", "H6")]
    async fn a_version_that_a_worker_does_not_know_is_left_to_newer_ones_then_set_aside(stage: Stage) {
        let seen = Seen::default();
        let old = run(stage.worker().handle(QUEUE, handler(async |_: UserV1| {}).kind("user.joined").versions(1..=1)));
        let id = stage.send_version("user.joined", 3, &UserV3 { first: "A".into(), last: "B".into(), nick: None }).await;
        stage.pass(2 * SECOND).await;
        let new = run(newest(&seen, stage.worker()));
        assert_eq!(stage.reaches(&id, MessageState::Done).await.attempts, 1);
        let nobodys = stage.send_version("user.joined", 9, &0).await;
        let dead = stage.reaches(&nobodys, MessageState::Dead).await;
        assert_eq!(dead.causes[0].failure.kind, CauseKind::UnknownType);
        assert!(dead.causes[0].failure.error.contains("version 9"), "{:?}", dead.causes);
        new.stop().await;
        old.stop().await;
    }

    #[proves("T47", "H6")]
    async fn data_that_is_not_of_the_version_that_it_says_is_a_dead_letter(stage: Stage) {
        let seen = Seen::default();
        let worker = run(newest(&seen, stage.worker()));
        let id = stage.send_version("user.joined", 1, &"no name").await;
        let dead = stage.reaches(&id, MessageState::Dead).await;
        assert_eq!((dead.causes.len(), dead.causes[0].failure.kind), (1, CauseKind::Undecodable));
        worker.stop().await;
    }

    #[proves("T46")]
    async fn a_duplicate_is_known_by_workers_of_both_versions(stage: Stage) {
        let seen = Seen::default();
        let once = |user: &UserV1| user.name.clone();
        let old = handler(async |_: UserV1| {}).versions(1..=1).idempotent_by(once);
        let old = run(stage.worker().handle(QUEUE, old));
        let first = stage.send_version("user.joined", 1, &UserV1 { name: "Ada".into() }).await;
        stage.reaches(&first, MessageState::Done).await;
        old.stop().await;
        let new = handler(greet).versions(3..=3).upcast(1, split).upcast(2, with_nick).idempotent_by(|user: &UserV3| user.first.clone());
        let new = run(stage.worker().state(seen.clone()).handle(QUEUE, new));
        let again = stage.send_version("user.joined", 1, &UserV1 { name: "Ada".into() }).await;
        stage.reaches(&again, MessageState::Done).await;
        let runs = seen.lock().unwrap().len();
        assert_eq!((runs, new.stop().await.skipped), (0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_upcast_that_leads_nowhere_is_refused_at_start() {
    let stage = Stage::memory(AtomicScope::Store).await;
    let check = async |handling| stage.worker().handle(QUEUE, handling).check().await;
    let reads_3 = || handler(async |_: UserV3| {}).versions(3..=3);
    assert!(check(reads_3().upcast(1, split)).await.unwrap_err().to_string().contains("none that is read"));
    assert!(check(handler(async |_: UserV3| {}).upcast(2, with_nick)).await.is_err());
    assert!(check(reads_3().upcast(3, with_nick)).await.is_err());
    assert!(check(reads_3().upcast(1, split).upcast(2, with_nick)).await.is_ok());
}
