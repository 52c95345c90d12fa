//! What this program's process is to an engine: its id, and the gate through which suspects run alone.

use onward_core::{Env, ProcessId};
use std::sync::{Arc, OnceLock};
use tokio::sync::RwLock;

/// One start of one process. Engines tell by its id whether a lease's holder died.
#[derive(Debug)]
pub struct Process {
    id: ProcessId,
    /// Handlers hold it shared; a suspect of a process's death holds it alone.
    pub(crate) gate: Arc<RwLock<()>>,
}

impl Process {
    /// This process, by the name by which a folder's host watches over it.
    pub fn this(env: &dyn Env) -> Arc<Self> {
        static THIS: OnceLock<Arc<Process>> = OnceLock::new();
        THIS.get_or_init(|| Self::named(&onward_client::this_process(env).0)).clone()
    }

    /// A process of a given id: for tests that play several processes in one.
    pub fn named(id: &str) -> Arc<Self> {
        Arc::new(Self { id: ProcessId(id.into()), gate: Arc::default() })
    }

    /// Its id.
    pub fn id(&self) -> &ProcessId {
        &self.id
    }
}
