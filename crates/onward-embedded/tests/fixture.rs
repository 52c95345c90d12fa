//! Data folders that earlier versions left are kept in `fixtures/` and must open for ever.
//!
//! A new format adds a folder of the last one: `ONWARD_WRITE_FIXTURE=1 cargo test -p onward-embedded --test fixture`
//! writes it with the version that is being left, then there is a test for it, too.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

use onward_core::{
    CauseKind, DeadEdit, Engine, Failure, FindBy, Holder, Inlet, LeaseRequest, Message, MessageQuery,
    MessageState, MessageView, Name, Op, Outcome, Payload, ProcessId, RecordExpect, RecordQuery, RequestId,
};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use onward_proves::proves;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Set, the test writes the fixture of the present format.
const WRITE: &str = "ONWARD_WRITE_FIXTURE";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn options() -> OpenOptions {
    OpenOptions { segment_bytes: 32 << 10, reserve_bytes: 32 << 10, ..OpenOptions::default() }
}

fn queue() -> Name {
    "shop/emails".parse().unwrap()
}

fn open(folder: &Path) -> EmbeddedEngine {
    EmbeddedEngine::open(folder, options(), SystemEnv::shared()).unwrap()
}

fn message(id: &str) -> onward_core::MessageBuilder {
    let data = Payload::json_text(r#"{"n":9007199254740993,"price":0.10}"#).unwrap();
    Message::builder("email.send").id(id.try_into().unwrap()).data(data).correlation_id("order 7")
}

async fn commit(engine: &EmbeddedEngine, ops: Vec<Op>) {
    engine.commit(engine.prepare(ops).unwrap()).await.unwrap();
}

async fn find(engine: &EmbeddedEngine, state: MessageState) -> Vec<MessageView> {
    let query = MessageQuery { inlet: queue().into(), by: FindBy::State(state), after: None, limit: 100 };
    engine.find(query).await.unwrap().items
}

fn ids(views: &[MessageView]) -> Vec<&str> {
    views.iter().map(|view| view.message.id.as_str()).collect()
}

#[tokio::test]
#[proves("LOG21", "L5")]
async fn a_folder_of_format_1_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixtures().join("format-1"), folder.path());
    let engine = open(folder.path());
    holds_everything(&engine).await;
    engine.close(Duration::from_secs(5)).await.unwrap();
}

async fn holds_everything(engine: &EmbeddedEngine) {
    assert!(engine.report().snapshot.is_some() && engine.report().facts > 0, "{:?}", engine.report());

    let waiting = find(engine, MessageState::Waiting).await;
    assert_eq!(ids(&waiting), ["waiting", "behind the snapshot"]);
    assert_eq!(&waiting[0].message.data.as_bytes()[..], br#"{"n":9007199254740993,"price":0.10}"#);
    assert_eq!(waiting[0].message.correlation(), "order 7");
    assert_eq!(ids(&find(engine, MessageState::Delayed).await), ["delayed"]);
    let dead = find(engine, MessageState::Dead).await;
    assert_eq!(ids(&dead), ["dead"]);
    assert_eq!(&*dead[0].causes[0].failure.error, "no such address");
    assert_eq!((dead[0].message.edition, &*dead[0].message.kind), (2, "email.send.v2"));
    assert_eq!(dead[0].original.as_ref().map(|original| &*original.kind), Some("email.send"));

    let records = engine
        .get_records(RecordQuery::Prefix { prefix: "shop/".into(), after: None, limit: 10 })
        .await
        .unwrap();
    assert_eq!(&records.items[0].value[..], b"\x00\xffvalue");
    let stats = engine.stats(vec![queue().into()]).await.unwrap().remove(0);
    assert!(stats.books.balance());
    assert_eq!((stats.books.accepted, stats.books.done), (5, 1));
}

#[tokio::test]
async fn what_is_written_now_is_what_the_fixture_was_made_by() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let put = |message: onward_core::MessageBuilder| Op::Enqueue {
        queue: queue(),
        message: Box::new(message.build(&SystemEnv).unwrap()),
    };
    commit(&engine, vec![put(message("done"))]).await;
    finish(&engine, Outcome::Ack { result: None }).await;
    commit(&engine, vec![put(message("dead"))]).await;
    finish(&engine, Outcome::Reject { failure: Failure::new(CauseKind::Permanent, "no such address") }).await;
    let edit = DeadEdit { kind: Some("email.send.v2".into()), ..DeadEdit::default() };
    let inlet = Inlet::from(queue());
    commit(&engine, vec![Op::EditDead { inlet, id: "dead".try_into().unwrap(), edit }]).await;
    let (key, value) = ("shop/orders/1".try_into().unwrap(), bytes::Bytes::from_static(b"\x00\xffvalue"));
    commit(&engine, vec![Op::PutRecord { key, value, expect: RecordExpect::Any, ttl: None }]).await;
    commit(&engine, vec![put(message("waiting"))]).await;
    let far = Duration::from_secs(100 * 365 * 24 * 3600);
    commit(&engine, vec![put(message("delayed").delay(far))]).await;
    engine.snapshot().unwrap().unwrap();
    commit(&engine, vec![put(message("behind the snapshot"))]).await;
    // Not closed: there is something to replay behind the snapshot.
    drop(engine);
    if std::env::var_os(WRITE).is_some() {
        copy(folder.path(), &fixtures().join("format-1"));
    }
    let again = tempfile::tempdir().unwrap();
    copy(folder.path(), again.path());
    holds_everything(&open(again.path())).await;
}

async fn finish(engine: &EmbeddedEngine, outcome: Outcome) {
    let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
    let request = LeaseRequest::one(queue().into(), holder, RequestId::generate(&SystemEnv));
    let token = engine.lease(request).await.unwrap().remove(0).token;
    commit(engine, vec![Op::Settle { token, outcome }]).await;
}

/// Copies what makes up a folder: no locks, no spare segments, no kept space.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if path.is_dir() {
            copy(&path, &to.join(&*name));
        } else if !name.contains("lock") && !name.contains("spare") && name != "ballast" {
            fs::copy(&path, to.join(&*name)).unwrap();
        }
    }
}
