//! What every handler works with.

use crate::{
    ServerOptions,
    auth::{Action, Caller},
    body::Bodies,
    problem::Answer,
};
use axum::{extract::FromRequestParts, http::request::Parts};
use onward::{
    Onward,
    core::{Inlet, Message},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What every handler works with. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) onward: Onward,
    pub(crate) options: ServerOptions,
    pub(crate) bodies: Bodies,
    waits: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn new(onward: Onward, options: ServerOptions, stopping: watch::Receiver<bool>) -> Self {
        let bodies = Bodies::new(&options);
        let waits = Arc::new(Semaphore::new(options.waits_max));
        Self(Arc::new(Shared { onward, options, bodies, waits, stopping }))
    }

    /// The right to wait, and for how long: not at all while too many wait already, or the server stops.
    pub(crate) fn waiting(&self, wait: Duration) -> (Option<OwnedSemaphorePermit>, Duration) {
        if wait.is_zero() || *self.stopping.borrow() {
            return (None, Duration::ZERO);
        }
        match self.waits.clone().try_acquire_owned() {
            Ok(permit) => (Some(permit), wait),
            Err(_) => (None, Duration::ZERO),
        }
    }

    /// Completes when the server is asked to stop.
    pub(crate) async fn stopped(&self) {
        // It fails only when the server is gone, which is a stop too.
        let _ = self.stopping.clone().wait_for(|stopping| *stopping).await;
    }
}

/// A caller with a known token; refuses others before anything else is looked at.
impl FromRequestParts<App> for Caller {
    type Rejection = crate::problem::Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Answer<Self> {
        app.options.grants.caller(&parts.headers)
    }
}

impl Caller {
    /// Refuses where the caller may not do it to an inlet.
    pub(crate) fn on(&self, action: Action, inlet: &Inlet) -> Answer<()> {
        let name = match inlet {
            Inlet::Queue(name) | Inlet::Subscription { topic: name, .. } => name.full(),
        };
        self.require(action, name)
    }
}

/// The namespace that a message's source has where it names none.
pub(crate) fn source_of(caller: &Caller) -> String {
    format!("http/{}", caller.name())
}

/// A builder with the defaults of what comes in over HTTP.
pub(crate) fn defaults(kind: &str, caller: &Caller) -> onward::core::MessageBuilder {
    Message::builder(kind).source(&source_of(caller))
}
