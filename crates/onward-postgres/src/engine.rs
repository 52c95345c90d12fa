//! The engine trait, method by method.
#![deny(clippy::missing_trait_methods)]

use crate::{
    PostgresOptions,
    core::{Core, defaults},
    group::{Group, is_simple},
    hub::Hub,
    pool::Pool,
    schema,
};
use onward_core::{
    AtomicScope, BoxStream, Capabilities, Capability, Delivery, Engine, EngineLimits, Env, Error, EventRead,
    EventSlice, Extended, Fut, Health, Hint, Inlet, Interest, LeaseRequest, LeaseToken, MessageQuery,
    MessageView, OPS_MAX, Op, PAYLOAD_BYTES_CEILING, Page, Prepared, Problem, Receipt, Record, RecordQuery,
    Result, Stats, Topology, TopologyChange, TopologyDiff,
};
use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio_postgres::Transaction;

/// Queues and records in one schema of a PostgreSQL database.
///
/// Cancel safety: calls go on in the background when their future is dropped, so that a connection is never left in
/// the middle of something.
#[derive(Debug)]
pub struct PostgresEngine {
    core: Arc<Core>,
    group: Group,
}

impl PostgresEngine {
    /// Reaches the server, checks what it promises, and makes the schema or brings it up to date.
    ///
    /// # Errors
    /// `Unavailable`, `Unauthorized`, `NotFound` by what the server says; `Unsupported` for a server that is too old, or
    /// that may forget what it confirmed without `durability=volatile`.
    pub async fn connect(options: PostgresOptions, env: Arc<dyn Env>) -> Result<Self> {
        let pool = Pool::new(options);
        schema::open(&pool).await?;
        let core = Arc::new(Core {
            capabilities: capabilities(pool.options()),
            hub: Hub::new(&*env),
            defaults: defaults(pool.options().strict),
            pool,
            env,
            closed: Default::default(),
            running: Default::default(),
            idle: Default::default(),
        });
        Hub::start(&core);
        let group = Group::start(&core);
        Ok(Self { core, group })
    }

    /// Makes a commit part of a transaction of the caller's own, on the database of this engine.
    ///
    /// Guarantees: what the caller does in the transaction and these operations happen together or not at all. The
    /// receipts are provisional until the caller has committed.
    ///
    /// # Errors
    /// Those of [`Engine::commit`]; the server then refuses the rest of the transaction, which is to be rolled back.
    ///
    /// Limits: order keys and records that it touches are locked until the transaction ends, so keep it short.
    pub async fn commit_in(&self, transaction: &Transaction<'_>, ops: Prepared) -> Result<Vec<Receipt>> {
        let _running = self.core.begin()?;
        self.core.apply(transaction, ops.ops()).await
    }

    /// Tells those who wait in this process that a transaction with [`PostgresEngine::commit_in`] was committed, so that
    /// they need not find out. Nothing depends on it.
    pub fn committed(&self, ops: &Prepared) {
        self.core.said(ops.ops());
    }

    /// Runs a call to its end, whether or not somebody waits for it.
    fn run<T, F>(&self, call: F) -> Fut<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let running = self.core.begin();
        Box::pin(async move {
            let running = running?;
            let task = tokio::spawn(async move {
                let _running = running;
                call.await
            });
            task.await.unwrap_or_else(|failed| Err(Error::internal(format!("a call failed: {failed}"))))
        })
    }
}

fn capabilities(options: &PostgresOptions) -> Capabilities {
    let limits = EngineLimits {
        payload_bytes_max: PAYLOAD_BYTES_CEILING as u64,
        delay_max: None,
        lease_total_max: None,
        dedup_window_max: None,
        ops_max: OPS_MAX,
    };
    use Capability as C;
    let later = [C::Topics, C::Filters, C::Seek, C::Streams, C::TagConditions, C::Schedules];
    let all = Capabilities::all("postgres", options.durability(), AtomicScope::Store, limits);
    later.into_iter().fold(all, |all, c| all.refuse(c, "this release of the engine has queues and records"))
}

impl Engine for PostgresEngine {
    fn capabilities(&self) -> Capabilities {
        self.core.capabilities.clone()
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        Prepared::check(ops, &self.core.capabilities, self.core.env.now())
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        let core = self.core.clone();
        self.run(async move { core.declare(change).await })
    }

    fn topology(&self) -> Fut<'_, Topology> {
        let core = self.core.clone();
        self.run(async move { core.topology().await })
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        if is_simple(&ops) {
            let running = self.core.begin();
            return Box::pin(async move {
                let _running = running?;
                self.group.commit(ops).await
            });
        }
        let core = self.core.clone();
        self.run(async move { core.commit(ops.ops()).await })
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        let core = self.core.clone();
        self.run(async move { Ok(core.submit(&commits).await) })
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        let core = self.core.clone();
        self.run(core.lease(request))
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        let core = self.core.clone();
        self.run(async move { core.extend(&leases, by).await })
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        let core = self.core.clone();
        self.run(async move { core.find(query).await })
    }

    fn read_events(&self, _: EventRead) -> Fut<'_, EventSlice> {
        Box::pin(async {
            Err(Error::unsupported("topics and streams are not in this release of the engine postgres"))
        })
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        let core = self.core.clone();
        self.run(async move { core.records(query).await })
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        let core = self.core.clone();
        self.run(async move { core.stats(inlets).await })
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        self.core.hub.watch(interest)
    }

    fn health(&self) -> Health {
        let open = !self.core.closed.load(Ordering::Acquire);
        let reachable = self.core.pool.is_reachable();
        let problem = || Problem {
            what: "PostgreSQL can't be reached".into(),
            since: self.core.env.now(),
            mend: "look after the server; calls go on when it is back".into(),
        };
        Health {
            readable: open && reachable,
            writable: open && reachable,
            durability: self.core.capabilities.durability,
            problems: (!reachable).then(problem).into_iter().collect(),
        }
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        let core = self.core.clone();
        Box::pin(async move { core.close(drain).await })
    }
}

impl Core {
    async fn close(&self, drain: Duration) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        self.hub.stop();
        let mut patience = self.env.sleep(drain);
        loop {
            let idle = self.idle.notified();
            if self.running.load(Ordering::Acquire) == 0 {
                break;
            }
            tokio::select! {
                () = idle => {}
                () = &mut patience => break,
            }
        }
        self.pool.close();
        Ok(())
    }
}
