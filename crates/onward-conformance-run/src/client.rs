//! The client over a folder's socket, with the embedded engine in a process of its own that is really killed.

use crate::server::Server;
use onward_client::{Client, ClientOptions};
use onward_conformance::{Answer, Clock, Harness, Later, SteppedEnv, Stop, Subject};
use onward_core::{Engine, Env, Timestamp};
use onward_env::SystemEnv;
use parking_lot::Mutex;
use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};
use tempfile::TempDir;

/// Makes clients, each with a server process on an empty folder.
#[derive(Debug, Clone)]
pub struct OverSocket {
    program: PathBuf,
}

impl OverSocket {
    /// With `program` (the binary `conformance`) as the server.
    pub fn new(program: PathBuf) -> Self {
        Self { program }
    }
}

impl Harness for OverSocket {
    fn name(&self) -> &str {
        "client"
    }

    fn has_server(&self) -> bool {
        true
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        Box::pin(async {
            let folder =
                tempfile::tempdir().map_err(|e| Stop::NotRun(format!("no folder can be made: {e}")))?;
            let server = Arc::new(Mutex::new(None::<Server>));
            let told = server.clone();
            // The server's clock goes with this one, step by step.
            let env = SteppedEnv::for_threads(17).followed_by(move |step| {
                if let Some(server) = told.lock().as_mut() {
                    server.follow(step);
                }
            });
            *server.lock() = Some(Server::start(&self.program, folder.path(), &env)?);
            let engine = connect(&folder, &env).await?;
            let program = self.program.clone();
            Ok(Box::new(Connected { engine, server, env, program, folder }) as Box<dyn Subject>)
        })
    }
}

struct Connected {
    engine: Arc<dyn Engine>,
    server: Arc<Mutex<Option<Server>>>,
    env: SteppedEnv,
    program: PathBuf,
    folder: TempDir,
}

/// The wall clock of the server, since what is due is checked by the client too, and real waiting.
#[derive(Debug)]
struct ClientEnv {
    wall: SteppedEnv,
    real: Arc<dyn Env>,
}

impl Env for ClientEnv {
    fn now(&self) -> Timestamp {
        self.wall.now()
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic()
    }

    fn random(&self) -> u64 {
        self.real.random()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.real.sleep(span)
    }
}

async fn connect(folder: &TempDir, wall: &SteppedEnv) -> Answer<Arc<dyn Engine>> {
    let env: Arc<dyn Env> = Arc::new(ClientEnv { wall: wall.clone(), real: SystemEnv::shared() });
    let options = ClientOptions::new("conformance", &*env);
    Ok(Arc::new(Client::connect(Server::socket(folder.path()), options, env).await?))
}

impl Connected {
    fn end(&self, end: impl FnOnce(Server)) {
        if let Some(server) = self.server.lock().take() {
            end(server);
        }
    }

    fn start(&self) -> Answer<()> {
        *self.server.lock() = Some(Server::start(&self.program, self.folder.path(), &self.env)?);
        Ok(())
    }
}

impl Subject for Connected {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Clock {
        Clock::Stepped(self.env.clone())
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async {
            self.engine.close(Duration::from_secs(5)).await?;
            self.end(Server::stop);
            self.start()?;
            self.engine = connect(&self.folder, &self.env).await?;
            Ok(())
        })
    }

    fn crash(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async {
            self.end(Server::kill);
            self.start()?;
            self.engine = connect(&self.folder, &self.env).await?;
            Ok(())
        })
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        Box::pin(connect(&self.folder, &self.env))
    }

    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        self.end(Server::kill);
        Box::pin(std::future::ready(self.start()))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.end(Server::kill);
    }
}
