//! The processes that work through this host: who is there, and whose leases end.

use crate::{
    process::{Life, life, life_of_peer, pid_of},
    within,
};
use onward_core::{Engine, Env, Error, Op, ProcessId, Result, RetryHint, RetryPolicy};
use parking_lot::Mutex;
use std::{collections::HashMap, os::fd::OwnedFd, sync::Arc, time::Duration};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::watch,
    task::AbortHandle,
};

/// Most processes that are watched over at once.
const PROCESSES_MAX: usize = 4_096;
/// How long what a dead process had sent may take to be read and done, before its leases end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Attempts to write that a process ended; then its leases end by themselves.
const END_ATTEMPTS: u32 = 20;

/// Every process that is connected or watched over.
#[derive(Debug)]
pub(super) struct Processes {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<ProcessId, Entry>,
    stopped: bool,
}

#[derive(Debug)]
struct Entry {
    presence: Arc<watch::Sender<Presence>>,
    watcher: Option<AbortHandle>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Presence {
    connections: usize,
    dead: bool,
}

impl Processes {
    pub(super) fn new(engine: Arc<dyn Engine>, env: Arc<dyn Env>) -> Self {
        Self { engine, env, table: Mutex::default() }
    }

    /// One more connection of a process; `peer` is what the kernel says of its other end.
    ///
    /// # Errors
    /// `Full` when too many processes are known.
    pub(super) fn join(self: &Arc<Self>, process: &ProcessId, peer: Option<i32>) -> Result<Member> {
        let mut table = self.table.lock();
        if !table.entries.contains_key(process) {
            if table.entries.len() >= PROCESSES_MAX {
                return Err(Error::full(format!("{PROCESSES_MAX} processes work through this host")));
            }
            let entry = self.begin(process.clone(), handle_of(process, peer));
            table.entries.insert(process.clone(), entry);
        }
        let presence = table.entries[process].presence.clone();
        presence.send_modify(|presence| presence.connections += 1);
        Ok(Member { processes: self.clone(), process: process.clone(), presence, goodbye: false })
    }

    /// Watches over a process that is not connected but holds leases.
    pub(super) fn adopt(self: &Arc<Self>, process: ProcessId, handle: OwnedFd) {
        let mut table = self.table.lock();
        if table.entries.len() < PROCESSES_MAX && !table.entries.contains_key(&process) {
            let entry = self.begin(process.clone(), Some(handle));
            table.entries.insert(process, entry);
        }
    }

    fn begin(self: &Arc<Self>, process: ProcessId, handle: Option<OwnedFd>) -> Entry {
        let presence = Arc::new(watch::Sender::new(Presence::default()));
        let watcher = handle.map(|handle| {
            tokio::spawn(self.clone().attend(process, handle, presence.clone())).abort_handle()
        });
        Entry { presence, watcher }
    }

    /// Waits for a process to die, then ends its leases.
    async fn attend(
        self: Arc<Self>,
        process: ProcessId,
        handle: OwnedFd,
        presence: Arc<watch::Sender<Presence>>,
    ) {
        #[expect(
            deprecated,
            reason = "its successor needs `unsafe`; an `OwnedFd` keeps the promise that it asks for"
        )]
        let Ok(handle) = AsyncFd::with_interest(handle, Interest::READABLE) else { return };
        if handle.readable().await.is_err() {
            return;
        }
        // What it had sent before is taken first; a lease that it still waited for is given up.
        let left = async || {
            let mut presence = presence.subscribe();
            let _ = presence.wait_for(|presence| presence.connections == 0).await;
        };
        if within(&*self.env, LAST_WORDS, left()).await.is_none() {
            presence.send_modify(|presence| presence.dead = true);
            let _ = within(&*self.env, LAST_WORDS, left()).await;
        }
        self.end(&process, true).await;
        self.table.lock().entries.remove(&process);
    }

    /// Ends the leases of a process, as an operation like any other.
    pub(super) async fn end(&self, process: &ProcessId, died: bool) {
        let backoff = RetryPolicy { delay_max_ms: 2_000, ..RetryPolicy::default() };
        for attempt in 1..=END_ATTEMPTS {
            match self.try_end(process, died).await {
                Ok(()) => return,
                Err(error) if error.retry_hint() == RetryHint::Never => {
                    tracing::warn!(%error, process = &*process.0, "the leases of a process run their term");
                    return;
                }
                Err(error) => tracing::debug!(%error, attempt, "could not end a process's leases yet"),
            }
            self.env.sleep(backoff.delay(attempt, self.env.random())).await;
        }
    }

    async fn try_end(&self, process: &ProcessId, died: bool) -> Result<()> {
        let ops = self.engine.prepare(vec![Op::EndProcess { process: process.clone(), died }])?;
        self.engine.commit(ops).await.map(drop)
    }

    fn leave(&self, process: &ProcessId, goodbye: bool) {
        let mut table = self.table.lock();
        let stopped = table.stopped;
        let Some(entry) = table.entries.get(process) else { return };
        let connections = entry.presence.borrow().connections;
        if connections > 0 || stopped {
            return;
        }
        // One that may come back, or die later, stays watched over.
        if goodbye || entry.watcher.is_none() {
            let ended = table.entries.remove(process).and_then(|entry| entry.watcher);
            ended.inspect(AbortHandle::abort);
        }
    }

    /// Whether this is the last connection of the process.
    fn is_last(&self, process: &ProcessId) -> bool {
        let table = self.table.lock();
        table.entries.get(process).is_none_or(|entry| entry.presence.borrow().connections <= 1)
    }

    /// Ends no leases any more: the host goes, the processes stay.
    pub(super) fn stop(&self) {
        let mut table = self.table.lock();
        table.stopped = true;
        table.entries.drain().filter_map(|(_, entry)| entry.watcher).for_each(|watcher| watcher.abort());
    }
}

/// What becomes readable when the process dies: by its own name, or as the kernel knows the connection's other end.
fn handle_of(process: &ProcessId, peer: Option<i32>) -> Option<OwnedFd> {
    let by_name = match life(process) {
        Life::Alive(handle) => return Some(handle),
        other => other,
    };
    // Its number may mean another process here than there; then only the kernel's word counts.
    let foreign = matches!(by_name, Life::Unknown) || pid_of(process).is_none();
    match peer.filter(|_| foreign).map(life_of_peer) {
        Some(Life::Alive(handle)) => Some(handle),
        _ => None,
    }
}

/// One connection of a process; leaves when dropped.
#[derive(Debug)]
pub(super) struct Member {
    processes: Arc<Processes>,
    process: ProcessId,
    presence: Arc<watch::Sender<Presence>>,
    goodbye: bool,
}

impl Member {
    /// Completes when the process is dead and its last words had their time.
    pub(super) async fn dead(&self) {
        let mut presence = self.presence.subscribe();
        let dead = presence.wait_for(|presence| presence.dead).await.is_ok();
        if !dead {
            std::future::pending::<()>().await;
        }
    }

    /// The process is done: what it holds is released, unless it has other connections.
    pub(super) async fn goodbye(mut self) {
        if self.processes.is_last(&self.process) {
            self.processes.end(&self.process, false).await;
        }
        self.goodbye = true;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.presence.send_modify(|presence| presence.connections -= 1);
        self.processes.leave(&self.process, self.goodbye);
    }
}
