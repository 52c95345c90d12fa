//! A data folder that many processes share: one of them hosts the engine, the others are its clients.

mod engine;
mod enter;
mod lock;
mod options;

pub use options::{FolderOptions, Role};

use enter::{Entered, enter};
use onward_client::within;
use onward_core::{Capabilities, Engine, Env, Error, Health, Op, Problem, ProcessId, Result, Timestamp};
use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, task::AbortHandle};

/// The socket of the host, in its folder.
const SOCKET: &str = "host.sock";

/// Opens a folder's engine, in the process that has the folder's lock.
pub type Opener =
    Arc<dyn Fn(PathBuf) -> Pin<Box<dyn Future<Output = Result<Arc<dyn Engine>>> + Send>> + Send + Sync>;

/// One process's way to a shared data folder; an engine like any other.
///
/// The first process to open the folder hosts its engine and listens on a socket in it; every other one works
/// through that. When the host goes away, however that is, another process takes its place.
///
/// Guarantees:
/// - What was acknowledged before the host died is there under the next one.
/// - Leases of processes of this machine that are dead end at once; those of living ones run their term.
/// - Calls that were under way when the host died fail as `Unavailable` with the hint `Unknown`; reads are repeated.
///   Calls made until the next host is there wait up to [`FolderOptions::takeover_wait_ms`].
///
/// Dropping it leaves what the process holds leased until it expires or the process ends; [`Engine::close`] gives
/// it back.
#[derive(Debug)]
pub struct Folder {
    shared: Arc<Shared>,
    keeper: AbortHandle,
}

struct Shared {
    place: Place,
    capabilities: Capabilities,
    state: watch::Sender<State>,
}

/// Where the folder is, and how it is entered.
#[derive(Clone)]
struct Place {
    folder: PathBuf,
    options: FolderOptions,
    opener: Opener,
    env: Arc<dyn Env>,
    process: ProcessId,
}

/// What this process is in the folder now.
#[derive(Debug, Clone)]
enum State {
    In(Arc<Entered>),
    Between { reason: Error, since: Timestamp },
    Closed,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("folder", &self.place.folder).finish_non_exhaustive()
    }
}

impl Folder {
    /// Opens a folder, as its host or as a client of its host; makes the folder when it is not there.
    ///
    /// # Errors
    /// `Conflict` with the holder's name when the role is [`Role::Host`] and another process holds the folder;
    /// `Unavailable` when its host does not answer within [`FolderOptions::open_ms`]; the engine's own.
    pub async fn open(
        folder: impl AsRef<Path>,
        options: FolderOptions,
        opener: Opener,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let process = onward_client::this_process(&*env);
        let place = Place { folder: make(folder.as_ref())?, options, opener, env, process };
        let limit = Duration::from_millis(place.options.open_ms);
        let entered = match within(&*place.env, limit, enter(&place, true)).await {
            Some(entered) => entered?,
            None => return Err(too_long(&place.folder, limit)),
        };
        let capabilities = entered.engine().capabilities();
        let state = watch::Sender::new(State::In(Arc::new(entered)));
        let shared = Arc::new(Shared { place, capabilities, state });
        let keeper = tokio::spawn(keep(shared.clone())).abort_handle();
        Ok(Self { shared, keeper })
    }

    /// Whether this process hosts the folder now.
    pub fn is_host(&self) -> bool {
        matches!(&*self.shared.state.borrow(), State::In(entered) if entered.is_host())
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.shared.place.folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.keeper.abort();
        self.shared.state.send_replace(State::Closed);
    }
}

