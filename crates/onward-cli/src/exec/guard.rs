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
    sync::{Mutex, PoisonError},
};
use tokio::signal::unix::{SignalKind, signal};

/// The hidden command by which the worker starts its guard.
pub(crate) const COMMAND: &str = "guard-commands";

/// The worker's end of its guard.
#[derive(Debug)]
pub(crate) struct Guard {
    pipe: Mutex<Option<ChildStdin>>,
    process: Mutex<Child>,
}

impl Guard {
    /// Starts the guard of this process.
    ///
    /// # Errors
    /// `Unavailable` when no process can be started.
    pub(crate) fn start() -> Result<Self, Error> {
        let wrong = |e: std::io::Error| {
            Error::unavailable(format!("the guard of the commands can't be started: {e}"))
        };
        let program = std::env::current_exe().map_err(wrong)?;
        // Its own group, so that Ctrl-C in the terminal does not end it before the worker has drained.
        let mut process = Command::new(program)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let pipe = Mutex::new(process.stdin.take());
        Ok(Self { pipe, process: Mutex::new(process) })
    }

    /// From now on this group dies with the worker.
    ///
    /// # Errors
    /// `Unavailable` when the guard is gone: then nothing may be started.
    pub(crate) fn add(&self, group: Pid) -> Result<(), Error> {
        self.tell('+', group)
    }

    /// This group has ended.
    pub(crate) fn remove(&self, group: Pid) {
        // A guard that is gone is found out when the next command is to be started.
        let _ = self.tell('-', group);
    }

    fn tell(&self, sign: char, group: Pid) -> Result<(), Error> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let line = format!("{sign}{}\n", group.as_raw_nonzero());
        let written = pipe.as_mut().map(|pipe| pipe.write_all(line.as_bytes()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(Error::unavailable("the guard of the commands is gone").mend("start the worker again")),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It ends by itself now; waiting for it leaves no zombie behind.
        let _ = self.process.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
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
