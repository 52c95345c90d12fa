//! The process that outlives its worker by a moment, to kill what it left running.
//!
//! The worker writes `+GROUP` before a command may begin and `-GROUP` after it ended. The pipe ends when the worker
//! is gone, also by SIGKILL; then every group still in the list is killed.

use crate::exit::{Exit, Outcome};
use onward_core::Error;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    collections::BTreeSet,
    io::{BufRead, Write, stdin},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::signal::unix::{SignalKind, signal};

/// The hidden command by which the worker starts its guard.
pub(crate) const COMMAND: &str = "guard-commands";

/// The worker's end of its guard. One that dies is replaced, and the new one is told what runs.
#[derive(Debug)]
pub(crate) struct Guard {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    process: Child,
    /// Gone when the guard is to end.
    pipe: Option<ChildStdin>,
    running: BTreeSet<i32>,
}

impl Guard {
    /// Starts the guard of this process.
    ///
    /// # Errors
    /// `Unavailable` when no process can be started.
    pub(crate) fn start() -> Result<Self, Error> {
        let (process, pipe) = spawn()?;
        Ok(Self { inner: Mutex::new(Inner { process, pipe, running: BTreeSet::new() }) })
    }

    /// From now on this group dies with the worker.
    ///
    /// # Errors
    /// `Unavailable` when the guard is gone and no other can be started: then the command may not begin.
    pub(crate) fn add(&self, group: Pid) -> Result<(), Error> {
        let mut inner = self.lock();
        let group = group.as_raw_nonzero().get();
        inner.running.insert(group);
        match inner.tell('+', group) {
            Ok(()) => Ok(()),
            Err(_) => inner.replace(),
        }
    }

    /// This group has ended.
    pub(crate) fn remove(&self, group: Pid) {
        let mut inner = self.lock();
        let group = group.as_raw_nonzero().get();
        inner.running.remove(&group);
        // A guard that is gone is replaced when the next command is to begin.
        let _ = inner.tell('-', group);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn tell(&mut self, sign: char, group: i32) -> std::io::Result<()> {
        let pipe = self.pipe.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        pipe.write_all(format!("{sign}{group}\n").as_bytes())
    }

    fn replace(&mut self) -> Result<(), Error> {
        self.end();
        (self.process, self.pipe) = spawn()?;
        for group in self.running.clone() {
            self.tell('+', group).map_err(|e| no_guard(&e))?;
        }
        Ok(())
    }

    fn end(&mut self) {
        self.pipe.take();
        // It ends by itself now; waiting for it leaves no zombie behind.
        let _ = self.process.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.lock().end();
    }
}

fn spawn() -> Result<(Child, Option<ChildStdin>), Error> {
    let program = std::env::current_exe().map_err(|e| no_guard(&e))?;
    // Its own group, so that Ctrl-C in the terminal does not end it before the worker has drained.
    let mut process = Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| no_guard(&e))?;
    let pipe = process.stdin.take();
    Ok((process, pipe))
}

fn no_guard(error: &std::io::Error) -> Error {
    Error::unavailable(format!("the guard of the commands can't be started: {error}"))
        .mend("see whether the system lets this user start processes")
}

/// The guard itself: reads until the worker is gone, then kills.
pub(crate) fn run() -> Outcome {
    // A service manager may signal the whole family; the guard goes last, when its worker has gone.
    let _deaf: Vec<_> = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
        .into_iter()
        .filter_map(|kind| signal(kind).ok())
        .collect();
    let mut groups = BTreeSet::new();
    for line in stdin().lock().lines().map_while(Result::ok) {
        match line.split_at_checked(1).map(|(sign, group)| (sign, group.parse::<i32>())) {
            Some(("+", Ok(group))) => groups.insert(group),
            Some(("-", Ok(group))) => groups.remove(&group),
            _ => false,
        };
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // A group that has ended meanwhile is no loss.
        let _ = kill_process_group(group, Signal::KILL);
    }
    Ok(Exit::Ok)
}
