//! The PostgreSQL engine under the suite: a schema of its own for each check, on the real server, on a stepped clock.
//!
//! The instance has one clock, a function of its schema; here it reads a row that goes with the suite's clock. Setting the
//! wall clock is setting that of the machine that the engine runs on: the server is another one, and does not notice.

use onward_conformance::{Answer, Clock, Harness, Later, Step, SteppedEnv, Stop, Subject};
use onward_core::{Engine, Env};
use onward_env::SystemEnv;
use onward_postgres::{PostgresEngine, PostgresOptions};
use std::{
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};
use tokio_postgres::NoTls;

/// Where the server is, as `HOST:PORT`, where it isn't the usual place.
const PLACE: &str = "ONWARD_TEST_POSTGRES";
const USUAL: &str = "127.0.0.1:5432";

/// Makes PostgreSQL engines, each on a schema of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Postgres;

impl Harness for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    fn has_server(&self) -> bool {
        true
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        Box::pin(async {
            let place = std::env::var(PLACE).unwrap_or_else(|_| USUAL.into());
            let schema = format!("suite_{:016x}", SystemEnv.random());
            let base = format!("postgres://postgres@{place}/postgres");
            let clock = ServerClock::start(base.clone(), schema.clone())?;
            let told = clock.orders.clone();
            let env = SteppedEnv::for_threads(23).followed_by(move |step| {
                if let Step::Advance(span) = step {
                    order(&told, Order::Advance(span));
                }
            });
            let url = format!("{base}?schema={schema}&pool=3&application_name={schema}");
            let engine = connect(&url, &env).await?;
            clock.take_over(env.now().as_micros())?;
            Ok(Box::new(Instance { engine, env, url, clock }) as Box<dyn Subject>)
        })
    }
}

async fn connect(url: &str, env: &SteppedEnv) -> Answer<Arc<dyn Engine>> {
    Ok(Arc::new(PostgresEngine::connect(PostgresOptions::parse(url)?, Arc::new(env.clone())).await?))
}

struct Instance {
    engine: Arc<dyn Engine>,
    env: SteppedEnv,
    url: String,
    clock: ServerClock,
}

impl Subject for Instance {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Clock {
        Clock::Stepped(self.env.clone())
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async {
            self.engine.close(Duration::from_secs(5)).await?;
            self.engine = connect(&self.url, &self.env).await?;
            Ok(())
        })
    }

    /// Another engine in its place; nothing of the first is closed.
    fn crash(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async {
            self.engine = connect(&self.url, &self.env).await?;
            Ok(())
        })
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        Box::pin(async { connect(&self.url, &self.env).await })
    }

    /// The server ends every session of this instance, as its restart does. Its own death is tried where a server can be
    /// killed alone: in the tests of the crate `onward-postgres`.
    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async {
            self.clock.ask(Order::EndSessions)?;
            // The ends of the connections arrive by the network.
            SystemEnv.sleep(Duration::from_millis(50)).await;
            Ok(())
        })
    }
}

/// The thread that moves the clock of one instance; its end drops the instance.
struct ServerClock {
    orders: mpsc::Sender<(Order, mpsc::Sender<Result<(), String>>)>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    TakeOver(i64),
    Advance(Duration),
    EndSessions,
    End,
}

fn order(to: &mpsc::Sender<(Order, mpsc::Sender<Result<(), String>>)>, order: Order) -> Result<(), String> {
    let (reply, answer) = mpsc::channel();
    to.send((order, reply)).map_err(|_| "the clock's thread has ended".to_owned())?;
    answer.recv().map_err(|_| "the clock's thread has ended".to_owned())?
}

impl ServerClock {
    fn start(url: String, schema: String) -> Answer<Self> {
        let (orders, inbox) = mpsc::channel::<(Order, mpsc::Sender<Result<(), String>>)>();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime.map_err(|e| e.to_string()).and_then(|r| Moving::start(r, &url, schema)) {
                Ok(moving) => {
                    let _ = ready.send(Ok(()));
                    moving.obey(&inbox);
                }
                Err(why) => {
                    let _ = ready.send(Err(why));
                }
            }
        });
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Self { orders, thread: Some(thread) }),
            Ok(Err(why)) => Err(Stop::NotRun(format!("no PostgreSQL answers: {why}"))),
            Err(_) => Err(Stop::NotRun("the clock's thread has ended".into())),
        }
    }

    fn take_over(&self, now: i64) -> Answer<()> {
        self.ask(Order::TakeOver(now))
    }

    fn ask(&self, what: Order) -> Answer<()> {
        order(&self.orders, what).map_err(Stop::Failed)
    }
}

impl Drop for ServerClock {
    fn drop(&mut self) {
        let _ = order(&self.orders, Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Inside of the thread.
struct Moving {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
    schema: String,
}

impl Moving {
    fn start(runtime: tokio::runtime::Runtime, url: &str, schema: String) -> Result<Self, String> {
        let told = |e: tokio_postgres::Error| e.to_string();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(told)?;
            tokio::spawn(connection);
            // The clock is no data: it need not be on the disk.
            client.batch_execute("set synchronous_commit = off").await.map_err(told)?;
            Ok::<_, String>(client)
        })?;
        Ok(Self { runtime, client, schema })
    }

    fn obey(self, inbox: &mpsc::Receiver<(Order, mpsc::Sender<Result<(), String>>)>) {
        while let Ok((order, reply)) = inbox.recv() {
            let ends = matches!(order, Order::End);
            let text = self.text(order);
            let done = self.runtime.block_on(self.client.batch_execute(&text));
            let _ = reply.send(done.map_err(|e| e.to_string()));
            if ends {
                return;
            }
        }
    }

    fn text(&self, order: Order) -> String {
        let schema = &self.schema;
        let end = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{schema}';"
        );
        match order {
            Order::TakeOver(now) => format!(
                "create table \"{schema}\".stepped (us bigint not null); insert into \"{schema}\".stepped values ({now});
                 create or replace function \"{schema}\".now_us() returns bigint language sql volatile as
                   'select us from \"{schema}\".stepped'"
            ),
            Order::Advance(span) => format!("update \"{schema}\".stepped set us = us + {}", span.as_micros()),
            Order::EndSessions => end,
            Order::End => format!("{end} drop schema if exists \"{schema}\" cascade"),
        }
    }
}
