//! Accepting connections, within bounds, until asked to stop.

use crate::{ServerOptions, api, app::App};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use onward::{
    Onward,
    core::{Error, Result},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};
use tower::ServiceExt;

/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the HTTP API of an engine on a listener, until `stop` completes; then it lets running requests end.
///
/// Guarantees: nothing is answered before the engine's declared durability holds. At most `connections_max` are open; a
/// head, a body and a wait each have their bound. On a stop new connections are refused, waits end early, and what was
/// leased for one is still answered.
///
/// # Errors
/// `Invalid` when no tokens are given and the listener can be reached from other machines.
pub async fn serve(
    listener: TcpListener,
    onward: Onward,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send,
) -> Result<()> {
    check_address(&listener, &options)?;
    let (stopping, stopped) = watch::channel(false);
    let app = App::new(onward, options, stopped);
    let connections = Connections::new(&app);
    let mut stop = std::pin::pin!(stop);
    loop {
        let permit = tokio::select! {
            permit = connections.room() => permit,
            () = &mut stop => break,
        };
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.run(stream, permit),
                // Out of file handles, or the peer went away: others may still come.
                Err(error) => {
                    tracing::warn!(%error, "a connection can't be accepted");
                    app.onward.env().sleep(ACCEPT_PAUSE).await;
                }
            },
            () = &mut stop => break,
        }
    }
    drop(listener);
    // Nobody else holds a receiver that could be gone.
    let _ = stopping.send(true);
    connections.drain(&app).await;
    Ok(())
}

/// Without tokens only this machine is served.
fn check_address(listener: &TcpListener, options: &ServerOptions) -> Result<()> {
    let address = listener.local_addr().map_err(|e| Error::unavailable(e.to_string()))?;
    if address.ip().is_loopback() || !options.grants.is_open() {
        return Ok(());
    }
    Err(Error::invalid("can be reached from other machines, and no token is asked for")
        .at(address)
        .mend("give --tokens FILE, or listen on 127.0.0.1"))
}

struct Connections {
    router: axum::Router,
    builder: auto::Builder<TokioExecutor>,
    graceful: GracefulShutdown,
    room: Arc<Semaphore>,
}

impl Connections {
    fn new(app: &App) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(app.options.head_timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .max_concurrent_streams(256)
            .keep_alive_interval(Some(Duration::from_secs(20)));
        Self {
            router: api::router(app.clone()),
            builder,
            graceful: GracefulShutdown::new(),
            room: Arc::new(Semaphore::new(app.options.connections_max)),
        }
    }

    async fn room(&self) -> OwnedSemaphorePermit {
        self.room.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    fn run(&self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        // Small answers must not wait for more of them.
        let _ = stream.set_nodelay(true);
        let service = self
            .router
            .clone()
            .map_request(|request: hyper::Request<Incoming>| request.map(axum::body::Body::new));
        let connection =
            self.builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = self.graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }

    async fn drain(self, app: &App) {
        let count = self.graceful.count();
        tokio::select! {
            () = self.graceful.shutdown() => {}
            () = app.onward.env().sleep(app.options.drain) => {
                tracing::warn!(count, "requests were cut off: they took longer than the drain time");
            }
        }
    }
}
