//! An engine in front of another, that fails where a test says so, and counts what it is asked.

use onward::core::*;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};
use tokio::sync::Notify;

/// What goes wrong, and what was asked.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Every call fails, as if the engine could not be reached.
    pub(crate) unreachable: AtomicBool,
    /// So many commits with a settlement are done, but their answers are lost.
    pub(crate) lost_settle_answers: AtomicU32,
    /// So many lease calls hand out, but their answers are lost.
    pub(crate) lost_lease_answers: AtomicU32,
    /// Commits with a settlement wait until they are let go, before the engine sees them.
    pub(crate) hold_settles: AtomicBool,
    /// Leases are given, but their answers wait until they are let go.
    pub(crate) hold_lease_answers: AtomicBool,
    /// Leases are asked for and nothing is given, although something waits.
    pub(crate) lease_nothing: AtomicBool,
    /// The message of this id is handed out as a suspect of a process's death.
    pub(crate) suspect: Mutex<Option<String>>,
    /// How many settlements the engine refused as stale.
    pub(crate) stale_settles: AtomicU32,
    /// Lets go one that waits.
    pub(crate) go: Notify,
    /// How often leases were extended.
    pub(crate) extends: AtomicU32,
    /// How many leases were extended together at most.
    pub(crate) extended_together: AtomicU32,
    /// How many deliveries were handed out.
    pub(crate) leased: AtomicU32,
}

#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) inner: Arc<dyn Engine>,
    pub(crate) faults: Arc<Faults>,
    /// It says that its commits reach so far only, and refuses wider ones.
    pub(crate) atomic: AtomicScope,
}

/// While an engine works in its own threads, the paused clock must not go on: a blocking task holds it.
struct HoldTheClock {
    _until_dropped: mpsc::Sender<()>,
}

fn hold_the_clock() -> HoldTheClock {
    let (sender, receiver) = mpsc::channel();
    tokio::task::spawn_blocking(move || receiver.recv().is_ok());
    HoldTheClock { _until_dropped: sender }
}

fn take_one(counter: &AtomicU32) -> bool {
    counter.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Faulty {
    /// Calls the inner engine, unless it is out of reach: then it is not even asked.
    fn call<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&'a dyn Engine) -> Fut<'a, T> + Send + 'a,
    ) -> Fut<'a, T> {
        Box::pin(async move {
            if self.faults.unreachable.load(SeqCst) {
                return Err(Error::unavailable("the engine can't be reached"));
            }
            let _held = hold_the_clock();
            call(&*self.inner).await
        })
    }
}

impl Engine for Faulty {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.atomic = self.atomic;
        capabilities
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        Prepared::check(ops.clone(), &self.capabilities(), Timestamp::default())?;
        self.inner.prepare(ops)
    }

    fn declare(&self, change: TopologyChange) -> Fut<'_, TopologyDiff> {
        self.call(move |inner| inner.declare(change))
    }

    fn topology(&self) -> Fut<'_, Topology> {
        self.call(move |inner| inner.topology())
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        let settles = ops.ops().iter().any(|op| matches!(op, Op::Settle { .. }));
        let answer = self.call(move |inner| inner.commit(ops));
        Box::pin(async move {
            if settles && self.faults.hold_settles.load(SeqCst) {
                self.faults.go.notified().await;
            }
            let answer = answer.await;
            if answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::LeaseLost) {
                self.faults.stale_settles.fetch_add(1, SeqCst);
            }
            match settles && take_one(&self.faults.lost_settle_answers) {
                true => Err(Error::unknown("the answer was lost")),
                false => answer,
            }
        })
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        self.call(move |inner| inner.submit(commits))
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        if self.faults.lease_nothing.load(SeqCst) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        let answer = self.call(move |inner| inner.lease(request));
        Box::pin(async move {
            let mut deliveries = answer.await?;
            if let Some(id) = &*self.faults.suspect.lock().unwrap() {
                deliveries
                    .iter_mut()
                    .for_each(|delivery| delivery.suspect |= delivery.message.id.as_str() == id);
            }
            if !deliveries.is_empty() && self.faults.hold_lease_answers.load(SeqCst) {
                self.faults.go.notified().await;
            }
            self.faults.leased.fetch_add(deliveries.len() as u32, SeqCst);
            match !deliveries.is_empty() && take_one(&self.faults.lost_lease_answers) {
                true => Err(Error::unknown("the answer was lost")),
                false => Ok(deliveries),
            }
        })
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        self.faults.extends.fetch_add(1, SeqCst);
        self.faults.extended_together.fetch_max(leases.len() as u32, SeqCst);
        self.call(move |inner| inner.extend(leases, by))
    }

    fn find(&self, query: MessageQuery) -> Fut<'_, Page<MessageView>> {
        self.call(move |inner| inner.find(query))
    }

    fn read_events(&self, read: EventRead) -> Fut<'_, EventSlice> {
        self.call(move |inner| inner.read_events(read))
    }

    fn get_records(&self, query: RecordQuery) -> Fut<'_, Page<Record>> {
        self.call(move |inner| inner.get_records(query))
    }

    fn stats(&self, inlets: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        self.call(move |inner| inner.stats(inlets))
    }

    fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        self.inner.watch(interest)
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn close(&self, drain: Duration) -> Fut<'_, ()> {
        self.call(move |inner| inner.close(drain))
    }
}
