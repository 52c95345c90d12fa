//! What the host makes of the life and death of its clients, with real processes.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use futures::future::join_all;
use onward_client::this_process;
use onward_core::*;
use onward_env::SystemEnv;
use onward_proves::proves;
use std::{path::Path, process::Stdio, time::Duration};
use support::*;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// This program again, as a process of its own: see [`child`].
struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
}

impl Other {
    fn start(socket: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env("SOCKET", socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (said, told) = (BufReader::new(child.stdout.take().unwrap()), child.stdin.take().unwrap());
        Self { child, said, told }
    }

    /// What it says after the word, skipping what the test runner prints.
    async fn says(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).await.unwrap() > 0, "it ended before it said {word}");
            if let Some((_, rest)) = line.trim_end().split_once(word) {
                return rest.to_owned();
            }
        }
    }

    async fn tell(&mut self, line: &str) {
        self.told.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    async fn killed(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// The other process of the tests here, which start it; alone it does nothing. Leases one message and says so, then does what it is told.
#[tokio::test]
async fn child() {
    let Some(socket) = std::env::var_os("SOCKET") else { return };
    let mut options = options("worker");
    options.process = this_process(&SystemEnv);
    let client = connect(&socket.into(), options).await.unwrap();
    let process = this_process(&SystemEnv);
    println!("process {}", process.0);
    let mut got = client.lease(request(&process, Duration::from_secs(50))).await.unwrap();
    let delivery = got.pop().unwrap();
    println!("leased {}", delivery.message.id);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        match &*line {
            "ack" => {
                let op = Op::Settle { token: delivery.token.clone(), outcome: Outcome::Ack { result: None } };
                let answer = client.commit(client.prepare(vec![op]).unwrap()).await;
                println!("acked {:?}", answer.map_err(|error| error.kind()));
            }
            "wait" => {
                println!("waiting ");
                client.lease(request(&process, Duration::from_secs(50))).await.unwrap();
            }
            "close" => client.close(Duration::from_secs(1)).await.unwrap(),
            _ => return,
        }
    }
}

async fn give(setup: &Setup, ids: &[&str]) {
    let client = connect(&setup.socket, options("giver")).await.unwrap();
    for id in ids {
        client.commit(client.prepare(vec![enqueue("emails", id)]).unwrap()).await.unwrap();
    }
}

fn is_free(state: &State) -> bool {
    state.leased.is_empty() && !state.waiting.is_empty()
}

#[tokio::test]
#[proves("T6", "T7", "T8")]
async fn the_lease_of_a_killed_process_ends_at_once_and_its_message_goes_to_the_next_of_its_name() {
    let setup = setup(|_| {}).await;
    give(&setup, &["m1"]).await;
    let mut first = Other::start(&setup.socket);
    let process = first.says("process ").await;
    first.says("leased m1").await;
    first.killed().await;
    // No lease is awaited: the stub's never expire.
    setup.stub.until(is_free).await;
    assert_eq!(setup.stub.see(|state| state.ended.clone()), [(ProcessId(process.into()), true)]);
    Other::start(&setup.socket).says("leased m1").await;
}

#[tokio::test]
#[proves("T6")]
async fn a_process_killed_while_it_waits_for_work_gets_none() {
    let setup = setup(|_| {}).await;
    give(&setup, &["m1"]).await;
    let mut other = Other::start(&setup.socket);
    other.says("leased m1").await;
    other.tell("wait").await;
    other.says("waiting").await;
    other.killed().await;
    // Its wait is dropped before its leases are ended, so that nothing is handed to a dead process.
    setup.stub.until(|state| !state.ended.is_empty()).await;
    assert!(setup.stub.see(|state| state.leased.is_empty()));
    give(&setup, &["m2"]).await;
    assert!(setup.stub.see(|state| state.leased.is_empty() && state.waiting.len() == 2));
}

#[tokio::test]
#[proves("T3")]
async fn a_stopped_process_keeps_its_leases_and_finds_them_lost_when_another_has_finished_meanwhile() {
    let setup = setup(|_| {}).await;
    give(&setup, &["m1"]).await;
    let mut stopped = Other::start(&setup.socket);
    let process = ProcessId(stopped.says("process ").await.into());
    stopped.says("leased m1").await;
    stopped.signal(rustix::process::Signal::STOP);
    let client = connect(&setup.socket, options("boss")).await.unwrap();
    assert!(setup.stub.see(|state| state.ended.is_empty() && state.leased.len() == 1));
    // Its lease ends: here by hand, since the stub has no clock. Another finishes the message.
    let end = Op::EndProcess { process, died: false };
    client.commit(client.prepare(vec![end]).unwrap()).await.unwrap();
    let got = client.lease(request(&ProcessId("boss".into()), Duration::ZERO)).await.unwrap();
    let op = Op::Settle { token: got[0].token.clone(), outcome: Outcome::Ack { result: None } };
    client.commit(client.prepare(vec![op]).unwrap()).await.unwrap();
    stopped.signal(rustix::process::Signal::CONT);
    stopped.tell("ack").await;
    assert_eq!(stopped.says("acked ").await, "Err(LeaseLost)");
    assert!(setup.stub.see(|state| state.waiting.is_empty() && state.leased.is_empty()));
}

#[tokio::test]
async fn a_goodbye_releases_and_a_lost_connection_of_a_living_process_does_not() {
    let setup = setup(|_| {}).await;
    give(&setup, &["m1"]).await;
    let polite = connect(&setup.socket, options("polite")).await.unwrap();
    polite.lease(request(&ProcessId("polite".into()), Duration::ZERO)).await.unwrap();
    drop(polite);
    let again = connect(&setup.socket, options("polite")).await.unwrap();
    again.topology().await.unwrap();
    assert!(setup.stub.see(|state| state.ended.iter().all(|(process, _)| &*process.0 != "polite")));
    again.close(Duration::from_secs(1)).await.unwrap();
    assert!(setup.stub.see(|state| state.ended.contains(&(ProcessId("polite".into()), false))));
    assert!(setup.stub.see(is_free));
}

#[tokio::test]
#[proves("T8")]
async fn a_new_host_ends_the_leases_of_the_dead_and_watches_over_the_living() {
    let Setup { stub, host, socket, folder } = setup(|_| {}).await;
    let setup = Setup { stub, host, socket, folder };
    give(&setup, &["m1", "m2"]).await;
    let (mut dies_first, mut dies_later) = (Other::start(&setup.socket), Other::start(&setup.socket));
    dies_first.says("leased").await;
    dies_later.says("leased").await;
    let Setup { stub, host, socket, folder: _folder } = setup;
    host.close(Duration::from_secs(1)).await;
    drop(host);
    dies_first.killed().await;
    assert_eq!(stub.see(|state| state.leased.len()), 2);
    let aside = socket.with_extension("aside");
    // Nobody can come back to this one: it knows the living by their leases alone.
    let _host = serve(&stub, &aside, |_| {}).await;
    assert_eq!(stub.see(|state| (state.leased.len(), state.waiting.len())), (1, 1));
    dies_later.killed().await;
    stub.until(|state| state.leased.is_empty() && state.waiting.len() == 2).await;
}

#[tokio::test]
#[proves("T44")]
async fn a_hundred_inserts_of_one_id_by_ten_connections_make_one_message() {
    let setup = setup(|_| {}).await;
    let clients = join_all((0..10).map(|n| connect(&setup.socket, options(&format!("c{n}"))))).await;
    let clients: Vec<_> = clients.into_iter().map(|client| client.unwrap()).collect();
    let inserts = clients.iter().cycle().take(100).map(|client| async {
        let receipts = client.commit(client.prepare(vec![enqueue("emails", "one")]).unwrap()).await.unwrap();
        matches!(&receipts[..], [Receipt::Accepted(accepted)] if accepted.duplicate)
    });
    let duplicates = join_all(inserts).await.into_iter().filter(|duplicate| *duplicate).count();
    assert_eq!((duplicates, setup.stub.see(|state| state.waiting.len())), (99, 1));
}
