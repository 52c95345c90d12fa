//! What a client sees of its host, over a real socket.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use futures::{StreamExt, future::join_all};
use onward_client::frame::encode;
use onward_client::wire::ToHost;
use onward_core::*;
use onward_env::SystemEnv;
use onward_proves::proves;
use std::{os::unix::fs::PermissionsExt, time::Duration};
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_message_goes_through_the_socket_and_back() {
    let Setup { stub, socket, .. } = &setup(|_| {}).await;
    let client = connect(socket, options("a")).await.unwrap();
    let receipts = client.commit(client.prepare(vec![enqueue("emails", "m1")]).unwrap()).await.unwrap();
    assert!(matches!(&receipts[..], [Receipt::Accepted(accepted)] if !accepted.duplicate));
    let mut got = client.lease(request(&ProcessId("a".into()), Duration::ZERO)).await.unwrap();
    let delivery = got.pop().unwrap();
    assert_eq!(delivery.message.id.as_str(), "m1");
    let extended = client.extend(vec![delivery.token.clone()], Duration::from_secs(9)).await.unwrap();
    assert_eq!(extended, [Ok(Extended { lease: Duration::from_secs(9), cancel_requested: false })]);
    let settle =
        || vec![Op::Settle { token: delivery.token.clone(), outcome: Outcome::Ack { result: None } }];
    client.commit(client.prepare(settle()).unwrap()).await.unwrap();
    let stale = client.commit(client.prepare(settle()).unwrap()).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::LeaseLost);
    assert!(stub.see(|state| state.leased.is_empty()));
}

