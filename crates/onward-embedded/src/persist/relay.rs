//! Hears from the log how it comes along, tells the engine, and remembers what went wrong and since when.

use super::error::log_error;
use crate::{Progress, StoreObserver};
use onward_core::{Durability, Env, Error, Problem, Timestamp};
use onward_log::{LogError, Observer};
use parking_lot::{Condvar, Mutex};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// Between the log's threads and the engine.
pub(crate) struct Relay {
    env: Arc<dyn Env>,
    durability: Durability,
    target: OnceLock<Arc<dyn StoreObserver>>,
    /// What the log said last, whatever the durability.
    synced: AtomicU64,
    trouble: Mutex<Trouble>,
    /// Signalled with each change, for those who wait for the disk itself.
    changed: Condvar,
    changes: Mutex<()>,
}

#[derive(Debug, Default)]
struct Trouble {
    failed: Option<(Error, Timestamp)>,
    full: Option<Timestamp>,
    care: Option<(Error, Timestamp)>,
}

impl Relay {
    pub(crate) fn new(env: Arc<dyn Env>, durability: Durability) -> Self {
        Self {
            env,
            durability,
            target: OnceLock::new(),
            synced: AtomicU64::new(0),
            trouble: Mutex::default(),
            changed: Condvar::new(),
            changes: Mutex::default(),
        }
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Says who is to be told. Only the first one counts.
    pub(crate) fn observe(&self, target: Arc<dyn StoreObserver>) {
        // Called once, before the first append: nothing was told yet that it could have missed.
        let _ = self.target.set(target);
    }

    /// What the log's marks mean under the declared durability.
    pub(crate) fn progress(&self, log: onward_log::Progress) -> Progress {
        let (written, synced) = (log.written.0, log.synced.0);
        match self.durability {
            Durability::OsBuffer => Progress { written, synced: written },
            _ => Progress { written, synced },
        }
    }

    /// The disk had no room for new work.
    pub(crate) fn refused_full(&self) {
        let now = self.env.now();
        self.trouble.lock().full.get_or_insert(now);
    }

    /// Whether new work was refused for want of space, and there is none yet.
    pub(crate) fn is_full(&self) -> bool {
        self.trouble.lock().full.is_some()
    }

    /// How the last care of the folder went.
    pub(crate) fn care(&self, problem: Option<Error>) {
        let now = self.env.now();
        let mut trouble = self.trouble.lock();
        let since = trouble.care.as_ref().map_or(now, |(_, since)| *since);
        trouble.care = problem.map(|error| (error, since));
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.trouble.lock().failed.as_ref().map(|(error, _)| error.clone())
    }

    /// What is wrong, the failure first.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let trouble = self.trouble.lock();
        let failed = trouble.failed.as_ref().map(|(error, since)| Problem {
            what: error.to_string(),
            since: *since,
            mend: "mend the disk, then open the folder again; what was read stays readable".into(),
        });
        let full = trouble.full.map(|since| Problem {
            what: "the disk is full: new work is refused; running work can still be settled".into(),
            since,
            mend: "free some space, or let workers drain the queues; it goes on by itself".into(),
        });
        let care = trouble.care.as_ref().map(|(error, since)| Problem {
            what: format!("space is not given back and starts take longer: {error}"),
            since: *since,
            mend: error.mend_text().unwrap_or("see the log's own problem").to_owned(),
        });
        // After a failure everything else follows from it.
        let others = full.into_iter().chain(care).filter(|_| failed.is_none()).collect::<Vec<_>>();
        failed.into_iter().chain(others).collect()
    }

    /// Waits until the log is synced through `end`; answers whether it is, and not failed.
    pub(crate) fn wait_synced(&self, end: u64) -> bool {
        let mut changes = self.changes.lock();
        while self.synced.load(SeqCst) < end && self.failure().is_none() {
            self.changed.wait(&mut changes);
        }
        self.synced.load(SeqCst) >= end
    }

    fn change(&self) {
        drop(self.changes.lock());
        self.changed.notify_all();
    }
}

impl Observer for Relay {
    fn advanced(&self, log: onward_log::Progress) {
        self.synced.fetch_max(log.synced.0, SeqCst);
        if let Some(target) = self.target.get() {
            target.advanced(self.progress(log));
        }
        self.change();
    }

    fn failed(&self, error: &LogError) {
        let error = poisoned(error);
        let now = self.env.now();
        self.trouble.lock().failed.get_or_insert((error.clone(), now));
        if let Some(target) = self.target.get() {
            target.failed(error);
        }
        self.change();
    }

    fn room(&self) {
        self.trouble.lock().full = None;
        if let Some(target) = self.target.get() {
            target.room();
        }
    }
}

/// What refuses every write from now on, with what began it.
pub(crate) fn poisoned(error: &LogError) -> Error {
    match error {
        LogError::Poisoned { .. } => log_error(error.clone()),
        cause => log_error(LogError::Poisoned { cause: Arc::new(cause.clone()) }),
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("durability", &self.durability).finish_non_exhaustive()
    }
}
