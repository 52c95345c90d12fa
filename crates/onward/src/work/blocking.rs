//! Plain functions that block, as handlers: each call runs on a thread for blocking work.

use super::{
    Answer, Context, Extract, Failed, Handling, Running, Verdict, extract::First, handler::AnyHandler,
    handling::of, panic::caught, states::States,
};
use onward_core::{Failure, Result};
use std::{marker::PhantomData, sync::Arc};
use tokio::sync::Semaphore;

/// Most threads of one blocking handler, those left behind by a timeout counted; further calls wait for one.
pub const BLOCKING_THREADS_MAX: usize = 256;

/// A call with its arguments made, ready for a thread.
pub type BlockingCall = Box<dyn FnOnce() -> Verdict + Send>;

/// A plain function that blocks its thread: as [`Handler`](super::Handler), without `async`.
///
/// `Args` tells the shapes of functions apart for the compiler; it is never written.
#[diagnostic::on_unimplemented(
    message = "this is not a blocking handler",
    note = "it is a plain function whose first argument is the data (Deserialize), the others `Extract`"
)]
pub trait BlockingHandler<Args>: Send + Sync + 'static {
    /// Makes the arguments.
    ///
    /// # Errors
    /// The failure with which the message is set aside.
    fn call(self: Arc<Self>, context: &Context) -> Result<BlockingCall, Failure>;

    /// Checks, before the worker starts, that all arguments will be there.
    ///
    /// # Errors
    /// What is missing, and the mend.
    fn check(&self, states: &States) -> Result<()>;
}

macro_rules! blocking_handler {
    ($($more:ident)*) => {
        impl<Func, Out, How, A, $($more,)*> BlockingHandler<(How, A, $($more,)*)> for Func
        where
            Func: Fn(A, $($more,)*) -> Out + Send + Sync + 'static,
            Out: Answer,
            A: First<How>,
            $($more: Extract,)*
        {
            #[allow(non_snake_case, reason = "arguments are named by their types")]
            fn call(self: Arc<Self>, context: &Context) -> Result<BlockingCall, Failure> {
                let first = A::first(context)?;
                $(let $more = $more::extract(context)?;)*
                Ok(Box::new(move || self(first, $($more,)*).into_verdict()))
            }

            fn check(&self, states: &States) -> Result<()> {
                A::check_first(states)?;
                $($more::check(states)?;)*
                Ok(())
            }
        }
    };
}

blocking_handler! {}
blocking_handler! { B }
blocking_handler! { B C }
blocking_handler! { B C D }

/// Makes a handler of a plain function that blocks: `blocking(resize).timeout(..)`.
///
/// A thread can't be stopped. When its time is over, or its lease is lost, the attempt ends and the thread goes on by
/// itself: ask [`Context::stop_reason`] in long work, and make what it does safe to be done twice.
///
/// Limits: [`BLOCKING_THREADS_MAX`] threads; further calls wait, within their timeout.
pub fn blocking<Args: 'static>(function: impl BlockingHandler<Args>) -> Handling {
    let threads = Arc::new(Semaphore::new(BLOCKING_THREADS_MAX));
    of(Arc::new(Blocking { function: Arc::new(function), threads, shape: PhantomData::<fn(Args)> }))
}

struct Blocking<F, Args> {
    function: Arc<F>,
    threads: Arc<Semaphore>,
    shape: PhantomData<fn(Args)>,
}

impl<F: BlockingHandler<Args>, Args: 'static> AnyHandler for Blocking<F, Args> {
    fn call(&self, context: Context) -> Running {
        let call = self.function.clone().call(&context)?;
        let threads = self.threads.clone();
        Ok(Box::pin(async move {
            let thread = threads.acquire_owned().await;
            let run = move || {
                // Given back when the thread ends, which may be later than the attempt.
                let _thread = thread;
                caught(call)
            };
            match tokio::task::spawn_blocking(run).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(panicked)) => Verdict::Failed(Failed(panicked).into()),
                Err(stopped) => Verdict::Failed(stopped.into()),
            }
        }))
    }

    fn check(&self, states: &States) -> Result<()> {
        self.function.check(states)
    }
}
