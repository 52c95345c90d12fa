//! When a worker has had enough: a signal, its one message, an empty queue.

use onward::work::stop_signal;
use onward_core::{Engine, Env, Error, Inlet, ProcessId};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// How often an idle worker that is to drain looks whether the queue is empty.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a worker stops for besides a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enough {
    /// Nothing.
    Never,
    /// One message was begun.
    Once,
    /// Nothing waits any more.
    Empty,
}

/// How far the stop of a worker has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Working,
    /// A signal came: what runs may end, nothing is begun.
    Draining,
    /// The time is over, or a second signal came: what runs is killed and put back.
    Interrupting,
}

/// What the commands of one worker and its stop know of each other.
#[derive(Debug)]
pub(crate) struct Stopping {
    stage: watch::Sender<Stage>,
    begun: AtomicU64,
    running: AtomicU64,
    changed: Notify,
}

impl Stopping {
    pub(crate) fn new() -> Arc<Self> {
        let stage = watch::Sender::new(Stage::Working);
        Arc::new(Self { stage, begun: AtomicU64::new(0), running: AtomicU64::new(0), changed: Notify::new() })
    }

    /// Follows the signals: the first one drains, the second one or the end of `grace` interrupts.
    ///
    /// # Errors
    /// `Internal` where the process can't listen to signals.
    pub(crate) fn follow_signals(self: &Arc<Self>, env: Arc<dyn Env>, grace: Duration) -> Result<(), Error> {
        let (first, this) = (stop_signal()?, self.clone());
        tokio::spawn(async move {
            first.await;
            let Ok(second) = stop_signal() else { return };
            this.stage.send_replace(Stage::Draining);
            tokio::select! {
                () = second => {}
                () = env.sleep(grace) => {}
            }
            this.stage.send_replace(Stage::Interrupting);
        });
        Ok(())
    }

    /// Whether nothing may be begun any more.
    pub(super) fn drains(&self) -> bool {
        *self.stage.borrow() >= Stage::Draining
    }

    /// Completes when what runs is to be killed.
    pub(super) async fn interrupted(&self) {
        self.reached(Stage::Interrupting).await;
    }

    /// A command begins; it has ended when what this answers is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.running.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
        Running(self.clone())
    }

    /// Completes when the worker should take nothing more.
    pub(crate) async fn enough(
        &self,
        enough: Enough,
        engine: &dyn Engine,
        env: &dyn Env,
        inlets: Vec<Inlet>,
        process: &ProcessId,
    ) {
        let by_itself = async {
            match enough {
                Enough::Never => std::future::pending().await,
                Enough::Once => self.once().await,
                Enough::Empty => self.empty(engine, env, inlets, process).await,
            }
        };
        tokio::select! {
            () = self.reached(Stage::Draining) => {}
            () = by_itself => {}
        }
    }

    async fn reached(&self, stage: Stage) {
        let mut stages = self.stage.subscribe();
        // The sender lives as long as this does, so it never ends by itself.
        let _ = stages.wait_for(|now| *now >= stage).await;
    }

    async fn once(&self) {
        while self.begun.load(Ordering::SeqCst) == 0 {
            self.changed.notified().await;
        }
    }

    /// Nothing waits that could be handed out, and nothing of this process is under way.
    async fn empty(&self, engine: &dyn Engine, env: &dyn Env, inlets: Vec<Inlet>, process: &ProcessId) {
        loop {
            if self.running.load(Ordering::SeqCst) == 0
                && let Ok(all) = engine.stats(inlets.clone()).await
            {
                let done = all.iter().all(|stats| {
                    let shut = stats.paused || stats.stopped_dead_full;
                    let ours = stats.leases.iter().any(|lease| lease.holder.process == *process);
                    !ours && (shut || stats.books.waiting <= stats.blocked)
                });
                if done && self.running.load(Ordering::SeqCst) == 0 {
                    return;
                }
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = env.sleep(LOOK_EVERY) => {}
            }
        }
    }
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Running(Arc<Stopping>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
    }
}
