//! The client: an engine that is somewhere else.

use crate::{
    ClientOptions,
    keep::{dial, keep, open},
    link::Link,
    watches::Watches,
    wire::{Answer, Call, ToHost},
    within::within,
};
use onward_core::{Capabilities, Env, Error, Health, Problem, ProcessId, Result, Timestamp};
use parking_lot::RwLock;
use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::AbortHandle,
};

/// A client of a running host: implements [`onward_core::Engine`] over its socket.
///
/// Guarantees: every call has a deadline ([`ClientOptions::answer_ms`]); a connection that went silent is noticed and
/// replaced; calls in flight on a lost connection fail as `Unavailable` with the hint `Unknown`, reads are repeated.
///
/// Dropping it ends the connection without a word: what the process holds stays leased until its leases end or the
/// process does. [`onward_core::Engine::close`] says goodbye, which releases it at once.
#[derive(Debug)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    keeper: AbortHandle,
}

/// What the client and the task that keeps it connected share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ClientOptions,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) capabilities: Capabilities,
    pub(crate) running: watch::Sender<usize>,
    state: watch::Sender<State>,
    host: RwLock<ProcessId>,
}

/// Whether there is a connection.
#[derive(Debug, Clone)]
enum State {
    Up(Arc<Link>),
    Down { reason: Error, since: Timestamp },
    Closed,
}

impl Client {
    /// Connects to the host that listens at `socket`; any length of path will do.
    ///
    /// # Errors
    /// `Unavailable` when nobody listens or answers; what the host refuses with (`Unsupported` for its protocol
    /// version, `Full` for its number of clients).
    pub async fn connect(
        socket: impl AsRef<Path>,
        options: ClientOptions,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let path: PathBuf = socket.as_ref().into();
        Self::connect_by(move || dial(path.clone()), options, env).await
    }

    /// The same over any byte stream that `dial` makes; it is called again whenever the connection was lost.
    ///
    /// # Errors
    /// As [`Client::connect`], and those of `dial`.
    pub async fn connect_by<D, F, S>(dial: D, options: ClientOptions, env: Arc<dyn Env>) -> Result<Self>
    where
        D: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let watches = Arc::new(Watches::default());
        let link = open(&dial, &options, &watches, &env).await?;
        let shared = Arc::new(Shared {
            capabilities: link.welcome.capabilities.clone(),
            host: RwLock::new(link.welcome.process.clone()),
            state: watch::Sender::new(State::Up(Arc::new(link))),
            running: watch::Sender::new(0),
            options,
            env,
            watches,
        });
        let keeper = tokio::spawn(keep(shared.clone(), dial)).abort_handle();
        Ok(Self { shared, keeper })
    }

    /// The host's process, as it was last connected to.
    pub fn host(&self) -> ProcessId {
        self.shared.host.read().clone()
    }

    /// Whether it is connected now.
    pub fn is_connected(&self) -> bool {
        matches!(&*self.shared.state.borrow(), State::Up(link) if !link.is_lost())
    }

    /// Completes when the connection is lost or closed, with the reason.
    pub async fn lost(&self) -> Error {
        self.shared.lost().await
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.keeper.abort();
        self.shared.end();
    }
}

impl Shared {
    /// Asks the host. A read whose answer was lost with its connection is asked again.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer> {
        let _running = Running::begin(&self.running);
        let repeatable = call.is_read() && self.options.reconnect;
        loop {
            let link = self.link().await?;
            let answer = link.call(call.clone(), &*self.env, self.options.answer()).await;
            if answer.is_err() && repeatable && link.is_lost() {
                continue;
            }
            return answer;
        }
    }

    /// The connection; waits a bounded time for one that was lost.
    async fn link(&self) -> Result<Arc<Link>> {
        let limit =
            Duration::from_millis(if self.options.reconnect { self.options.reconnect_wait_ms } else { 0 });
        let mut state = self.state.subscribe();
        let found = state.wait_for(|state| match state {
            State::Up(link) => !link.is_lost(),
            State::Down { .. } => !self.options.reconnect,
            State::Closed => true,
        });
        let found = within(&*self.env, limit, found).await.and_then(Result::ok).map(|state| state.clone());
        match found {
            Some(State::Up(link)) => Ok(link),
            Some(State::Closed) => Err(closed()),
            _ => Err(self.unreachable()),
        }
    }

    fn unreachable(&self) -> Error {
        let why = match &*self.state.borrow() {
            State::Down { reason, .. } => format!(" ({})", reason.what()),
            _ => String::new(),
        };
        Error::unavailable(format!("the host can't be reached{why}"))
            .mend("nothing was sent: try again once a process has the folder open")
    }

    pub(crate) async fn lost(&self) -> Error {
        let link = match &*self.state.borrow() {
            State::Up(link) => link.clone(),
            State::Down { reason, .. } => return reason.clone(),
            State::Closed => return closed(),
        };
        link.lost().await
    }

    /// Whether it went down; not when it was closed.
    pub(crate) fn down(&self, reason: Error) -> bool {
        let since = self.env.now();
        self.state.send_if_modified(|state| {
            let up = matches!(state, State::Up(_));
            if up {
                *state = State::Down { reason, since };
            }
            up
        })
    }

    pub(crate) async fn reopen<D, F, S>(&self, dial: &D) -> Result<()>
    where
        D: Fn() -> F,
        F: Future<Output = Result<S>>,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let link = Arc::new(open(dial, &self.options, &self.watches, &self.env).await?);
        if link.welcome.capabilities.durability < self.capabilities.durability {
            return Err(Error::unsupported("the new host's durability is weaker than the first one's"));
        }
        *self.host.write() = link.welcome.process.clone();
        self.state.send_if_modified(|state| {
            let wanted = !matches!(state, State::Closed);
            if wanted {
                *state = State::Up(link);
            }
            wanted
        });
        self.watches.hint_all();
        Ok(())
    }

    /// Tells the host without waiting, where there is a connection.
    pub(crate) fn tell(&self, what: &ToHost) {
        if let State::Up(link) = &*self.state.borrow() {
            link.tell(what);
        }
    }

    pub(crate) fn health(&self) -> Health {
        let (what, since) = match &*self.state.borrow() {
            State::Up(link) => return link.health(),
            State::Down { reason, since } => {
                (format!("the host can't be reached: {}", reason.what()), *since)
            }
            State::Closed => ("the client is closed".into(), self.env.now()),
        };
        let mend = "start a process that opens the folder, or wait until one does".into();
        let problems = vec![Problem { what, since, mend }];
        Health { readable: false, writable: false, durability: self.capabilities.durability, problems }
    }

    /// Refuses new calls, waits for running ones, says goodbye.
    pub(crate) async fn close(&self, drain: Duration) {
        let State::Up(link) = self.state.send_replace(State::Closed) else { return self.end() };
        let mut running = self.running.subscribe();
        let _ = within(&*self.env, drain, running.wait_for(|running| *running == 0)).await;
        let _ = within(&*self.env, GOODBYE, link.goodbye()).await;
        self.end();
    }

    fn end(&self) {
        self.state.send_replace(State::Closed);
        self.watches.end();
    }
}

/// Longest time that a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

fn closed() -> Error {
    Error::closed("the client is closed").mend("open a new one")
}

/// Counts a call as running while it lives.
struct Running<'a>(&'a watch::Sender<usize>);

impl<'a> Running<'a> {
    fn begin(running: &'a watch::Sender<usize>) -> Self {
        running.send_modify(|count| *count += 1);
        Self(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
