//! Connecting, and connecting again whenever the connection was lost.

use crate::{ClientOptions, client::Shared, link::Link, socket, watches::Watches, within::within};
use onward_core::{Env, Error, Result};
use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) async fn dial(path: PathBuf) -> Result<tokio::net::UnixStream> {
    socket::connect(&path).await
}

pub(crate) async fn open<D, F, S>(
    dial: &D,
    options: &ClientOptions,
    watches: &Arc<Watches>,
    env: &Arc<dyn Env>,
) -> Result<Link>
where
    D: Fn() -> F,
    F: Future<Output = Result<S>>,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let limit = Duration::from_millis(options.connect_ms);
    let stream = within(&**env, limit, dial())
        .await
        .unwrap_or_else(|| Err(Error::unavailable(format!("no connection within {limit:?}"))))?;
    Link::open(stream, options, watches.clone(), env.clone()).await
}

/// Replaces every lost connection by a new one, until the client ends.
pub(crate) async fn keep<D, F, S>(shared: Arc<Shared>, dial: D)
where
    D: Fn() -> F + Send + Sync,
    F: Future<Output = Result<S>> + Send,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    loop {
        let reason = shared.lost().await;
        if !shared.down(reason) || !shared.options.reconnect {
            return;
        }
        let mut attempt = 1;
        while let Err(error) = shared.reopen(&dial).await {
            tracing::debug!(%error, attempt, "the host is not back");
            let wait = shared.options.backoff.delay(attempt, shared.env.random());
            shared.env.sleep(wait).await;
            attempt = attempt.saturating_add(1);
        }
    }
}
