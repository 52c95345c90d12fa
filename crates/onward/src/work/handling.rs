//! A handler with everything that is said about it.

use super::{
    Breaker, Class, Context, Handler, Running,
    handler::{AnyHandler, forget_shape},
    inbox::{Idempotency, KeyOf},
    layers::{HandlerService, LayeredService, wrap},
    shed::Shed,
    upcast::Versions,
};
use onward_core::{Failure, Key, Message, RetryPolicy};
use serde::de::DeserializeOwned;
use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};
use tower_layer::Layer;

/// A handler's timeout where none is set.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);

/// A handler and its rules; made by [`handler`](handler()), or from a plain async function as it stands.
///
/// The default: takes every type of its queue, may take [`TIMEOUT_DEFAULT`], promises nothing about being repeated.
#[derive(Clone)]
pub struct Handling {
    pub(crate) handler: Arc<dyn AnyHandler>,
    pub(crate) kinds: Vec<Arc<str>>,
    pub(crate) timeout: Duration,
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) effects: Effects,
    pub(crate) ordered: bool,
    pub(crate) sorters: Vec<Sorter>,
    pub(crate) versions: Versions,
    pub(crate) retry: Retry,
    /// So many messages in one call, where it is a batch handler.
    pub(crate) batch: Option<u32>,
    pub(crate) breakers: Vec<Breaker>,
    pub(crate) shed: Option<Shed>,
    layered: bool,
}

/// When what may pass is tried again.
#[derive(Clone, Default)]
pub(crate) enum Retry {
    /// As the queue says.
    #[default]
    Queue,
    /// As the handler's own policy says.
    Policy(RetryPolicy),
    /// As a function of the attempt and the error says.
    Curve(Curve),
}

/// Says how long to wait after the failure of an attempt.
pub(crate) type Curve = Arc<dyn Fn(u32, &super::Error) -> Duration + Send + Sync>;

/// Sorts errors of one type; `None` for others.
pub(crate) type Sorter = Arc<dyn Fn(&(dyn StdError + 'static)) -> Option<Class> + Send + Sync>;

/// What was said of a handler's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effects {
    Unsaid,
    Declared,
    MayRepeat,
}

/// Begins to say more about a handler: `handler(send_welcome).timeout(..).idempotent()`.
pub fn handler<Args: 'static>(function: impl Handler<Args>) -> Handling {
    of(forget_shape(function))
}

/// A handler of whatever shape, with nothing said about it yet.
pub(crate) fn of(handler: Arc<dyn AnyHandler>) -> Handling {
    Handling {
        handler,
        kinds: Vec::new(),
        timeout: TIMEOUT_DEFAULT,
        idempotency: None,
        effects: Effects::Unsaid,
        ordered: false,
        sorters: Vec::new(),
        versions: Versions::default(),
        retry: Retry::Queue,
        batch: None,
        breakers: Vec::new(),
        shed: None,
        layered: false,
    }
}

impl Handling {
    /// Takes messages of this type only; may be said several times. Without it, those that no other handler takes.
    pub fn kind(mut self, kind: &str) -> Self {
        self.kinds.push(kind.into());
        self
    }

    /// How long one attempt may take, in spite of a healthy lease.
    ///
    /// Then [`Context::cancelled`](super::Context::cancelled) completes with `Timeout`, and after the worker's grace
    /// the handler is dropped; the attempt has failed with the cause `Timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Says that it has effects outside of the engine (sends mail, charges a card), which a repeat would repeat.
    ///
    /// The worker then refuses to start unless it is idempotent, or [`Handling::effects_may_repeat`] is said.
    pub fn with_effects(mut self) -> Self {
        self.effects = Effects::Declared;
        self
    }

    /// Says that its effects may happen twice without harm.
    pub fn effects_may_repeat(mut self) -> Self {
        self.effects = Effects::MayRepeat;
        self
    }

    /// Says that it relies on messages of one order key coming in order and one at a time.
    ///
    /// The worker then refuses to start on an inlet that does not keep that order.
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// Handles each message id once: what was processed is skipped and acknowledged, with its first result.
    ///
    /// Guarantees: a failed attempt never counts as processed; of concurrent duplicates one runs and the others wait.
    /// Where the engine commits record and acknowledgement together, effects made by
    /// [`Context::commit_with`](super::Context::commit_with) happen exactly once; effects outside of the engine may
    /// be repeated when the process dies between the effect and the commit.
    pub fn idempotent(self) -> Self {
        self.once(KeyOf::Id)
    }

