//! Catching panics of handlers, with message, place and, where it is switched on, backtrace.

use onward_core::{CauseKind, Failure};
use std::{
    any::Any,
    backtrace::{Backtrace, BacktraceStatus},
    cell::{Cell, RefCell},
    future::Future,
    panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook},
    pin::Pin,
    sync::Once,
    task::{Context, Poll},
};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static DETAIL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Puts a hook in front of the one that is there: it notes where a handler panicked, and passes the panic on.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if CATCHING.get() {
                DETAIL.set(Some(detail_of(info)));
            }
            before(info);
        }));
    });
}

fn detail_of(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map(|at| format!("at {at}")).unwrap_or_default();
    let trace = Backtrace::capture();
    match trace.status() {
        BacktraceStatus::Captured => format!("{place}\n{trace}"),
        _ => place,
    }
}

/// Runs something that may panic; its panic is a failure.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    watch_panics();
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(outer);
    result.map_err(|payload| failure(&*payload))
}

fn failure(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let failure = Failure::new(CauseKind::Panicked, text.unwrap_or("a panic without a message"));
    match DETAIL.take() {
        Some(detail) => failure.with_detail(detail),
        None => failure,
    }
}

/// A future whose panics are failures.
pub(crate) struct Caught<T>(pub(crate) Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Future for Caught<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match caught(|| self.0.as_mut().poll(context)) {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(failure) => Poll::Ready(Err(failure)),
        }
    }
}
