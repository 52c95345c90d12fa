//! The loop of a worker: lease what can start at once, start it, count what ends; then stop gracefully.

use super::{
    Report,
    attempt::Shared,
    decide::Count,
    leasing::Leased,
    settle::{answered, within},
    unknown::Unknown,
    watching::Watch,
    worker::Options,
};
use futures::{FutureExt, StreamExt};
use onward_core::{BoxStream, DeliveryGuarantee, Error, Hint, Inlet, Interest, RequestId, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::task::{JoinError, JoinSet};

/// How long the engine may take to give back what was not started when the worker stops.
pub(super) const GIVE_BACK_MAX: Duration = Duration::from_secs(1);

/// The loop and what it keeps.
pub(crate) struct Runner {
    pub(super) shared: Arc<Shared>,
    pub(super) options: Options,
    pub(super) tasks: JoinSet<Started>,
    pub(super) running: BTreeMap<Inlet, u32>,
    /// A suspect of a process's death runs: nothing else is leased meanwhile.
    pub(super) alone: bool,
    /// Inlets whose messages are gone once handed out: they can't be given back.
    pub(super) at_most_once: BTreeSet<Inlet>,
    pub(super) unknown: Unknown,
    /// Repeated until it is answered, so that what a lost answer held is not held for nothing.
    pub(super) request_id: RequestId,
    pub(super) failures: u32,
    pub(super) report: Report,
}

/// What a task answers when it ends.
pub(super) struct Started {
    pub(super) inlet: Inlet,
    pub(super) suspect: bool,
    pub(super) count: Count,
}

/// What woke the loop.
enum Woken {
    Stop,
    Again,
}

impl Runner {
    pub(crate) fn new(shared: Arc<Shared>, options: Options) -> Self {
        let request_id = RequestId::generate(&**shared.onward.env());
        Self {
            shared,
            options,
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            alone: false,
            at_most_once: BTreeSet::new(),
            unknown: Unknown::default(),
            request_id,
            failures: 0,
            report: Report::default(),
        }
    }

    pub(crate) async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Result<Report> {
        tokio::pin!(stop);
        let inlets: Vec<Inlet> = self.options.routes.inlets.keys().cloned().collect();
        self.learn_guarantees().await?;
        let shared = self.shared.clone();
        let (onward, watched) = (shared.onward.clone(), inlets.clone());
        let watch = self.watch();
        let side = async {
            tokio::join!(
                onward.heart.beat(&**onward.engine(), &**onward.env()),
                shared.alarm.watch(&onward, watched),
                watch.run()
            );
        };
        let main = async {
            let ended = self.lease_until(stop.as_mut(), inlets.clone()).await;
            self.wind_down().await;
            let env = self.shared.onward.env();
            within(&**env, GIVE_BACK_MAX, self.shared.alarm.look(&self.shared.onward, &inlets)).await;
            tracing::info!(report = ?self.report, "the worker has stopped");
            ended.map(|()| self.report)
        };
        tokio::select! {
            report = main => report,
            () = side => Err(Error::internal("the heartbeat ended by itself")),
        }
    }

    fn watch(&self) -> Watch {
        let routes = &self.options.routes.inlets;
        let handlings = routes.values().flat_map(|route| route.handlings());
        Watch {
            shared: self.shared.clone(),
            name: self.options.name.clone(),
            mine: routes.keys().cloned().collect(),
            breakers: handlings.flat_map(|handling| handling.breakers.iter().cloned()).collect(),
            age_max: self.options.alert_age,
            trends: BTreeMap::new(),
            configs: BTreeMap::new(),
            swept: None,
        }
    }

    async fn learn_guarantees(&mut self) -> Result<()> {
        let onward = &self.shared.onward;
        let topology = answered(onward, "asking what exists", onward.engine().topology()).await?;
        let attempts = topology.inlets.iter().map(|(inlet, c)| (inlet.clone(), c.retry.attempts_max));
        self.shared.attempts_max.get_or_init(|| attempts.collect());
        let gone = topology.inlets.iter().filter(|(_, c)| c.guarantee == DeliveryGuarantee::AtMostOnce);
        self.at_most_once = gone.map(|(inlet, _)| inlet.clone()).collect();
        Ok(())
    }

    /// Leases and starts until `stop`, or until an error that no repeat can mend.
    async fn lease_until(
        &mut self,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
        inlets: Vec<Inlet>,
    ) -> Result<()> {
        let interest = Interest::Inlets(inlets);
        let mut hints = self.shared.onward.engine().watch(interest);
        let mut hinting = true;
        loop {
            self.reap();
            if hinting {
                hinting = drain_hints(&mut hints);
            }
            let Some(request) = self.request() else {
                match self.wait(stop.as_mut(), &mut hints, false, Some(self.options.poll)).await {
                    Woken::Stop => return Ok(()),
                    Woken::Again => continue,
                }
            };
            let asked = request.count_max as usize;
            let pause = match self.lease(request, stop.as_mut()).await? {
                Leased::Stopped => return Ok(()),
                Leased::Some(count) if count >= asked => continue,
                Leased::Some(_) => self.options.poll,
                Leased::Failed(wait) => wait,
            };
            let failing = self.failures > 0;
            match self.wait(stop.as_mut(), &mut hints, hinting && !failing, Some(pause)).await {
                Woken::Stop => return Ok(()),
                Woken::Again => {}
            }
        }
    }

    /// Waits for a stop, for an end of a handler, and, where asked to, for a hint or until `pause` is over.
    async fn wait(
        &mut self,
        stop: Pin<&mut (impl Future<Output = ()> + Send)>,
        hints: &mut BoxStream<Hint>,
        hinting: bool,
        pause: Option<Duration>,
    ) -> Woken {
        let env = self.shared.onward.env().clone();
        let over = env.sleep(pause.unwrap_or_default());
        tokio::pin!(stop, over);
        loop {
            tokio::select! {
                biased;
                () = stop.as_mut() => return Woken::Stop,
                Some(ended) = self.tasks.join_next() => {
                    self.ended(ended);
                    // While the engine fails, a free slot is no reason to ask again sooner.
                    if self.failures == 0 {
                        return Woken::Again;
                    }
                }
                _ = hints.next(), if hinting => return Woken::Again,
                () = over.as_mut(), if pause.is_some() => return Woken::Again,
            }
        }
    }

    fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            self.ended(ended);
        }
    }

    pub(super) fn ended(&mut self, ended: Result<Started, JoinError>) {
        match ended {
            Ok(started) => {
                if let Some(running) = self.running.get_mut(&started.inlet) {
                    *running = running.saturating_sub(1);
                }
                self.alone &= !started.suspect;
                self.report.add(started.count, 1);
            }
            // A task catches its handler's panics, so this is a fault of this program; the lease ends by itself.
            Err(error) if error.is_panic() => {
                tracing::error!(%error, "a fault of the worker itself; the message comes again");
                self.forget_running();
                self.report.add(Count::Lost, 1);
            }
            Err(_) => self.report.add(Count::Lost, 1),
        }
    }

    /// Which inlet a broken task belonged to is not known: the bounds per inlet are counted anew when all have ended.
    fn forget_running(&mut self) {
        if self.tasks.is_empty() {
            self.running.clear();
            self.alone = false;
        }
    }
}

/// Takes the hints that are there: the lease call that follows sees what they tell of. False when none come any more.
fn drain_hints(hints: &mut BoxStream<Hint>) -> bool {
    loop {
        match hints.next().now_or_never() {
            Some(Some(_)) => {}
            Some(None) => return false,
            None => return true,
        }
    }
}
