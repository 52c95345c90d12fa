//! The thread that takes care of a folder from time to time.

use super::care::{Care, Held};
use parking_lot::{Condvar, Mutex};
use std::{
    io,
    sync::{Arc, Weak},
    thread::JoinHandle,
    time::Duration,
};

/// On a full disk it looks so many times as often.
const URGENT: u32 = 20;

/// Runs [`Care::step`] until it is dropped, or the engine is gone.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Keeper {
    pub(crate) fn start(care: Arc<Care>, held: Weak<dyn Held>, every: Duration) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let theirs = stop.clone();
        let run = move || {
            while theirs.wait(if care.is_urgent() { every / URGENT } else { every }) {
                let Some(held) = held.upgrade() else { return };
                care.stop_when_superseded();
                // What went wrong is shown in health, and tried again the next time.
                care.step_and_tell(&*held);
            }
        };
        let thread = std::thread::Builder::new().name("onward-care".into()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the thread, and waits for the step it is in.
    pub(crate) fn stop(&mut self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The last hold on the engine may be dropped by the thread itself, which can't wait for its own end.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Stop {
    /// Waits; answers whether to go on.
    fn wait(&self, every: Duration) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, every);
        }
        !*stopped
    }
}
