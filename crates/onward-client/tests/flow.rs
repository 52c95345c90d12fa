//! Bounds: what one client may have under way, and that it never holds up another.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use onward_client::{
    frame::{FrameReader, decode, encode},
    wire::{Answer, Call, Hello, ToClient, ToHost},
};
use onward_core::*;
use onward_env::SystemEnv;
use onward_proves::proves;
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};
use support::*;
use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// A client that says what it likes.
struct Raw {
    reader: FrameReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl Raw {
    async fn welcomed(socket: &Path) -> Self {
        let (read, write) = UnixStream::connect(socket).await.unwrap().into_split();
        let mut raw = Self { reader: FrameReader::new(read), write };
        let hello = Hello {
            protocol: 1,
            protocol_oldest: 1,
            process: ProcessId("raw".into()),
            pid: 1,
            worker: "raw".into(),
        };
        raw.says(&ToHost::Hello(hello)).await.unwrap();
        assert!(matches!(raw.hears().await, Some(ToClient::Welcome(_))));
        raw
    }

    async fn says<T: Serialize>(&mut self, what: &T) -> std::io::Result<()> {
        self.write.write_all(&encode(what).unwrap()).await
    }

    async fn hears(&mut self) -> Option<ToClient> {
        self.reader.next().await.unwrap().map(|body| decode(&body).unwrap())
    }
}

fn find() -> Call {
    Call::Find(MessageQuery::state(queue(), MessageState::Leased, 1))
}

#[tokio::test]
#[proves("I4")]
async fn a_client_that_reads_nothing_is_dropped_and_holds_up_no_other() {
    let setup = setup(|options| options.write_ms = 100).await;
    let client = connect(&setup.socket, options("good")).await.unwrap();
    let large = Message { data: Payload::json(&"x".repeat(300_000)).unwrap(), ..message("large") };
    let op = Op::Enqueue { queue: "emails".parse().unwrap(), message: Box::new(large) };
    client.commit(client.prepare(vec![op]).unwrap()).await.unwrap();
    client.lease(request(&ProcessId("good".into()), Duration::ZERO)).await.unwrap();
    let mut slow = Raw::welcomed(&setup.socket).await;
    for id in 0..50 {
        slow.says(&ToHost::Call { id, call: find() }).await.unwrap();
    }
    // Its answers fill every buffer between it and the host by now, or soon; the other works on.
    for number in 0..50 {
        let op = enqueue("emails", &number.to_string());
        client.commit(client.prepare(vec![op]).unwrap()).await.unwrap();
    }
    // Saying more gets stuck when the host does not read any more, and fails when it has dropped the connection.
    while slow.says(&ToHost::Ping { number: 1 }).await.is_ok() {}
    assert!(client.topology().await.is_ok());
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Later {
    Call { id: u64, call: LaterCall },
    Wave { how: u32 },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LaterCall {
    Fly { far: u32 },
}

#[tokio::test]
#[proves("T46")]
async fn a_later_versions_call_is_refused_by_its_id_and_the_connection_goes_on() {
    let setup = setup(|_| {}).await;
    let mut raw = Raw::welcomed(&setup.socket).await;
    raw.says(&Later::Wave { how: 1 }).await.unwrap();
    raw.says(&Later::Call { id: 5, call: LaterCall::Fly { far: 1 } }).await.unwrap();
    let Some(ToClient::Answer { id: 5, answer: Err(error) }) = raw.hears().await else { panic!("no answer") };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    raw.says(&ToHost::Call { id: 6, call: Call::Topology }).await.unwrap();
    assert!(matches!(raw.hears().await, Some(ToClient::Answer { id: 6, answer: Ok(Answer::Topology(_)) })));
}

#[tokio::test]
async fn an_id_that_is_not_answered_yet_is_not_taken_again() {
    let setup = setup(|_| {}).await;
    let mut raw = Raw::welcomed(&setup.socket).await;
    let lease = request(&ProcessId("raw".into()), Duration::from_secs(50));
    for _ in 0..2 {
        raw.says(&ToHost::Call { id: 1, call: Call::Lease(lease.clone()) }).await.unwrap();
    }
    assert!(
        matches!(raw.hears().await, Some(ToClient::Refused(error)) if error.kind() == ErrorKind::Invalid)
    );
    assert_eq!(raw.hears().await, None);
}

#[tokio::test]
#[proves("I4")]
async fn a_call_beyond_the_bound_waits_until_one_before_it_is_given_up() {
    let setup = setup(|options| options.calls_max = 1).await;
    let client = Arc::new(connect(&setup.socket, options("a")).await.unwrap());
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.commit(client.prepare(vec![enqueue("never", "m")]).unwrap()).await }
    });
    setup.stub.until(|state| state.accepted.len() == 1).await;
    let mut second = std::pin::pin!(client.topology());
    assert!(futures::poll!(&mut second).is_pending());
    first.abort();
    assert!(second.await.is_ok());
}

