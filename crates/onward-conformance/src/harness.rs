//! What the suite asks of whoever brings an engine: an empty one, and the ways to end and to reopen it.

use crate::{SteppedEnv, Stop};
use onward_core::{Engine, Env};
use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

/// A future that can be sent between threads.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a harness answers: the thing asked for, or a [`Stop`] that says why it can't be had here.
pub type Answer<T> = std::result::Result<T, Stop>;

/// Makes engines of one kind for the suite.
pub trait Harness: fmt::Debug + Send + Sync {
    /// The engine's name in reports, as in `embedded` or `client`.
    fn name(&self) -> &str;

    /// Whether the engine speaks to a server that can restart without it.
    fn has_server(&self) -> bool;

    /// A new, empty engine on data of its own, which go away with the answer.
    ///
    /// # Errors
    /// [`Stop::NotRun`] with the reason, as for a server that is not there.
    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>>;
}

/// One store with an engine over it. Where something is impossible, the answer is [`Stop::NotRun`] with the reason.
pub trait Subject: Send + Sync {
    /// The engine that is open now.
    fn engine(&self) -> Arc<dyn Engine>;

    /// The clock that the engine goes by.
    fn clock(&self) -> Clock;

    /// Closes the engine in good order and opens the same data again.
    fn restart(&mut self) -> Later<'_, Answer<()>>;

    /// Ends the engine as the death of its process does, without closing it, and opens the same data again.
    fn crash(&mut self) -> Later<'_, Answer<()>>;

    /// Another engine on the same data, as another process has it.
    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>>;

    /// Ends the server that the engine speaks to and starts it again; the engine is kept and must find it.
    fn bounce_server(&mut self) -> Later<'_, Answer<()>>;
}

/// The clock of an engine under test.
#[derive(Debug, Clone)]
pub enum Clock {
    /// It moves when the suite says so.
    Stepped(SteppedEnv),
    /// It moves by itself; the suite has to wait.
    Real(Arc<dyn Env>),
}

impl Clock {
    /// The seam that it is read through.
    pub fn env(&self) -> Arc<dyn Env> {
        match self {
            Self::Stepped(env) => Arc::new(env.clone()),
            Self::Real(env) => env.clone(),
        }
    }

    /// Lets `span` pass: moves a stepped clock, waits for a real one.
    pub async fn pass(&self, span: Duration) {
        match self {
            Self::Stepped(env) => env.pass(span).await,
            Self::Real(env) => env.sleep(span).await,
        }
    }
}