fn make(folder: &Path) -> Result<PathBuf> {
    let failed = |e: std::io::Error| {
        Error::unavailable(format!("the data folder can't be used: {e}"))
            .at(folder.display())
            .mend("check the path and its permissions")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    folder.canonicalize().map_err(failed)
}

fn too_long(folder: &Path, limit: Duration) -> Error {
    Error::unavailable(format!("the folder's host did not answer within {limit:?}"))
        .at(folder.display())
        .mend("see whether that process still starts or hangs; stopping it lets another one take over")
}

/// Takes part in the folder anew whenever its host went away, until the folder is closed.
async fn keep(shared: Arc<Shared>) {
    loop {
        let State::In(entered) = shared.state.borrow().clone() else { return };
        let mut state = shared.state.subscribe();
        let reason = tokio::select! {
            reason = entered.lost() => reason,
            // Whoever closes the folder gives up its lock, too.
            _ = state.wait_for(|state| matches!(state, State::Closed)) => return,
        };
        drop(entered);
        tracing::debug!(%reason, "the folder's host went away");
        let since = shared.place.env.now();
        if !shared.change(State::Between { reason, since }) {
            return;
        }
        let Some(entered) = shared.enter_again(since).await else { return };
        if !shared.change(State::In(Arc::new(entered))) {
            return;
        }
    }
}

impl Place {
    fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    async fn pause(&self, attempt: u32) {
        self.env.sleep(self.options.backoff.delay(attempt, self.env.random())).await;
    }
}

impl Shared {
    /// Whether it changed; not once it is closed.
    fn change(&self, to: State) -> bool {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, State::Closed);
            if open {
                *state = to;
            }
            open
        })
    }

    /// Takes part again, however long it takes; `None` once the folder is closed.
    async fn enter_again(&self, since: Timestamp) -> Option<Entered> {
        let mut last = String::new();
        for attempt in 1.. {
            match enter(&self.place, false).await {
                Ok(entered) => return Some(entered),
                Err(reason) => {
                    if reason.what() != last {
                        tracing::warn!(%reason, "could not take part in the folder again");
                        last = reason.what().to_owned();
                    }
                    if !self.change(State::Between { reason, since }) {
                        return None;
                    }
                }
            }
            self.place.pause(attempt).await;
        }
        None
    }

    /// The engine, wherever it is; waits a bounded time for the next host.
    async fn current(&self) -> Result<Arc<Entered>> {
        let limit = Duration::from_millis(self.place.options.takeover_wait_ms);
        let mut state = self.state.subscribe();
        let ready = state.wait_for(|state| match state {
            State::In(entered) => !entered.is_lost(),
            State::Between { .. } => false,
            State::Closed => true,
        });
        match within(&*self.place.env, limit, ready).await.and_then(|ready| ready.ok().map(|s| s.clone())) {
            Some(State::In(entered)) => Ok(entered),
            Some(_) => Err(closed()),
            None => Err(self.nobody(limit)),
        }
    }

    fn nobody(&self, limit: Duration) -> Error {
        let why = match &*self.state.borrow() {
            State::Between { reason, .. } => format!(" ({reason})"),
            _ => String::new(),
        };
        Error::unavailable(format!("no process hosts the folder since {limit:?}{why}"))
            .at(self.place.folder.display())
            .mend("nothing was sent: try again")
    }

    fn health(&self) -> Health {
        let (what, since) = match &*self.state.borrow() {
            State::In(entered) => return entered.engine().health(),
            State::Between { reason, since } => (format!("no process hosts the folder: {reason}"), *since),
            State::Closed => ("the folder is closed".to_owned(), self.place.env.now()),
        };
        let mend = "wait until a process hosts it again, or open it anew".to_owned();
        let durability = self.capabilities.durability;
        Health { readable: false, writable: false, durability, problems: vec![Problem { what, since, mend }] }
    }

    async fn close(&self, drain: Duration) -> Result<()> {
        let State::In(entered) = self.state.send_replace(State::Closed) else { return Ok(()) };
        match &*entered {
            Entered::Client(engine, _) => engine.close(drain).await,
            Entered::Host { engine, host, .. } => {
                give_back(&**engine, &self.place.process).await;
                host.close(drain).await;
                engine.close(drain).await
            }
        }
    }
}

/// What this process still holds need not wait until it expires.
async fn give_back(engine: &dyn Engine, process: &ProcessId) {
    let ended = match engine.prepare(vec![Op::EndProcess { process: process.clone(), died: false }]) {
        Ok(ops) => engine.commit(ops).await.map(drop),
        Err(error) => Err(error),
    };
    ended.unwrap_or_else(|error| tracing::debug!(%error, "leases run their term"));
}

fn closed() -> Error {
    Error::closed("the folder is closed").mend("open it anew")
}
