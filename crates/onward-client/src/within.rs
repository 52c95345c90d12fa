//! Waiting with a bound.

use onward_core::Env;
use std::{future::Future, pin::pin, time::Duration};

/// The future's output, or `None` when it takes longer than `span`.
///
/// # Cancel safety
/// As safe as the future itself, which is dropped when time runs out.
pub async fn within<F: Future>(env: &dyn Env, span: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    tokio::select! {
        biased;
        output = &mut future => Some(output),
        () = env.sleep(span) => None,
    }
}
