//! `tower` layers around handlers: for what cuts across them, as limits, time, authentication or measuring.

use super::{
    Context, Error, Failed, Permanent, Running, Verdict, handler::AnyHandler, states::States,
    verdict::BoxError,
};
use onward_core::{Payload, Result};
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{self, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

/// A handler as a `tower` service: what a layer wraps. It takes a [`Context`] and answers with the result, if any.
///
/// Its errors are the handler's own, carried unchanged through layers that pass them on. It runs once in an attempt:
/// one layer owns retries, and that is the queue's policy; where a layer repeats, the attempt fails for good.
#[derive(Clone)]
pub struct HandlerService {
    handler: Arc<dyn AnyHandler>,
    /// The handler itself stands behind it, and not another layer.
    innermost: bool,
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerService")
    }
}

/// A handler's error on its way through layers.
#[derive(Debug)]
struct Carried(Error);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Carried {}

fn carried(error: impl Into<Error>) -> BoxError {
    Box::new(Carried(error.into()))
}

impl Service<Context> for HandlerService {
    type Response = Option<Payload>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Option<Payload>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, context: Context) -> Self::Future {
        if self.innermost && !context.attempt.begin_once() {
            // The layer gets no answer that it could repeat upon: the attempt ends from outside.
            context.attempt.repeated.notify_one();
            return Box::pin(std::future::pending());
        }
        let running = self.handler.call(context);
        Box::pin(async move {
            match running {
                Ok(running) => match running.await {
                    Verdict::Done(result) => Ok(result),
                    Verdict::Failed(error) => Err(carried(error)),
                },
                Err(unfit) => Err(carried(Permanent(Failed(unfit)))),
            }
        })
    }
}

/// How an attempt ends whose handler a layer called again.
pub(crate) fn ran_twice() -> Verdict {
    let what = "a layer ran the handler twice in one attempt: retries are the queue's; take the layer away";
    Verdict::Failed(Permanent(what).into())
}

/// Puts a layer around a handler.
pub(crate) fn wrap<L>(handler: Arc<dyn AnyHandler>, innermost: bool, layer: &L) -> Arc<dyn AnyHandler>
where
    L: Layer<HandlerService>,
    L::Service: LayeredService,
{
    let service = layer.layer(HandlerService { handler: handler.clone(), innermost });
    Arc::new(Layered { service: Mutex::new(service), inner: handler })
}

/// What a layer must make of a [`HandlerService`]: a service that can be cloned and sent between threads.
///
/// Implemented for every service that fits; never by hand.
pub trait LayeredService: Clone + Send + 'static {
    /// Waits until it is ready, and calls it.
    fn run(self, context: Context) -> Pin<Box<dyn Future<Output = Verdict> + Send>>;
}

impl<S> LayeredService for S
where
    S: Service<Context, Response = Option<Payload>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn run(mut self, context: Context) -> Pin<Box<dyn Future<Output = Verdict> + Send>> {
        Box::pin(async move {
            if let Err(error) = poll_fn(|cx| self.poll_ready(cx)).await {
                return failed(error.into());
            }
            match self.call(context).await {
                Ok(result) => Verdict::Done(result),
                Err(error) => failed(error.into()),
            }
        })
    }
}

fn failed(error: BoxError) -> Verdict {
    match error.downcast::<Carried>() {
        Ok(carried) => Verdict::Failed(carried.0),
        Err(of_the_layer) => Verdict::Failed(Error::unsorted(of_the_layer)),
    }
}

struct Layered<S> {
    service: Mutex<S>,
    inner: Arc<dyn AnyHandler>,
}

impl<S: LayeredService> AnyHandler for Layered<S> {
    fn call(&self, context: Context) -> Running {
        // Readiness belongs to a clone, so each call has its own.
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(service.run(context))
    }

    fn check(&self, states: &States) -> Result<()> {
        self.inner.check(states)
    }
}
