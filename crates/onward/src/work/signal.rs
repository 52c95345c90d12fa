//! The signals that ask a process to stop.

use onward_core::{Error, Result};
use std::future::Future;
use tokio::signal::unix::{SignalKind, signal};

/// Completes at the first SIGTERM or SIGINT (Ctrl-C) from now on.
///
/// # Errors
/// `Internal` where the process can't listen to signals.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send> {
    let listen = |kind| signal(kind).map_err(|e| Error::internal(format!("can't listen to signals: {e}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
