//! Becoming the host of a folder, or reaching the one that is.

use super::{
    Place, Role,
    lock::{Lock, Tried},
};
use onward_client::{Client, ClientOptions, Host, HostOptions};
use onward_core::{Engine, Error, ErrorKind, Result};
use std::{sync::Arc, time::Duration};

/// Attempts to open an engine that somebody else holds without being the folder's host.
const CONFLICT_ATTEMPTS: u32 = 20;

/// How this process takes part in a folder. The host is dropped before its lock.
#[derive(Debug)]
pub(super) enum Entered {
    /// It has the engine, and serves the others.
    Host { engine: Arc<dyn Engine>, host: Host, _lock: Lock },
    /// It works through the host.
    Client(Arc<dyn Engine>, Arc<Client>),
}

impl Entered {
    pub(super) fn engine(&self) -> &Arc<dyn Engine> {
        match self {
            Self::Host { engine, .. } | Self::Client(engine, _) => engine,
        }
    }

    pub(super) fn is_host(&self) -> bool {
        matches!(self, Self::Host { .. })
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Client(_, client) if !client.is_connected())
    }

    /// Completes when the host is lost, or has an engine that only reopening recovers; then it is closed.
    pub(super) async fn lost(&self) -> Error {
        match self {
            Self::Client(_, client) => client.lost().await,
            Self::Host { host, engine, .. } => {
                host.poisoned().await;
                host.close(Duration::ZERO).await;
                let _ = engine.close(Duration::ZERO).await;
                Error::poisoned("a write or sync of the engine failed").mend("it is opened anew")
            }
        }
    }

    /// Looks at how a call of this process ended.
    pub(super) fn notice(&self, error: &Error) {
        match self {
            Self::Host { host, .. } if error.kind() == ErrorKind::Poisoned => host.poison(),
            _ => {}
        }
    }
}

/// Tries to be the host and to reach it, in turn, until one of them works.
///
/// # Errors
/// Those that trying again won't mend: a damaged folder, one that is held when only a host will do.
pub(super) async fn enter(place: &Place, first: bool) -> Result<Entered> {
    for attempt in 1.. {
        let tried = match Lock::attempt(&place.folder)? {
            Tried::Got(lock) => become_host(place, lock).await,
            Tried::Held(holder) if first && place.options.role == Role::Host => {
                return Err(held(place, &holder));
            }
            Tried::Held(_) => reach_host(place).await,
        };
        match tried {
            Err(error) if !may_pass(&error, attempt) => return Err(error),
            Err(error) => tracing::debug!(%error, attempt, "not in the folder yet"),
            entered => return entered,
        }
        place.pause(attempt).await;
    }
    Err(Error::unavailable("the folder could not be entered").at(place.folder.display()))
}

/// A host that starts or ends can't be reached for a while, and one that ends may hold the engine a little longer
/// than the lock.
fn may_pass(error: &Error, attempt: u32) -> bool {
    match error.kind() {
        ErrorKind::Unavailable => true,
        // A full disk is told at once, not when patience ends; a host that is full of clients has a few more tries.
        ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::Full => attempt < CONFLICT_ATTEMPTS,
        _ => false,
    }
}

async fn become_host(place: &Place, lock: Lock) -> Result<Entered> {
    let engine = (place.opener)(place.folder.clone()).await?;
    let options = HostOptions { process: place.process.clone(), ..HostOptions::new(&*place.env) };
    let host = Host::serve(engine.clone(), place.socket(), options, place.env.clone()).await?;
    tracing::debug!(folder = %place.folder.display(), "hosts the folder");
    Ok(Entered::Host { engine, host, _lock: lock })
}

async fn reach_host(place: &Place) -> Result<Entered> {
    let mut options = ClientOptions::new(&place.options.worker, &*place.env);
    // The next host may be this process itself: the folder sees to that.
    options.reconnect = false;
    options.process = place.process.clone();
    let client = Arc::new(Client::connect(place.socket(), options, place.env.clone()).await?);
    Ok(Entered::Client(client.clone(), client))
}

fn held(place: &Place, holder: &str) -> Error {
    Error::conflict(format!("the folder is held by {holder}"))
        .at(place.folder.display())
        .mend("stop that process, or open the folder without asking to be its host")
}
