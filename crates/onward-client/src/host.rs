//! The host: serves one engine to many client processes.

mod calls;
mod orphans;
mod processes;
mod serve;
mod session;

use crate::{socket, this_process};
use onward_core::{Engine, Env, ProcessId, Result};
use processes::Processes;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, watch},
    task::AbortHandle,
};

/// How a [`Host`] behaves; every bound with its unit.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The start of this process.
    pub process: ProcessId,
    /// Most clients at once; a further one is refused with `Full`.
    pub clients_max: u32,
    /// Most calls without a wait that one client may have unanswered; more stay unread.
    pub calls_max: u32,
    /// Most leases with a wait that one client may have unanswered.
    pub waits_max: u32,
    /// Longest time that a client may take nothing of what is written to it, in milliseconds; then it is dropped.
    pub write_ms: u64,
    /// Longest time from connecting to the hello, in milliseconds.
    pub hello_ms: u64,
}

impl HostOptions {
    /// For this process.
    pub fn new(env: &dyn Env) -> Self {
        Self {
            process: this_process(env),
            clients_max: 1_024,
            calls_max: 256,
            waits_max: 64,
            write_ms: 10_000,
            hello_ms: 5_000,
        }
    }
}

/// Serves an engine on a socket until it is closed or dropped.
///
/// Guarantees:
/// - When a client's process dies, its leases end at once ([`onward_core::Op::EndProcess`]), whatever its worker's
///   name and whether or not it ever comes back. A process that is only disconnected keeps them until they expire.
/// - A client that reads slowly or not at all holds up no other one; after [`HostOptions::write_ms`] it is dropped.
/// - What a client sends is prepared anew by the engine before it is committed.
#[derive(Debug)]
pub struct Host {
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

/// What the host and its sessions share.
#[derive(Debug)]
struct Shared {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    options: HostOptions,
    processes: Arc<Processes>,
    clients: Arc<Semaphore>,
    /// Whether the host closes, and how long its sessions may still take.
    stop: watch::Sender<Option<Duration>>,
    sessions: watch::Sender<usize>,
    /// Whether the engine said that only reopening it recovers.
    poisoned: watch::Sender<bool>,
}

impl Host {
    /// Ends the leases of processes that are known dead, then listens at `socket` and serves whoever connects.
    ///
    /// The socket file gets mode 0600 and takes the place of a stale one. The caller must hold the lock of the folder
    /// that it stands in.
    ///
    /// # Errors
    /// `Unavailable` when the socket can't be made; the engine's when its leases can't be read.
    pub async fn serve(
        engine: Arc<dyn Engine>,
        socket: impl AsRef<Path>,
        options: HostOptions,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let processes = Arc::new(Processes::new(engine.clone(), env.clone()));
        orphans::end_dead(&*engine, &processes, &options.process).await?;
        let bound = socket::listen(socket.as_ref())?;
        let shared = Arc::new(Shared {
            engine,
            env,
            clients: Arc::new(Semaphore::new(
                usize::try_from(options.clients_max).unwrap_or(usize::MAX >> 4),
            )),
            options,
            processes,
            stop: watch::Sender::new(None),
            sessions: watch::Sender::new(0),
            poisoned: watch::Sender::new(false),
        });
        let accepting = tokio::spawn(accept_all(shared.clone(), bound)).abort_handle();
        Ok(Self { shared, accepting })
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        *self.shared.sessions.borrow()
    }

    /// Says that the engine is poisoned: the host's own process works without it.
    pub fn poison(&self) {
        self.shared.poisoned.send_replace(true);
    }

    /// Completes when a call was answered with `Poisoned`: only closing and reopening the engine recovers.
    pub async fn poisoned(&self) {
        let mut poisoned = self.shared.poisoned.subscribe();
        // The sender lives as long as this.
        let _ = poisoned.wait_for(|poisoned| *poisoned).await;
    }

    /// Accepts no more clients and removes the socket, answers what was asked for up to `drain`, then ends every
    /// connection. The engine stays open.
    pub async fn close(&self, drain: Duration) {
        self.accepting.abort();
        self.shared.processes.stop();
        self.shared.stop.send_replace(Some(drain));
        let mut sessions = self.shared.sessions.subscribe();
        let margin = drain + Duration::from_millis(self.shared.options.write_ms);
        let _ = crate::within(&*self.shared.env, margin, sessions.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.processes.stop();
        self.shared.stop.send_replace(Some(Duration::ZERO));
    }
}

async fn accept_all(shared: Arc<Shared>, bound: socket::Bound) {
    loop {
        match bound.accept().await {
            Ok(stream) => {
                let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
                tokio::spawn(serve::serve(shared.clone(), stream, pid));
            }
            Err(error) => {
                // Out of file descriptors, most likely: clients wait in the listener's queue meanwhile.
                tracing::warn!(%error, "a connection could not be accepted");
                shared.env.sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
