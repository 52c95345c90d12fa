//! The server process of the suite: the embedded engine on a folder, on a clock that its parent moves.
//!
//! Parent and child speak in lines: the child says `ready` once it serves; a step of the clock is told as
//! `advance MICROS`, `forward MICROS` or `back MICROS` and answered `ok`; `close` ends it in good order.

use anyhow::{Context, Result, bail};
use onward_client::{Host, HostOptions};
use onward_conformance::{Answer, Step, SteppedEnv, Stop};
use onward_core::{Engine, Env, Timestamp};
use onward_embedded::EmbeddedEngine;
use onward_env::SystemEnv;
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};

/// The argument that makes the binary a server.
pub const SERVE: &str = "serve-for-the-suite";

/// A running server process, seen from its parent.
pub(crate) struct Server {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Server {
    /// Where the server of a folder listens.
    pub(crate) fn socket(folder: &Path) -> PathBuf {
        folder.join("suite.sock")
    }

    /// Starts one and waits until it serves.
    pub(crate) fn start(program: &Path, folder: &Path, env: &SteppedEnv) -> Answer<Self> {
        let wall = env.now().as_micros().to_string();
        let monotonic = env.monotonic().as_micros().to_string();
        let mut command = Command::new(program);
        command.arg(SERVE).arg(folder).args([wall, monotonic]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let not_run = |what: &str| Stop::NotRun(format!("the server process {what}"));
        let mut child = command.spawn().map_err(|e| not_run(&format!("can't be started: {e}")))?;
        let orders = child.stdin.take().ok_or_else(|| not_run("has no stdin"))?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(|| not_run("has no stdout"))?);
        let mut server = Self { child, orders, answers };
        match server.hear().as_deref() {
            Some("ready") => Ok(server),
            heard => Err(Stop::Failed(format!("the server process ended before it served, with {heard:?}"))),
        }
    }

    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    fn order(&mut self, order: &str) {
        // A server that is gone shows in the next call of the check, not here.
        let _ = writeln!(self.orders, "{order}");
        let _ = self.orders.flush();
    }

    /// Moves the server's clock, and waits until it has moved.
    pub(crate) fn follow(&mut self, step: Step) {
        let (word, span) = match step {
            Step::Advance(span) => ("advance", span),
            Step::WallForward(span) => ("forward", span),
            Step::WallBack(span) => ("back", span),
        };
        self.order(&format!("{word} {}", span.as_micros()));
        self.hear();
    }

    /// Ends it in good order.
    pub(crate) fn stop(mut self) {
        self.order("close");
        let _ = self.child.wait();
    }

    /// Ends it as SIGKILL does.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server process itself.
///
/// # Errors
/// When the folder can't be opened or the socket can't be made.
pub fn serve(arguments: &[String]) -> Result<()> {
    let [folder, wall, monotonic] = arguments else { bail!("{SERVE} takes FOLDER WALL MONOTONIC") };
    let wall = Timestamp::from_micros(wall.parse()?);
    let env = SteppedEnv::at(19, wall, Duration::from_micros(monotonic.parse()?));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve_folder(Path::new(folder), env))
}

async fn serve_folder(folder: &Path, env: SteppedEnv) -> Result<()> {
    let engine = EmbeddedEngine::open(folder, crate::folder::options(), Arc::new(env.clone()))?;
    let engine: Arc<dyn Engine> = Arc::new(engine);
    let system: Arc<dyn Env> = SystemEnv::shared();
    let host =
        Host::serve(engine.clone(), Server::socket(folder), HostOptions::new(&*system), system).await?;
    println!("ready");
    tokio::task::spawn_blocking(move || obey(&env)).await??;
    host.close(Duration::from_secs(5)).await;
    engine.close(Duration::from_secs(5)).await?;
    Ok(())
}

/// Moves the clock as it is told, until `close` or the end of the parent.
fn obey(env: &SteppedEnv) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ');
        let span = |words: &mut std::str::Split<'_, char>| -> Result<Duration> {
            let micros = words.next().context("an order without its span")?;
            Ok(Duration::from_micros(micros.parse()?))
        };
        match words.next() {
            Some("advance") => env.step(Step::Advance(span(&mut words)?)),
            Some("forward") => env.step(Step::WallForward(span(&mut words)?)),
            Some("back") => env.step(Step::WallBack(span(&mut words)?)),
            Some("close") => return Ok(()),
            other => bail!("the order {other:?} is not known"),
        }
        println!("ok");
    }
    Ok(())
}
