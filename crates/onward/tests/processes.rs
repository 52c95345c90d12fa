//! Real processes that share a folder: killed, stopped and started again.

#![allow(clippy::unwrap_used, reason = "a test")]

use onward::core::{
    Books, Delivery, InletConfig, LeaseRequest, Prepared, Receipt, RequestId, Result, WeightedInlet,
};
use onward::{ErrorKind, Inlet, Message, Onward, Op, Outcome, RetryHint, SystemEnv};
use onward_core::Holder;
use onward_proves::proves;
use std::{collections::BTreeMap, path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::mpsc,
};

const QUEUE: &str = "emails";
/// Longer than any of these tests: whatever ends sooner did not just expire.
const LEASE: Duration = Duration::from_secs(600);

/// This program again, as a process of its own: see [`child`].
struct Other {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    told: ChildStdin,
}

impl Other {
    fn start(folder: &Path, role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env("FOLDER", folder)
            .env("ROLE", role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (said, told) =
            (BufReader::new(child.stdout.take().unwrap()).lines(), child.stdin.take().unwrap());
        Self { child, said, told }
    }

    /// What it says after the word, skipping what the test runner prints.
    async fn says(&mut self, word: &str) -> String {
        loop {
            let line = self.said.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended before it said {word}"));
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
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

/// The other process of the tests here, which start it; alone it does nothing. As `host` it only has the folder open; as `holder` it takes one message and acks it when told;
/// as `worker` it takes and acks until it is killed.
#[tokio::test]
async fn child() {
    let (Some(folder), Ok(role)) = (std::env::var_os("FOLDER"), std::env::var("ROLE")) else { return };
    let onward = onward::open(folder).await.unwrap();
    println!("ready ");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    match &*role {
        "host" => drop(lines.next_line().await),
        "holder" => {
            let delivery = take(&onward).await;
            println!("leased {} {} {}", delivery.message.id, delivery.attempt, delivery.suspect);
            lines.next_line().await.unwrap();
            println!("acked {:?}", ack(&onward, &delivery).await.map(drop).map_err(|error| error.kind()));
        }
        _ => loop {
            let delivery = take(&onward).await;
            ack(&onward, &delivery).await.unwrap();
            println!("done {}", delivery.message.id);
        },
    }
}

/// Takes one message, repeating the request with its id for as long as the folder's host may come back.
async fn take(onward: &Onward) -> Delivery {
    let holder = Holder { worker: "w".into(), process: onward::this_process(&SystemEnv) };
    let inlet = Inlet::queue(QUEUE).unwrap();
    loop {
        let request = LeaseRequest {
            inlets: vec![WeightedInlet { inlet: inlet.clone(), weight: 1 }],
            wait: Duration::from_secs(5),
            lease: Some(LEASE),
            ..LeaseRequest::one(inlet.clone(), holder.clone(), RequestId::generate(&SystemEnv))
        };
        if let Some(delivery) = again(|| onward.engine().lease(request.clone())).await.unwrap().pop() {
            return delivery;
        }
    }
}

async fn ack(onward: &Onward, delivery: &Delivery) -> Result<Vec<Receipt>> {
    let op = Op::Settle { token: delivery.token.clone(), outcome: Outcome::Ack { result: None } };
    commit(onward, onward.engine().prepare(vec![op])?).await
}

async fn commit(onward: &Onward, ops: Prepared) -> Result<Vec<Receipt>> {
    again(|| onward.engine().commit(ops.clone())).await
}

/// Repeats a call whose answer was lost or that found no host.
async fn again<T, F: Future<Output = Result<T>>>(call: impl Fn() -> F) -> Result<T> {
    loop {
        match call().await {
            Err(error)
                if error.kind() == ErrorKind::Unavailable && error.retry_hint() != RetryHint::Never =>
            {
                // The folder itself waits for its next host; only what was under way comes back at once.
                tokio::task::yield_now().await;
            }
            answer => return answer,
        }
    }
}

async fn put(onward: &Onward, id: &str) {
    let id = id.try_into().unwrap();
    let message = Message::builder("mail.wanted").id(id).json(&1).build(&SystemEnv).unwrap();
    let op = Op::Enqueue { queue: QUEUE.parse().unwrap(), message: Box::new(message) };
    commit(onward, onward.engine().prepare(vec![op]).unwrap()).await.unwrap();
}

async fn books(onward: &Onward) -> Books {
    again(|| onward.engine().stats(vec![Inlet::queue(QUEUE).unwrap()])).await.unwrap()[0].books
}

#[tokio::test]
#[proves("T15", "LOG13", "T50")]
async fn the_host_is_killed_while_three_processes_work_and_nothing_is_lost() {
    const MESSAGES: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let mut host = Other::start(folder.path(), "host");
    host.says("ready").await;
    let onward = Arc::new(onward::open(folder.path()).await.unwrap());
    onward.declare_queue(QUEUE, InletConfig::default()).await.unwrap();
    let (tell, mut done) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for _ in 0..3 {
        let mut worker = Other::start(folder.path(), "worker");
        worker.says("ready").await;
        let tell = tell.clone();
        workers.push(tokio::spawn(async move {
            loop {
                let _ = tell.send(worker.says("done ").await);
            }
        }));
    }
    let giver = tokio::spawn({
        let onward = onward.clone();
        async move {
            for number in 0..MESSAGES {
                put(&onward, &format!("m{number}")).await;
            }
        }
    });
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut host = Some(host);
    while seen.len() < MESSAGES {
        *seen.entry(done.recv().await.unwrap()).or_default() += 1;
        if seen.len() == MESSAGES / 4 {
            host.take().unwrap().killed().await;
        }
    }
    giver.await.unwrap();
    assert!(seen.values().all(|times| *times == 1), "no lease ended, so nothing is done twice: {seen:?}");
    let books = books(&onward).await;
    assert!(books.balance(), "{books:?}");
    assert_eq!((books.done, books.waiting + books.leased + books.delayed + books.dead), (MESSAGES as u64, 0));
    workers.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
#[proves("T6", "T7", "T8")]
async fn a_killed_workers_message_goes_to_the_next_of_its_name_long_before_its_lease_would_end() {
    let folder = tempfile::tempdir().unwrap();
    let onward = onward::open(folder.path()).await.unwrap();
    put(&onward, "m1").await;
    let mut first = Other::start(folder.path(), "holder");
    assert_eq!(first.says("leased ").await, "m1 1 false");
    first.killed().await;
    let mut second = Other::start(folder.path(), "holder");
    // It was alone in the first one, whose death therefore counts as an attempt and makes it a suspect.
    assert_eq!(second.says("leased ").await, "m1 2 true");
    second.tell("ack").await;
    assert_eq!(second.says("acked ").await, "Ok(())");
    assert_eq!(books(&onward).await.done, 1);
}

#[tokio::test]
#[proves("T8", "LOG18")]
async fn after_the_death_of_all_a_new_process_finds_the_leases_of_the_dead_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Other::start(folder.path(), "host");
    host.says("ready").await;
    let onward = onward::open(folder.path()).await.unwrap();
    put(&onward, "m1").await;
    let mut holder = Other::start(folder.path(), "holder");
    holder.says("leased ").await;
    onward.engine().close(Duration::from_secs(1)).await.unwrap();
    // The host first, so that nobody is left to end the other's lease.
    host.killed().await;
    holder.killed().await;
    let mut next = Other::start(folder.path(), "holder");
    assert_eq!(next.says("leased ").await, "m1 2 true");
}

#[tokio::test]
#[proves("T3", "LOG19")]
async fn a_process_that_was_stopped_past_its_lease_finds_it_lost_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let onward = onward::open(folder.path()).await.unwrap();
    put(&onward, "m1").await;
    let mut stopped = Other::start(folder.path(), "holder");
    stopped.says("leased ").await;
    stopped.signal(rustix::process::Signal::STOP);
    let process = {
        let stats = onward.engine().stats(vec![Inlet::queue(QUEUE).unwrap()]).await.unwrap();
        stats[0].leases[0].holder.process.clone()
    };
    // The lease is ended by hand, which spares the test its term.
    let end = Op::EndProcess { process, died: false };
    commit(&onward, onward.engine().prepare(vec![end]).unwrap()).await.unwrap();
    let other = take(&onward).await;
    ack(&onward, &other).await.unwrap();
    let before = books(&onward).await;
    stopped.signal(rustix::process::Signal::CONT);
    stopped.tell("ack").await;
    assert_eq!(stopped.says("acked ").await, "Err(LeaseLost)");
    assert_eq!(books(&onward).await, before);
}
