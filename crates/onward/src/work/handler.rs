//! Plain async functions as handlers.

use super::{Answer, Context, Extract, Verdict, extract::First, states::States};
use onward_core::{Failure, Result};
use std::{future::Future, pin::Pin, sync::Arc};

/// A plain async function that a worker can run.
///
/// Its first argument is the data (any type that serde reads), the whole [`Message`](onward_core::Message), or
/// something that is extracted; the others are extracted: [`Context`], [`State`](super::State),
/// [`Json`](super::Json), [`Message`](onward_core::Message), or a type of your own that is [`Extract`].
/// What it returns is an [`Answer`]. It is dropped at an await when it has to end; see [`Context::cancelled`].
///
/// `Args` tells the shapes of functions apart for the compiler; it is never written.
#[diagnostic::on_unimplemented(
    message = "this is not a handler",
    note = "a handler is an async function whose first argument is the data (Deserialize), the others `Extract`",
    note = "and which returns `()`, `work::Result`, or another `Answer`"
)]
pub trait Handler<Args>: Send + Sync + 'static {
    /// Makes the arguments and calls the function.
    fn call(&self, context: Context) -> Running;

    /// Checks, before the worker starts, that all arguments will be there.
    ///
    /// # Errors
    /// What is missing, and the mend.
    fn check(&self, states: &States) -> Result<()>;
}

/// A handler that runs; or the failure to make its arguments.
pub type Running = Result<Pin<Box<dyn Future<Output = Verdict> + Send>>, Failure>;

impl<F, Fut> Handler<()> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Answer> + Send + 'static,
{
    fn call(&self, _: Context) -> Running {
        let running = self();
        Ok(Box::pin(async move { running.await.into_verdict() }))
    }

    fn check(&self, _: &States) -> Result<()> {
        Ok(())
    }
}

macro_rules! handler {
    ($($more:ident)*) => {
        impl<Func, Fut, How, A, $($more,)*> Handler<(How, A, $($more,)*)> for Func
        where
            Func: Fn(A, $($more,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output: Answer> + Send + 'static,
            A: First<How>,
            $($more: Extract,)*
        {
            fn call(&self, context: Context) -> Running {
                let running = self(A::first(&context)?, $($more::extract(&context)?,)*);
                Ok(Box::pin(async move { running.await.into_verdict() }))
            }

            fn check(&self, states: &States) -> Result<()> {
                A::check_first(states)?;
                $($more::check(states)?;)*
                Ok(())
            }
        }
    };
}

handler! {}
handler! { B }
handler! { B C }
handler! { B C D }
handler! { B C D E }
handler! { B C D E F }

/// A handler whose shape is forgotten.
pub(crate) trait AnyHandler: Send + Sync {
    fn call(&self, context: Context) -> Running;
    fn check(&self, states: &States) -> Result<()>;
}

struct Shaped<H, Args>(H, std::marker::PhantomData<fn(Args)>);

impl<H: Handler<Args>, Args: 'static> AnyHandler for Shaped<H, Args> {
    fn call(&self, context: Context) -> Running {
        self.0.call(context)
    }

    fn check(&self, states: &States) -> Result<()> {
        self.0.check(states)
    }
}

pub(crate) fn forget_shape<H: Handler<Args>, Args: 'static>(handler: H) -> Arc<dyn AnyHandler> {
    Arc::new(Shaped(handler, std::marker::PhantomData))
}
