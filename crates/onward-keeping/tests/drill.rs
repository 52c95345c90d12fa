//! The drill: a process at work is killed with SIGKILL and its folder is lost; what was shipped is restored, and what
//! is missing and how long it took are measured. `--nocapture` shows the figures.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

use onward_core::{Engine, Env, FindBy, Inlet, Message, MessageQuery, MessageState, Op};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use onward_keeping::{Destination, ShipOptions, Shipper, Target, restore};
use onward_proves::proves;
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

const FOLDER: &str = "ONWARD_DRILL_FOLDER";
const PRODUCERS: usize = 8;
const EVERY: Duration = Duration::from_millis(200);
const PASSES: usize = 10;

fn inlet() -> Inlet {
    Inlet::queue("drill").unwrap()
}

fn options() -> OpenOptions {
    OpenOptions { segment_bytes: 1 << 20, reserve_bytes: 1 << 20, ..OpenOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[proves("LOG23")]
async fn a_lost_machine_loses_only_what_was_accepted_since_the_last_pass() {
    let (place, env) = (tempfile::tempdir().unwrap(), SystemEnv);
    let (data, copies) = (place.path().join("data"), place.path().join("copies"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "as_a_child_it_accepts_until_it_is_killed", "--nocapture"])
        .env(FOLDER, &data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.by_ref().find(|line| line.contains("accepted")).expect("the child never came to work");
    let reader = std::thread::spawn(move || lines.collect::<Vec<String>>());
    let to = Destination::open(copies.to_str().unwrap()).unwrap();
    let ship = ShipOptions { every: EVERY, ..ShipOptions::default() };
    let mut shipper = Shipper::start(&data, &to, &ship, Arc::new(|_| {}), SystemEnv::shared()).await.unwrap();
    let mut last_pass_begun = env.now();
    for _ in 0..PASSES {
        env.sleep(EVERY).await;
        last_pass_begun = env.now();
        shipper.step().await.unwrap();
    }
    // The machine is lost just before the next pass.
    env.sleep(EVERY).await;
    child.kill().unwrap();
    let killed = env.now();
    child.wait().unwrap();
    drop(shipper);

    let begun = env.monotonic();
    let copy = place.path().join("restored");
    let restored = restore(&to, &copy, Target::End, SystemEnv::shared()).await.unwrap();
    let engine = EmbeddedEngine::open(&copy, options(), SystemEnv::shared()).unwrap();
    let took = env.monotonic() - begun;
    let there = there(&engine).await;

    let told = reader.join().unwrap();
    let accepted: Vec<(i64, &str)> = told.iter().filter_map(|line| accepted(line)).collect();
    let lost: Vec<i64> = accepted.iter().filter(|(_, id)| !there.contains(*id)).map(|(at, _)| *at).collect();
    let oldest = lost.iter().min().copied().unwrap_or(killed.as_micros());
    println!(
        "shipping every {} ms, {} accepted, {} lost, all in the last {} ms; {} KiB restored and opened in {} ms",
        EVERY.as_millis(),
        accepted.len(),
        lost.len(),
        (killed.as_micros() - oldest) / 1000,
        restored.bytes >> 10,
        took.as_millis(),
    );
    assert!(accepted.len() > 100, "the child did next to nothing");
    assert!(oldest >= last_pass_begun.as_micros(), "what was accepted before the last pass began is lost");
}

fn accepted(line: &str) -> Option<(i64, &str)> {
    let (at, id) = line.strip_suffix('.')?.strip_prefix("accepted ")?.split_once(' ')?;
    Some((at.parse().ok()?, id))
}

async fn there(engine: &EmbeddedEngine) -> BTreeSet<String> {
    let (mut there, mut after) = (BTreeSet::new(), None);
    loop {
        let by = FindBy::State(MessageState::Waiting);
        let page = engine.find(MessageQuery { inlet: inlet(), by, after, limit: 1000 }).await.unwrap();
        there.extend(page.items.iter().map(|view| view.message.id.to_string()));
        after = page.next;
        if after.is_none() {
            return there;
        }
    }
}

/// Does nothing unless it is started as the child of the test above.
#[test]
fn as_a_child_it_accepts_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine =
            Arc::new(EmbeddedEngine::open(Path::new(&folder), options(), SystemEnv::shared()).unwrap());
        let producers = (0..PRODUCERS).map(|_| tokio::spawn(produce(engine.clone()))).collect::<Vec<_>>();
        for producer in producers {
            producer.await.unwrap();
        }
    });
}

async fn produce(engine: Arc<EmbeddedEngine>) {
    loop {
        let message = Message::builder("drill").json(&vec![7u8; 300]).build(&SystemEnv).unwrap();
        let id = message.id.to_string();
        let Inlet::Queue(queue) = inlet() else { return };
        let op = Op::Enqueue { queue, message: Box::new(message) };
        engine.commit(engine.prepare(vec![op]).unwrap()).await.unwrap();
        // One write for one line: a pipe takes it whole, or not at all when the process is killed.
        let line = format!("accepted {} {id}.\n", SystemEnv.now().as_micros());
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}
