//! Connections: few, kept, given up when anything is unclear about them.

use crate::{
    PostgresOptions,
    error::{Effect, from_driver, may_pass},
};
use onward_core::{Env, Error, Result};
use onward_env::SystemEnv;
use parking_lot::Mutex;
use std::{
    future::Future,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::{Client, NoTls};

const BACKOFF_MIN: Duration = Duration::from_millis(20);
/// The longest pause between two tries to connect.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// The connections of one engine.
#[derive(Debug)]
pub(crate) struct Pool {
    options: PostgresOptions,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Client>>,
    reachable: AtomicBool,
}

/// A connection that nobody else uses now. It is kept for others only when [`Conn::done`] was called.
#[derive(Debug)]
pub(crate) struct Conn {
    client: Option<Client>,
    pool: Arc<Pool>,
    clean: bool,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(options: PostgresOptions) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(options.pool));
        Arc::new(Self { options, free, idle: Mutex::default(), reachable: AtomicBool::new(true) })
    }

    pub(crate) fn options(&self) -> &PostgresOptions {
        &self.options
    }

    /// Whether the last try to connect went well.
    pub(crate) fn is_reachable(&self) -> bool {
        self.reachable.load(Ordering::Relaxed)
    }

    /// A connection, made anew where none is idle; waits over short outages.
    ///
    /// # Errors
    /// `Unavailable` when there is none within the call's deadline; `Unauthorized`, `NotFound` at once.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Conn> {
        let found = within(self.options.timeout, self.find()).await;
        found.unwrap_or_else(|| {
            let what = match self.is_reachable() {
                true => format!("all {} connections are in use", self.options.pool),
                false => format!("{} can't be reached", self.options.place()),
            };
            Err(Error::unavailable(what).mend("look after the server, or raise `pool` in the URL"))
        })
    }

    async fn find(self: &Arc<Self>) -> Result<Conn> {
        let permit =
            self.free.clone().acquire_owned().await.map_err(|_| Error::closed("this engine was closed"))?;
        let idle = std::iter::from_fn(|| self.idle.lock().pop()).find(|client| !client.is_closed());
        let client = match idle {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(Conn { client: Some(client), pool: self.clone(), clean: false, _permit: permit })
    }

    async fn connect(&self) -> Result<Client> {
        let mut pause = BACKOFF_MIN;
        loop {
            match self.options.server.connect(NoTls).await {
                Ok((client, connection)) => {
                    self.reachable.store(true, Ordering::Relaxed);
                    tokio::spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "a connection to PostgreSQL ended");
                        }
                    });
                    return Ok(client);
                }
                Err(error) if may_pass(&error) => {
                    if self.reachable.swap(false, Ordering::Relaxed) {
                        tracing::warn!(server = self.options.place(), %error, "PostgreSQL can't be reached");
                    }
                    SystemEnv.sleep(pause + jitter(pause)).await;
                    pause = (pause * 2).min(BACKOFF_MAX);
                }
                Err(error) => return Err(from_driver(&error, Effect::None)),
            }
        }
    }

    pub(crate) fn close(&self) {
        self.free.close();
        self.idle.lock().clear();
    }
}

fn jitter(span: Duration) -> Duration {
    span.mul_f64((SystemEnv.random() % 1_000) as f64 / 2_000.0)
}

impl Conn {
    pub(crate) fn client(&self) -> &Client {
        self.client.as_ref().expect("it is there until this is dropped")
    }

    /// Nothing is open on it and no answer is awaited: others may have it.
    pub(crate) fn done(mut self) {
        self.clean = true;
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Some(client) = self.client.take().filter(|c| self.clean && !c.is_closed()) {
            self.pool.idle.lock().push(client);
        }
    }
}

/// The future's output, or `None` when it takes longer than `span` of real time: the network knows no simulated one.
pub(crate) async fn within<T>(span: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = SystemEnv.sleep(span) => None,
    }
}
