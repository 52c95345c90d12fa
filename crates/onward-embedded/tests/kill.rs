//! A real process under load is killed with SIGKILL at random, again and again, on one folder.
//!
//! The child says on its standard output what it is about to do and what was answered; a killed process's pipe keeps
//! what was written to it. `ONWARD_KILL_ROUNDS` sets the number of rounds (`cargo xtask soak` runs 1,000).
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

use onward_core::{
    Engine, Env, ErrorKind, FindBy, Holder, Inlet, LeaseRequest, Message, MessageQuery, MessageState, Op,
    Outcome, ProcessId, RequestId,
};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use onward_proves::proves;
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

const FOLDER: &str = "ONWARD_KILL_FOLDER";
const ROUNDS: &str = "ONWARD_KILL_ROUNDS";
const PRODUCERS: usize = 8;
const WORKERS: usize = 4;
/// The child lives so long at most, in milliseconds, before it is killed.
const LIFE_MS_MAX: u64 = 120;

fn inlet() -> Inlet {
    Inlet::queue("kill").unwrap()
}

fn options() -> OpenOptions {
    // Small segments, so that rounds also die while segments roll, snapshots are written and segments released.
    OpenOptions { segment_bytes: 256 << 10, snapshot_bytes_min: 256 << 10, ..OpenOptions::default() }
}

/// What the child said, over all rounds.
#[derive(Debug, Default)]
struct Told {
    sending: BTreeSet<String>,
    accepted: BTreeSet<String>,
    settling: BTreeSet<String>,
    settled: BTreeSet<String>,
}

impl Told {
    /// The last line of a killed child may be cut: whole ones end in a full stop.
    fn whole_line(&mut self, line: &str) {
        let Some((rest, id)) = line.strip_suffix('.').and_then(|line| line.rsplit_once(' ')) else { return };
        let word = rest.rsplit(' ').next().unwrap_or_default();
        let set = match word {
            "sending" => &mut self.sending,
            "accepted" => &mut self.accepted,
            "settling" => &mut self.settling,
            "settled" => &mut self.settled,
            _ => return,
        };
        set.insert(id.to_owned());
    }
}

#[test]
#[proves("LOG24", "LOG13", "B2")]
fn a_process_killed_at_random_under_load_loses_nothing_and_invents_nothing() {
    let rounds: u64 = std::env::var(ROUNDS).map_or(30, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut told = Told::default();
    for round in 0..rounds {
        let wait = SystemEnv.random() % LIFE_MS_MAX;
        // Every other child dies early, while it still opens or begins; the others when they are well at work.
        let word = if round % 2 == 0 { "settled" } else { "sending" };
        kill_after(spawn(folder.path()), word, Duration::from_millis(wait), &mut told);
        check(folder.path(), &told, round);
        if round % 100 == 99 {
            eprintln!(
                "{} of {rounds} kills, {} accepted, {} settled",
                round + 1,
                told.accepted.len(),
                told.settled.len()
            );
        }
    }
    assert!(
        told.settled.len() as u64 >= rounds / 2,
        "the children did next to nothing: {}",
        told.settled.len()
    );
}

#[test]
#[proves("LOG13")]
fn a_second_process_is_refused_by_name_of_the_holder_until_that_one_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = spawn(folder.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("accepted")), "the child never came to work");

    let refused = EmbeddedEngine::open(folder.path(), options(), SystemEnv::shared()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert!(refused.to_string().contains(&format!("process {}", child.id())), "{refused}");

    child.kill().unwrap();
    child.wait().unwrap();
    let engine = EmbeddedEngine::open(folder.path(), options(), SystemEnv::shared()).unwrap();
    assert!(engine.health().writable);
}

fn spawn(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "as_a_child_it_works_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the child has said `word` for the first time, then for `wait`.
fn kill_after(mut child: Child, word: &str, wait: Duration, told: &mut Told) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.by_ref() {
        let line = line.unwrap();
        told.whole_line(&line);
        if line.contains(word) {
            break;
        }
    }
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<String>>());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { SystemEnv.sleep(wait).await });
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap().iter().for_each(|line| told.whole_line(line));
}

fn check(folder: &Path, told: &Told, round: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let there = runtime.block_on(async {
        let engine = EmbeddedEngine::open(folder, options(), SystemEnv::shared()).unwrap();
        let there = unfinished(&engine).await;
        engine.close(Duration::from_secs(5)).await.unwrap();
        there
    });
    for id in &told.accepted {
        assert!(there.contains(id) || told.settling.contains(id), "round {round}: accepted {id} is lost");
    }
    for id in &there {
        assert!(told.sending.contains(id), "round {round}: {id} was never sent");
        assert!(!told.settled.contains(id), "round {round}: settled {id} came back");
    }
}

async fn unfinished(engine: &EmbeddedEngine) -> BTreeSet<String> {
    let mut there = BTreeSet::new();
    for state in [MessageState::Waiting, MessageState::Delayed, MessageState::Leased, MessageState::Dead] {
        let mut after = None;
        loop {
            let query = MessageQuery { inlet: inlet(), by: FindBy::State(state), after, limit: 1000 };
            let Ok(page) = engine.find(query).await else { break };
            for view in page.items {
                assert!(there.insert(view.message.id.to_string()), "{} is there twice", view.message.id);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    there
}

fn say(word: &str, id: &str) {
    let mut out = std::io::stdout().lock();
    // One write for one line: a pipe takes it whole.
    out.write_all(format!("{word} {id}.\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Does nothing unless it is started as the child of a test above.
#[test]
fn as_a_child_it_works_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine =
            Arc::new(EmbeddedEngine::open(Path::new(&folder), options(), SystemEnv::shared()).unwrap());
        let producers = (0..PRODUCERS).map(|_| tokio::spawn(produce(engine.clone())));
        let workers = (0..WORKERS).map(|number| tokio::spawn(work(engine.clone(), number)));
        for task in producers.chain(workers).collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
}

async fn produce(engine: Arc<EmbeddedEngine>) {
    loop {
        let message = Message::builder("kill.me").json(&vec![7u8; 300]).build(&SystemEnv).unwrap();
        let id = message.id.to_string();
        say("sending", &id);
        let Inlet::Queue(queue) = inlet() else { return };
        let op = Op::Enqueue { queue, message: Box::new(message) };
        engine.commit(engine.prepare(vec![op]).unwrap()).await.unwrap();
        say("accepted", &id);
    }
}

async fn work(engine: Arc<EmbeddedEngine>, number: usize) {
    let holder = Holder { worker: format!("w{number}").into(), process: ProcessId("child".into()) };
    loop {
        let mut request = LeaseRequest::one(inlet(), holder.clone(), RequestId::generate(&SystemEnv));
        request.wait = Duration::from_millis(500);
        for delivery in engine.lease(request).await.unwrap() {
            let id = delivery.message.id.to_string();
            say("settling", &id);
            let op = Op::Settle { token: delivery.token, outcome: Outcome::Ack { result: None } };
            engine.commit(engine.prepare(vec![op]).unwrap()).await.unwrap();
            say("settled", &id);
        }
    }
}
