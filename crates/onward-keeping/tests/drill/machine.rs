//! The machine that is lost: a process that accepts some thousand messages a second until it is killed.

use onward_core::{Engine, Env, Inlet, Message, Op};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::{SystemEnv, pass};
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

const FOLDER: &str = "ONWARD_DRILL_FOLDER";
const PRODUCERS: usize = 8;
/// What each waits behind a message: without it a fast disk takes more than is shipped, and each pass is longer than the
/// one before.
const PAUSE: Duration = Duration::from_millis(2);

pub fn inlet() -> Inlet {
    Inlet::queue("drill").unwrap()
}

pub fn options() -> OpenOptions {
    OpenOptions { segment_bytes: 1 << 20, reserve_bytes: 1 << 20, ..OpenOptions::default() }
}

/// How long the machine works before it is lost: `ONWARD_DRILL_SECONDS`, or a moment.
pub fn works_for() -> Duration {
    let seconds = std::env::var("ONWARD_DRILL_SECONDS").ok().and_then(|text| text.parse().ok());
    seconds.map_or(Duration::from_millis(1_500), Duration::from_secs)
}

/// A message that was accepted: when that was told, in microseconds, and its id.
pub type Accepted = (i64, String);

pub struct Machine {
    pub data: PathBuf,
    child: Child,
    reader: JoinHandle<Vec<String>>,
}

impl Machine {
    /// Starts it, and waits until it accepts.
    pub fn start(data: PathBuf) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "as_a_child_it_accepts_until_it_is_killed", "--nocapture"])
            .env(FOLDER, &data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        lines.by_ref().find(|line| line.contains("accepted")).expect("the child never came to work");
        let reader = std::thread::spawn(move || lines.collect::<Vec<String>>());
        Self { data, child, reader }
    }

    /// Kills it; answers when, in microseconds, and all that it had accepted.
    pub fn lose(mut self) -> (i64, Vec<Accepted>) {
        self.child.kill().unwrap();
        let killed = SystemEnv.now().as_micros();
        self.child.wait().unwrap();
        let told = self.reader.join().unwrap();
        let accepted: Vec<Accepted> = told.iter().filter_map(|line| accepted(line)).collect();
        assert!(accepted.len() > 100, "the child did next to nothing");
        (killed, accepted)
    }
}

fn accepted(line: &str) -> Option<Accepted> {
    let (at, id) = line.strip_suffix('.')?.strip_prefix("accepted ")?.split_once(' ')?;
    Some((at.parse().ok()?, id.to_owned()))
}

/// What the child does; nothing unless it is one.
pub fn work_if_child() {
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
        pass(&SystemEnv, PAUSE).await;
    }
}
