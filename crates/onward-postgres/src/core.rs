//! What every call works with: the connections, the instance's name, and how one call of the server is made.

use crate::{
    PostgresOptions,
    error::{Effect, from_driver, is_collision},
    hub::Hub,
    pool::{Conn, Pool, within},
    sql::{self, Param},
};
use onward_core::{Capabilities, Env, Error, Result};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;
use tokio_postgres::{GenericClient, Row};

/// How often a call is made again that gave way to another transaction.
const COLLISIONS_MAX: u32 = 20;

/// One engine's insides.
pub(crate) struct Core {
    pub(crate) pool: Arc<Pool>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) capabilities: Capabilities,
    pub(crate) hub: Hub,
    /// The rules of a queue that nobody declared; none where that is refused.
    pub(crate) defaults: Option<String>,
    pub(crate) closed: AtomicBool,
    pub(crate) running: AtomicUsize,
    pub(crate) idle: Notify,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresEngine").field("server", &self.options().place()).finish_non_exhaustive()
    }
}

/// Counts a running call for as long as it lives.
#[derive(Debug)]
pub(crate) struct Running(Arc<Core>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl Core {
    pub(crate) fn options(&self) -> &PostgresOptions {
        self.pool.options()
    }

    pub(crate) fn schema(&self) -> &str {
        &self.options().schema
    }

    /// Begins a call.
    ///
    /// # Errors
    /// `Closed` after `close`.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Running> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(self.clone());
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::closed("this engine was closed")),
            false => Ok(running),
        }
    }

    /// One function of the instance, as a transaction of its own; tried again when it gave way to another one.
    pub(crate) async fn call(&self, effect: Effect, name: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let text = sql::call(self.schema(), name, params.len());
        self.statement(effect, &text, params).await
    }

    /// The same for any one statement.
    pub(crate) async fn statement(
        &self,
        effect: Effect,
        text: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        for _ in 0..COLLISIONS_MAX {
            let conn = self.pool.get().await?;
            match self.timed(effect, conn.client().query_typed(text, params)).await? {
                Err(error) if is_collision(&error) => conn.done(),
                answer => return self.finished(conn, effect, answer),
            }
        }
        Err(Error::unavailable(format!("{COLLISIONS_MAX} tries gave way to other transactions")))
    }

    /// What a statement of ours answered; the connection is kept unless it is unclear what goes on in it.
    fn finished<T>(&self, conn: Conn, effect: Effect, answer: Result<T, tokio_postgres::Error>) -> Result<T> {
        match answer {
            Ok(answer) => {
                conn.done();
                Ok(answer)
            }
            Err(error) => {
                if error.as_db_error().is_some() {
                    conn.done();
                }
                Err(from_driver(&error, effect))
            }
        }
    }

    /// The answer within the call's deadline.
    pub(crate) async fn timed<T>(
        &self,
        effect: Effect,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<Result<T, tokio_postgres::Error>> {
        within(self.options().timeout, answer).await.ok_or_else(|| {
            let what = format!("no answer came within {:?}", self.options().timeout);
            match effect {
                Effect::Maybe => Error::unknown(what).mend("repeat the call with the same ids"),
                Effect::None => Error::unavailable(what),
            }
        })
    }
}

/// One function of the instance on a connection or in a transaction of the caller's.
pub(crate) async fn call_on<C: GenericClient + Sync>(
    on: &C,
    schema: &str,
    name: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>> {
    let rows = on.query_typed(&sql::call(schema, name, params.len()), params).await;
    rows.map_err(|error| from_driver(&error, Effect::Maybe))
}

/// The rules that an undeclared queue gets, as the instance keeps them.
pub(crate) fn defaults(strict: bool) -> Option<String> {
    (!strict).then(sql::default_rules)
}
