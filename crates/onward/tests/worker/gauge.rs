//! Counts what runs at once.

use onward::work::{Context, State};
use onward_env::pass;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

/// How many run now, how many ran at once at most, and who.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    pub(crate) running: AtomicU32,
    pub(crate) most: AtomicU32,
    starts: Mutex<Vec<String>>,
}

impl Gauge {
    pub(crate) fn enter(&self, id: &str) {
        self.starts.lock().unwrap().push(id.to_owned());
        self.most.fetch_max(self.running.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    pub(crate) fn leave(&self) {
        self.running.fetch_sub(1, SeqCst);
    }

    pub(crate) fn starts(&self) -> Vec<String> {
        self.starts.lock().unwrap().clone()
    }
}

/// Runs for as many seconds as the data says.
pub(crate) async fn run_for(seconds: u64, context: Context, gauge: State<Arc<Gauge>>) {
    gauge.enter(context.id().as_str());
    pass(&**context.onward().env(), Duration::from_secs(seconds)).await;
    gauge.leave();
}