#[tokio::test]
#[proves("T16")]
async fn a_call_that_finds_no_place_by_its_deadline_says_that_it_was_not_sent() {
    let setup = setup(|options| options.waits_max = 1).await;
    let mut short = options("a");
    short.answer_ms = 50;
    let client = connect(&setup.socket, short).await.unwrap();
    let process = ProcessId("a".into());
    let mut long = std::pin::pin!(client.lease(request(&process, Duration::from_secs(50))));
    assert!(futures::poll!(&mut long).is_pending());
    let error = client.lease(request(&process, Duration::from_millis(1))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(matches!(error.retry_hint(), RetryHint::After(_)), "{error}");
}

#[tokio::test]
async fn a_wait_for_work_keeps_no_other_call_from_its_place() {
    let setup = setup(|options| (options.calls_max, options.waits_max) = (1, 1)).await;
    let client = connect(&setup.socket, options("a")).await.unwrap();
    let waits = client.lease(request(&ProcessId("a".into()), Duration::from_secs(50)));
    let works = async { client.commit(client.prepare(vec![enqueue("emails", "m")]).unwrap()).await };
    let (got, receipts) = tokio::join!(waits, works);
    assert_eq!((got.unwrap().len(), receipts.unwrap().len()), (1, 1));
}

#[tokio::test]
async fn one_client_too_many_is_refused_until_another_leaves() {
    let setup = setup(|options| options.clients_max = 1).await;
    let first = connect(&setup.socket, options("a")).await.unwrap();
    assert_eq!(connect(&setup.socket, options("b")).await.unwrap_err().kind(), ErrorKind::Full);
    first.close(Duration::ZERO).await.unwrap();
    let mut patient = options("b");
    patient.backoff.delay_max_ms = 10;
    let second = loop {
        match connect(&setup.socket, patient.clone()).await {
            Err(error) if error.kind() == ErrorKind::Full => tokio::task::yield_now().await,
            other => break other.unwrap(),
        }
    };
    assert!(second.topology().await.is_ok());
}

#[tokio::test]
async fn what_a_client_says_is_prepared_anew_by_the_hosts_engine() {
    let setup = setup(|_| {}).await;
    let mut raw = Raw::welcomed(&setup.socket).await;
    let limits = EngineLimits {
        payload_bytes_max: u64::MAX,
        delay_max: None,
        lease_total_max: None,
        dedup_window_max: None,
        ops_max: 10_000,
    };
    // An engine with wider bounds than the host's prepared this: 101 operations, one more than the stub takes.
    let wider = Capabilities::all("wider", Durability::Memory, AtomicScope::Store, limits);
    let ops = (0..101).map(|number| enqueue("emails", &number.to_string())).collect();
    let prepared = Prepared::check(ops, &wider, SystemEnv.now()).unwrap();
    raw.says(&ToHost::Call { id: 1, call: Call::Commit(prepared) }).await.unwrap();
    let Some(ToClient::Answer { answer: Err(error), .. }) = raw.hears().await else { panic!("no answer") };
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(setup.stub.see(|state| state.accepted.is_empty()));
}

#[tokio::test]
async fn whoever_runs_the_host_is_told_that_only_reopening_the_engine_recovers() {
    let setup = setup(|_| {}).await;
    let client = connect(&setup.socket, options("a")).await.unwrap();
    let mut told = std::pin::pin!(setup.host.poisoned());
    assert!(futures::poll!(&mut told).is_pending());
    let error = client.commit(client.prepare(vec![enqueue("poison", "m")]).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    told.await;
}
