//! The embedded engine on a folder of its own, in this process, on a stepped clock.

use onward_conformance::{Answer, Clock, Harness, Later, SteppedEnv, Stop, Subject};
use onward_core::{Engine, Env, ErrorKind};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use std::{path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;

/// Segments of the suite's folders, in bytes: small, since every check opens a new folder.
const SEGMENT_BYTES: u64 = 8 << 20;

/// Makes embedded engines, each on an empty folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded;

impl Harness for Embedded {
    fn name(&self) -> &str {
        "embedded"
    }

    fn has_server(&self) -> bool {
        false
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        Box::pin(async {
            let folder =
                tempfile::tempdir().map_err(|e| Stop::NotRun(format!("no folder can be made: {e}")))?;
            let env = SteppedEnv::for_threads(13);
            let engine = Some(open(folder.path(), Arc::new(env.clone())).await?);
            Ok(Box::new(Folder { engine, env, folder }) as Box<dyn Subject>)
        })
    }
}

struct Folder {
    /// Before the folder, so that it is closed before the folder goes.
    engine: Option<Arc<dyn Engine>>,
    env: SteppedEnv,
    folder: TempDir,
}

/// How the suite opens a folder.
pub(crate) fn options() -> OpenOptions {
    OpenOptions { segment_bytes: SEGMENT_BYTES, reserve_bytes: SEGMENT_BYTES, ..OpenOptions::default() }
}

/// Opens the folder, once whoever had it has let it go.
async fn open(folder: &Path, env: Arc<dyn Env>) -> Answer<Arc<dyn Engine>> {
    for _ in 0..2_000 {
        match EmbeddedEngine::open(folder, options(), env.clone()) {
            Ok(engine) => return Ok(Arc::new(engine)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                onward_env::SystemEnv.sleep(Duration::from_millis(5)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Stop::Failed("the folder is not given up by an engine that was dropped".into()))
}

impl Folder {
    async fn reopen(&mut self) -> Answer<()> {
        self.engine = None;
        self.engine = Some(open(self.folder.path(), Arc::new(self.env.clone())).await?);
        Ok(())
    }
}

impl Subject for Folder {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().expect("it is open but while it is opened anew, which borrows it alone")
    }

    fn clock(&self) -> Clock {
        Clock::Stepped(self.env.clone())
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async {
            self.engine().close(Duration::from_secs(5)).await?;
            self.reopen().await
        })
    }

    /// Dropped without `close`; that a killed process leaves as much is shown through the client.
    fn crash(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(self.reopen())
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        // One process has the folder; its tasks share the engine, and other processes are clients.
        Box::pin(std::future::ready(Ok(self.engine())))
    }

    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(std::future::ready(Err(Stop::NotRun("there is no server".into()))))
    }
}
