//! One command for one delivery: started behind a gate, fed, watched, killed with everything that it started.

use super::{
    guard::Guard,
    output::{Kept, Onto, Tail, pump},
    verdict::Ended,
};
use futures::future::{Either, join3, select};
use onward::work::Stop;
use onward_core::{Env, Payload, RECORD_VALUE_BYTES_MAX};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
};

/// Between the request to end and the kill.
const KILL_AFTER: Duration = Duration::from_secs(1);
/// How long output is awaited that a process outside the group still holds open.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);
/// The command waits for one line before it begins. The worker writes that line once the guard knows the group, so
/// that no command ever runs that nobody would kill; without the line it does not run at all.
const GATE: &str = "IFS= read -r onward_gate || exit 75; exec /bin/sh -c \"$1\"";

/// How commands are run.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The shell command.
    pub(crate) command: String,
    /// Stdout is the message's result.
    pub(crate) keep_output: bool,
    /// Kills what a dead worker leaves running.
    pub(crate) guard: Guard,
    /// Clock and sleeping.
    pub(crate) env: Arc<dyn Env>,
}

/// What a command gets.
#[derive(Debug)]
pub(super) struct Job {
    /// Variables beside the inherited ones.
    pub(super) variables: Vec<(&'static str, String)>,
    /// The one line on its stdin.
    pub(super) line: String,
}

/// Where the output of commands goes on to.
pub(super) struct Streams {
    pub(super) stdout: Option<Onto>,
    pub(super) stderr: Option<Onto>,
}

impl Streams {
    /// To the worker's own streams.
    pub(super) fn own() -> Self {
        let stdout = tokio::sync::Mutex::new(Box::new(tokio::io::stdout()) as Box<_>);
        let stderr = tokio::sync::Mutex::new(Box::new(tokio::io::stderr()) as Box<_>);
        Self { stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// Nowhere.
    pub(super) fn nowhere() -> Self {
        Self { stdout: None, stderr: None }
    }
}

/// How a command ended and what it wrote.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) ended: Ended,
    /// The end of what it wrote to both streams.
    pub(super) tail: String,
    /// Its stdout as a result, where results are kept.
    pub(super) result: Option<Payload>,
    /// Its stdout was too long to be a result.
    pub(super) result_too_long: bool,
}

impl Report {
    fn not_started(why: impl std::fmt::Display) -> Self {
        let ended = Ended::NotStarted(why.to_string());
        Self { ended, tail: String::new(), result: None, result_too_long: false }
    }
}

/// The process group of a running command: killed and forgotten when it goes out of scope, also when its future is
/// dropped in the middle.
struct Group<'a> {
    id: Pid,
    guard: &'a Guard,
    ended: AtomicBool,
}

impl Group<'_> {
    fn signal(&self, signal: Signal) {
        // A group that has no process any more needs no signal.
        let _ = kill_process_group(self.id, signal);
    }

    /// What the command started and left behind ends with it. Once only: afterwards the number may be another's.
    fn end(&self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            self.signal(Signal::KILL);
            self.guard.remove(self.id);
        }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl Runner {
    /// Runs the command for one delivery, until it has ended or `stop` says so.
    ///
    /// Cancel safety: dropping the future kills the command with everything that it started.
    pub(super) async fn run(&self, job: Job, stop: impl Future<Output = Stop>, onto: &Streams) -> Report {
        let mut child = match self.command(&job).spawn() {
            Ok(child) => child,
            Err(e) => return Report::not_started(format_args!("/bin/sh can't be started: {e}")),
        };
        let Some(id) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
            return Report::not_started("the command has no process id");
        };
        let group = Group { id, guard: &self.guard, ended: AtomicBool::new(false) };
        if let Err(error) = self.guard.add(id) {
            return Report::not_started(error);
        }
        self.watch(&mut child, &group, job.line, stop, onto).await
    }

    async fn watch(
        &self,
        child: &mut Child,
        group: &Group<'_>,
        line: String,
        stop: impl Future<Output = Stop>,
        onto: &Streams,
    ) -> Report {
        let tail = Tail::default();
        let mut kept = self.keep_output.then(|| Kept::new(RECORD_VALUE_BYTES_MAX));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ended = {
            let io = join3(
                feed(stdin, line),
                pump(stdout, &tail, kept.as_mut(), onto.stdout.as_ref()),
                pump(stderr, &tail, None, onto.stderr.as_ref()),
            );
            // Output that is still on its way when the command has ended gets a moment.
            let end = async {
                let ended = self.end(child, group, stop).await;
                (ended, self.env.sleep(OUTPUT_WAIT))
            };
            let (mut io, mut end) = (pin!(io), pin!(end));
            match select(&mut end, &mut io).await {
                Either::Left(((ended, wait), io)) => {
                    select(pin!(io), wait).await;
                    ended
                }
                Either::Right((_, end)) => end.await.0,
            }
        };
        let whole = kept.map(Kept::whole);
        let result_too_long = matches!(whole, Some(None));
        Report { ended, tail: tail.text(), result: whole.flatten().map(result), result_too_long }
    }

    /// Waits for the end, makes it come where it must, and kills what is left of the group.
    async fn end(&self, child: &mut Child, group: &Group<'_>, stop: impl Future<Output = Stop>) -> Ended {
        let ended = tokio::select! {
            biased;
            status = child.wait() => ended_with(status),
            why = stop => {
                // Another may hold the message any moment now: then there is no time for courtesy.
                if !matches!(why, Stop::LeaseLost | Stop::LeaseEnding) {
                    group.signal(Signal::TERM);
                    tokio::select! {
                        _ = child.wait() => {}
                        () = self.env.sleep(KILL_AFTER) => {}
                    }
                }
                Ended::Stopped(why)
            }
        };
        group.end();
        if matches!(ended, Ended::Stopped(_)) {
            let _ = child.wait().await;
        }
        ended
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", GATE, "onward", &self.command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .envs(job.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The gate's line, the envelope, the end. A command that does not read its stdin is no failure.
async fn feed(stdin: Option<ChildStdin>, line: String) {
    if let Some(mut stdin) = stdin {
        let text = format!("\n{line}\n");
        let _ = stdin.write_all(text.as_bytes()).await;
        let _ = stdin.shutdown().await;
    }
}

fn ended_with(status: std::io::Result<ExitStatus>) -> Ended {
    match status {
        Ok(status) => Ended::Status(status),
        Err(e) => Ended::NotStarted(format!("the command's end can't be read: {e}")),
    }
}

/// JSON stays JSON; other text is text, and the rest is bytes.
fn result(stdout: Vec<u8>) -> Payload {
    let kind = if std::str::from_utf8(&stdout).is_ok() { "text/plain" } else { "application/octet-stream" };
    let bytes = bytes::Bytes::from(stdout);
    Payload::json_text(bytes.clone()).unwrap_or_else(|_| Payload::trusted(bytes, Some(kind.into())))
}