    /// As [`Handling::idempotent`], by a key that is made from the data: two messages of one key are one piece of work.
    ///
    /// Data that can't be read is a dead letter; a key that is empty or longer than
    /// [`onward_core::KEY_BYTES_MAX`] is a permanent failure.
    pub fn idempotent_by<T, K>(self, key: impl Fn(&T) -> K + Send + Sync + 'static) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        K: Into<String>,
    {
        let of = move |message: &Message| -> Result<Key, Failure> {
            let text: String = key(&super::extract::decode(message)?).into();
            Key::try_from(text).map_err(|e| {
                Failure::new(
                    onward_core::CauseKind::Permanent,
                    format!("the idempotency key is not right: {e}"),
                )
            })
        };
        self.once(KeyOf::Data(Arc::new(of)))
    }

    /// How long processed keys are remembered. Implies [`Handling::idempotent`] where nothing else was said.
    pub fn remember(mut self, ttl: Duration) -> Self {
        let idempotency = self.idempotency.take().unwrap_or(Idempotency::new(KeyOf::Id));
        self.idempotency = Some(Idempotency { ttl, ..idempotency });
        self
    }

    /// Takes messages of one key for the same work whatever their data is.
    ///
    /// Without it a message under a known key with other data (type, version or data) is refused: it is a dead letter,
    /// since one of the two would otherwise never be done. Implies [`Handling::idempotent`].
    pub fn key_alone(mut self) -> Self {
        let idempotency = self.idempotency.take().unwrap_or(Idempotency::new(KeyOf::Id));
        self.idempotency = Some(Idempotency { key_alone: true, ..idempotency });
        self
    }

    fn once(mut self, key: KeyOf) -> Self {
        let said = self.idempotency.take();
        let new = Idempotency::new(key);
        self.idempotency = Some(said.map_or(new.clone(), |said| Idempotency { key: new.key, ..said }));
        self
    }

    /// Sorts errors of one type: which may pass and which not. The first rule for the type counts.
    ///
    /// An error that is wrapped ([`super::Permanent`], [`super::RetryAfter`] ...) is sorted already.
    pub fn on_error<E: StdError + 'static>(
        mut self,
        sort: impl Fn(&E) -> Class + Send + Sync + 'static,
    ) -> Self {
        self.sorters.push(Arc::new(move |error| error.downcast_ref::<E>().map(&sort)));
        self
    }

    /// Waits by this policy after errors that may pass, instead of the queue's. The queue's bound on attempts holds too.
    ///
    /// An error that says itself how long to wait ([`super::RetryAfter`]) is waited for so long all the same.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Retry::Policy(policy);
        self
    }

    /// Waits so long after an attempt (from 1) failed with an error that may pass: a curve of one's own.
    pub fn retry_curve(
        mut self,
        wait: impl Fn(u32, &super::Error) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.retry = Retry::Curve(Arc::new(wait));
        self
    }

    /// Puts a `tower` layer around it; what is said last is outermost.
    ///
    /// The layer is given a [`HandlerService`], which runs once in an attempt: retries are the queue's. Layers see a
    /// call after its turn and its idempotency key were taken, within its timeout.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<HandlerService>,
        L::Service: LayeredService,
    {
        self.handler = wrap(self.handler, !self.layered, &layer);
        self.layered = true;
        self
    }

    /// Makes its arguments and calls it.
    pub(crate) fn call(&self, context: Context) -> Running {
        self.handler.call(context)
    }

    /// What an error is to lead to.
    pub(crate) fn classify(&self, error: &super::Error) -> Class {
        let said = error.class().cloned();
        let by_type = || self.sorters.iter().find_map(|sort| sort(error.source()));
        said.or_else(by_type).unwrap_or_else(|| error.default_class())
    }

    /// The same with this handler's own waits, for the failure of an attempt.
    pub(crate) fn classify_attempt(&self, error: &super::Error, attempt: u32) -> Class {
        match (self.classify(error), &self.retry) {
            (Class::Transient, Retry::Policy(policy)) => Class::Retry(policy.clone()),
            (Class::Transient, Retry::Curve(wait)) => Class::After(wait(attempt, error)),
            (class, _) => class,
        }
    }
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handling")
            .field("kinds", &self.kinds)
            .field("timeout", &self.timeout)
            .field("idempotency", &self.idempotency)
            .field("effects", &self.effects)
            .field("ordered", &self.ordered)
            .finish_non_exhaustive()
    }
}

/// What [`Worker::handle`](super::Worker::handle) takes: a plain async function, or a [`Handling`].
pub trait IntoHandling<Args> {
    /// What it is, with its rules.
    fn into_handling(self) -> Handling;
}

/// Marks a handler that is a [`Handling`] already.
#[derive(Debug)]
pub struct AsHandling;

impl IntoHandling<AsHandling> for Handling {
    fn into_handling(self) -> Handling {
        self
    }
}

impl<H: Handler<Args>, Args: 'static> IntoHandling<(Args,)> for H {
    fn into_handling(self) -> Handling {
        handler(self)
    }
}
