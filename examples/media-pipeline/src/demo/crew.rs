//! Worker processes: this same program, started again with a role. They say what they do on their standard output, and
//! end when their standard input does, so that none outlives the demo.

use crate::catalog::Catalog;
use crate::report::{Event, Reporter};
use crate::storage::Storage;
use crate::worker::{Begin, worker};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

/// How long a worker may take to end its pictures when it is asked to stop.
pub(super) const GRACE: Duration = Duration::from_secs(20);
const ROLE: &str = "MEDIA_PIPELINE_ROLE";
const CONCURRENCY: u32 = 2;

/// What a worker process is told by its environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Role {
    name: String,
    dir: PathBuf,
    hold: bool,
}

impl Role {
    /// The role of this process, if it is a worker's.
    pub(super) fn of_this_process() -> Result<Option<Self>> {
        let Some(text) = std::env::var_os(ROLE) else { return Ok(None) };
        let role =
            serde_json::from_str(&text.to_string_lossy()).with_context(|| format!("{ROLE} can't be read"))?;
        Ok(Some(role))
    }
}

/// What a worker process says: it began a picture.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Began {
    pub(super) worker: String,
    pub(super) upload: String,
    pub(super) attempt: u32,
}

/// Is a worker until standard input ends.
pub(super) async fn work(role: Role) -> Result<()> {
    let onward = super::open(&role.dir).await?;
    let catalog = Catalog::new(onward.clone(), Storage::local(&role.dir.join("objects"))?);
    let Role { name, hold, .. } = role;
    let on_begin = move |upload: &str, attempt: u32| {
        let began = Began { worker: name.clone(), upload: upload.to_owned(), attempt };
        // One line is one write: lines of concurrent handlers never mix.
        println!("{}", serde_json::to_string(&began).unwrap_or_default());
        if hold { Begin::HoldForever } else { Begin::GoOn }
    };
    let concurrency = if hold { 1 } else { CONCURRENCY };
    worker(catalog, concurrency, Box::new(on_begin)).run_until(stdin_ends()).await?;
    onward.engine().close(GRACE).await?;
    Ok(())
}

async fn stdin_ends() {
    // An error of reading means the same: whoever started this is gone.
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}

struct Member {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
}

/// The worker processes of one run.
pub(super) struct Crew<'a> {
    dir: &'a Path,
    reporter: &'a Reporter,
    members: Vec<Member>,
    say: mpsc::Sender<Began>,
    heard: mpsc::Receiver<Began>,
}

impl<'a> Crew<'a> {
    pub(super) fn new(dir: &'a Path, reporter: &'a Reporter) -> Self {
        let (say, heard) = mpsc::channel(256);
        Self { dir, reporter, members: Vec::new(), say, heard }
    }

    /// Starts a worker process.
    pub(super) fn start(&mut self, hold: bool) -> Result<()> {
        let name = format!("worker-{}", self.members.len() + 1);
        let role = Role { name: name.clone(), dir: self.dir.to_owned(), hold };
        let program = std::env::current_exe().context("this program can't be found")?;
        let mut child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(ROLE, serde_json::to_string(&role)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("a worker process can't be started")?;
        let pid = child.id().context("a worker process ended at once")?;
        self.reporter.tell(&Event::WorkerBegan { worker: name.clone(), pid });
        let stdout = child.stdout.take().context("a worker has no standard output")?;
        let say = self.say.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(began) = serde_json::from_str(&line) else { continue };
                if say.send(began).await.is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        self.members.push(Member { name, child, stdin });
        Ok(())
    }

    /// Starts a worker, waits until it is in the middle of a picture, and kills it with SIGKILL. Answers the picture.
    pub(super) async fn kill_one_in_the_middle(&mut self) -> Result<String> {
        self.start(true)?;
        let member = self.members.last_mut().context("it was started above")?;
        let began = tokio::select! {
            began = self.heard.recv() => began.context("the worker fell silent")?,
            status = member.child.wait() => bail!("the worker ended by itself: {}", status?),
        };
        let pid = member.child.id().unwrap_or_default();
        member.child.kill().await.context("the worker can't be killed")?;
        let upload = began.upload.clone();
        self.reporter.tell(&Event::Working {
            worker: began.worker,
            upload: upload.clone(),
            attempt: began.attempt,
        });
        let worker = member.name.clone();
        self.reporter.tell(&Event::WorkerKilled { worker, pid, upload: upload.clone() });
        Ok(upload)
    }

    /// The next thing that a worker said.
    pub(super) async fn hear(&mut self) -> Option<Began> {
        self.heard.recv().await
    }

    /// Lets every worker end what it is doing.
    pub(super) async fn stop(mut self) -> Result<()> {
        for member in &mut self.members {
            member.stdin.take();
        }
        for mut member in self.members {
            member.child.wait().await.with_context(|| format!("{} does not end", member.name))?;
        }
        Ok(())
    }
}