#[tokio::test]
#[proves("T56")]
async fn sixty_parallel_duplicates_are_told_the_first_id() {
    let Setup { socket, .. } = &setup(|_| {}).await;
    let client = connect(socket, options("a")).await.unwrap();
    let one = || client.commit(client.prepare(vec![enqueue("emails", "same")]).unwrap());
    let answers = join_all((0..60).map(|_| one())).await;
    let accepted: Vec<Accepted> = answers
        .into_iter()
        .map(|answer| match answer.unwrap().remove(0) {
            Receipt::Accepted(accepted) => accepted,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(accepted.iter().all(|accepted| accepted.id.as_str() == "same"));
    assert_eq!(accepted.iter().filter(|accepted| !accepted.duplicate).count(), 1);
}

#[tokio::test]
async fn a_submit_keeps_its_order_around_a_commit_that_the_host_refuses() {
    let Setup { socket, .. } = &setup(|_| {}).await;
    let client = connect(socket, options("a")).await.unwrap();
    let commits = [
        enqueue("emails", "1"),
        Op::Truncate { stream: "a-1".parse().unwrap(), before: 1 },
        enqueue("emails", "2"),
    ];
    let commits = commits.into_iter().map(|op| client.prepare(vec![op]).unwrap()).collect();
    let answers = client.submit(commits).await.unwrap();
    let ids: Vec<Option<&str>> = answers
        .iter()
        .map(|answer| match answer.as_deref() {
            Ok([Receipt::Accepted(accepted)]) => Some(accepted.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [Some("1"), None, Some("2")]);
}

#[tokio::test]
#[proves("T16")]
async fn a_call_without_an_answer_ends_at_its_deadline_as_unknown_and_is_dropped_by_the_host() {
    let Setup { stub, socket, .. } = &setup(|_| {}).await;
    let mut options = options("a");
    options.answer_ms = 50;
    let client = connect(socket, options).await.unwrap();
    let late = client.commit(client.prepare(vec![enqueue("never", "m1")]).unwrap()).await.unwrap_err();
    assert_eq!((late.kind(), late.retry_hint()), (ErrorKind::Unavailable, RetryHint::Unknown));
    stub.until(|state| state.dropped_calls == 1).await;
    assert!(client.is_connected());
}

#[tokio::test]
#[proves("T51", "T15")]
async fn a_lost_connection_fails_writes_as_unknown_and_the_client_comes_back() {
    let Setup { stub, socket, host, folder: _folder } = setup(|_| {}).await;
    let client = connect(&socket, options("a")).await.unwrap();
    let never = client.commit(client.prepare(vec![enqueue("never", "m1")]).unwrap());
    let breaking = async {
        stub.until(|state| state.accepted.len() == 1).await;
        drop(host);
        client.lost().await;
        serve(&stub, &socket, |_| {}).await
    };
    let (lost, _host) = tokio::join!(never, breaking);
    assert_eq!(lost.unwrap_err().retry_hint(), RetryHint::Unknown);
    // The repeat with the same id finds what had happened.
    let repeat = client.commit(client.prepare(vec![enqueue("emails", "m1")]).unwrap()).await.unwrap();
    assert!(matches!(&repeat[..], [Receipt::Accepted(accepted)] if accepted.duplicate));
}

#[tokio::test]
async fn without_a_host_a_call_fails_within_its_bound_and_says_that_nothing_was_sent() {
    let Setup { socket, host, folder: _folder, .. } = setup(|_| {}).await;
    let mut options = options("a");
    options.reconnect_wait_ms = 30;
    let client = connect(&socket, options).await.unwrap();
    drop(host);
    client.lost().await;
    let error = client.topology().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(matches!(error.retry_hint(), RetryHint::After(_)), "{error}");
    assert!(!client.health().readable && !client.health().writable);
}

#[tokio::test]
#[proves("T16")]
async fn a_host_that_says_nothing_is_noticed() {
    let (near, mut far) = tokio::net::UnixStream::pair().unwrap();
    let near = std::sync::Mutex::new(Some(near));
    let mut options = options("a");
    (options.ping_ms, options.silent_pings_max, options.reconnect) = (10, 3, false);
    let welcome = {
        let Setup { socket, .. } = &setup(|_| {}).await;
        let mut stream = tokio::net::UnixStream::connect(socket).await.unwrap();
        stream.write_all(&hello()).await.unwrap();
        let mut head = [0; 4];
        stream.read_exact(&mut head).await.unwrap();
        let mut body = vec![0; u32::from_be_bytes(head) as usize];
        stream.read_exact(&mut body).await.unwrap();
        [&head[..], &body].concat()
    };
    far.write_all(&welcome).await.unwrap();
    let dial = move || std::future::ready(Ok(near.lock().unwrap().take().unwrap()));
    let client = onward_client::Client::connect_by(dial, options, SystemEnv::shared()).await.unwrap();
    let reason = client.lost().await;
    assert!(reason.what().contains("nothing for"), "{reason}");
}

fn hello() -> Vec<u8> {
    hello_of(1, 1)
}

fn hello_of(newest: u32, oldest: u32) -> Vec<u8> {
    encode(&ToHost::Hello(onward_client::wire::Hello {
        protocol: newest,
        protocol_oldest: oldest,
        process: ProcessId("raw".into()),
        pid: 1,
        worker: "raw".into(),
    }))
    .unwrap()
}

#[tokio::test]
async fn hints_come_over_the_wire_merged_and_once_more_after_a_new_connection() {
    let Setup { stub, socket, host, folder: _folder } = setup(|_| {}).await;
    let client = connect(&socket, options("a")).await.unwrap();
    let mut hints = client.watch(Interest::Inlets(vec![queue()]));
    client.topology().await.unwrap();
    client.commit(client.prepare(vec![enqueue("emails", "m1")]).unwrap()).await.unwrap();
    assert_eq!(hints.next().await, Some(Hint::Inlet(queue())));
    drop(host);
    client.lost().await;
    let _host = serve(&stub, &socket, |_| {}).await;
    while hints.next().await != Some(Hint::Somewhere) {}
    client.close(Duration::ZERO).await.unwrap();
    while hints.next().await.is_some() {}
}

#[tokio::test]
#[proves("T57")]
async fn a_failed_write_shows_in_the_health_of_every_client_that_asks() {
    let Setup { stub, socket, .. } = &setup(|_| {}).await;
    let client = connect(socket, options("a")).await.unwrap();
    assert!(client.health().writable);
    stub.health.lock().unwrap().writable = false;
    // Any failed call brings the news with it.
    client.stats(vec![]).await.unwrap_err();
    assert!(!client.health().writable);
}

#[tokio::test]
async fn a_closed_client_refuses_and_its_host_goes_on() {
    let Setup { stub, socket, .. } = &setup(|_| {}).await;
    let client = connect(socket, options("a")).await.unwrap();
    client.close(Duration::from_secs(1)).await.unwrap();
    client.close(Duration::from_secs(1)).await.unwrap();
    assert_eq!(client.topology().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(stub.see(|state| state.ended.clone()), [(ProcessId("a".into()), false)]);
    assert!(connect(socket, options("b")).await.unwrap().topology().await.is_ok());
}

#[tokio::test]
#[proves("T46")]
async fn versions_that_have_none_in_common_are_refused_by_name() {
    let Setup { socket, .. } = &setup(|_| {}).await;
    let mut stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    stream.write_all(&hello_of(9, 8)).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let refused: onward_client::wire::ToClient = onward_client::frame::decode(&answer[4..]).unwrap();
    let onward_client::wire::ToClient::Refused(error) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.what().contains("protocol 8 to 9"), "{error}");
}

#[tokio::test]
async fn a_socket_is_its_owners_alone_and_may_stand_under_any_length_of_path() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(120)).join("y".repeat(120));
    std::fs::create_dir_all(&deep).unwrap();
    let socket = deep.join("s.sock");
    std::fs::write(&socket, "stale").unwrap();
    let stub = std::sync::Arc::new(Stub::default());
    let host = serve(&stub, &socket, |_| {}).await;
    assert!(socket.as_os_str().len() > onward_client::SOCKET_PATH_BYTES_MAX);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(connect(&socket, options("a")).await.unwrap().topology().await.is_ok());
    host.close(Duration::from_secs(1)).await;
    assert!(!socket.exists());
}
