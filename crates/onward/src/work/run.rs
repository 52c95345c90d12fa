//! The loop of a worker: lease what can start at once, start it, count what ends; then stop gracefully.

use super::{
    Report,
    attempt::{Shared, work_on},
    decide::{Count, release, unknown_type},
    settle::{CALL_WAIT_MAX, Settled, settle, settle_op},
    unknown::Unknown,
    worker::Options,
};
use futures::{FutureExt, StreamExt};
use onward_core::{
    BoxStream, Delivery, DeliveryGuarantee, Error, ErrorKind, Hint, Holder, Inlet, Interest, LEASE_COUNT_MAX,
    LEASE_INLETS_MAX, LeaseRequest, Outcome, RequestId, Result, WeightedInlet,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

/// Payload bytes of one lease request: what one worker takes in at once.
pub const LEASE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// What settling may take after the grace of a stop, before a task is dropped as it stands.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long the engine may take to give back what was not started when the worker stops.
const GIVE_BACK_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Runner {
    shared: Arc<Shared>,
    options: Options,
    tasks: JoinSet<Started>,
    running: BTreeMap<Inlet, u32>,
    /// A suspect of a process's death runs: nothing else is leased meanwhile.
    alone: bool,
    /// Inlets whose messages are gone once handed out: they can't be given back.
    at_most_once: BTreeSet<Inlet>,
    unknown: Unknown,
    /// Repeated until it is answered, so that what a lost answer held is not held for nothing.
    request_id: RequestId,
    failures: u32,
    report: Report,
}

/// What a task answers when it ends.
struct Started {
    inlet: Inlet,
    suspect: bool,
    count: Count,
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
        let side = async {
            tokio::join!(
                onward.heart.beat(&**onward.engine(), &**onward.env()),
                shared.alarm.watch(&onward, watched)
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

    async fn learn_guarantees(&mut self) -> Result<()> {
        let topology = self.shared.onward.engine().topology().await?;
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
                match self.wait(stop.as_mut(), &mut hints, false, None).await {
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

    /// Asks for as much as can start at once; `None` when nothing can.
    fn request(&self) -> Option<LeaseRequest> {
        let free = self.options.concurrency.saturating_sub(self.tasks.len() as u32);
        if free == 0 || self.alone {
            return None;
        }
        let room = |inlet: &Inlet, most: Option<u32>| {
            most.map_or(free, |most| most.saturating_sub(self.running.get(inlet).copied().unwrap_or(0)))
        };
        let routes = || self.options.routes.inlets.iter().filter(|(i, r)| room(i, r.concurrency) > 0);
        // One request has one count: with bounds per inlet the smallest room holds, and the next request brings more.
        let count = routes().map(|(inlet, route)| room(inlet, route.concurrency)).min()?.min(free);
        let weighted = |(inlet, route): (&Inlet, &super::routes::Route)| WeightedInlet {
            inlet: inlet.clone(),
            weight: route.weight,
        };
        let kinds =
            routes().filter(|_| self.options.leave_other_types).filter_map(|(_, route)| route.kinds());
        Some(LeaseRequest {
            request_id: self.request_id,
            inlets: routes().take(LEASE_INLETS_MAX).map(weighted).collect(),
            count_max: count.min(LEASE_COUNT_MAX as u32),
            bytes_max: LEASE_BYTES_MAX,
            wait: Duration::ZERO,
            lease: self.options.lease,
            holder: Holder {
                worker: self.options.name.clone(),
                process: self.shared.onward.process().id().clone(),
            },
            accepts: kinds.flatten().collect::<BTreeSet<_>>().into_iter().collect(),
        })
    }

    /// One lease call, and the start of what it gives.
    async fn lease(
        &mut self,
        request: LeaseRequest,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<Leased> {
        let shared = self.shared.clone();
        let (engine, env) = (shared.onward.engine(), shared.onward.env());
        let sent = env.monotonic();
        let mut call = engine.lease(request);
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            () = env.sleep(CALL_WAIT_MAX) => Err(Error::unknown("no answer to a lease in time")),
            () = stop.as_mut() => {
                // What it still brings was never started: it is given back at once.
                let late = within(&**env, GIVE_BACK_MAX, call).await;
                self.give_back(late.and_then(Result::ok).unwrap_or_default(), sent).await;
                return Ok(Leased::Stopped);
            }
        };
        match answer {
            Ok(deliveries) => {
                self.failures = 0;
                self.request_id = RequestId::generate(&**env);
                let count = deliveries.len();
                self.start_all(deliveries, sent);
                Ok(Leased::Some(count))
            }
            Err(error) if is_final(&error) => Err(error),
            Err(error) => Ok(Leased::Failed(self.backoff(&error))),
        }
    }

    fn backoff(&mut self, error: &Error) -> Duration {
        let longest = (BACKOFF_MIN * (1 << self.failures.min(6))).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        let random = self.shared.onward.env().random() as f64 / u64::MAX as f64;
        let wait = longest.mul_f64(0.5 + random / 2.0);
        tracing::warn!(%error, ?wait, "could not lease; trying again");
        wait
    }

    /// Starts what was leased; suspects last, so that they wait for nothing that was not started.
    fn start_all(&mut self, mut deliveries: Vec<Delivery>, sent: Duration) {
        deliveries.sort_by_key(|delivery| delivery.suspect);
        deliveries.into_iter().for_each(|delivery| self.start(delivery, sent));
    }

    fn start(&mut self, delivery: Delivery, sent: Duration) {
        let (inlet, suspect) = (delivery.token.inlet.clone(), delivery.suspect);
        let span = tracing::info_span!(
            "delivery",
            inlet = %inlet,
            id = %delivery.message.id,
            kind = %delivery.message.kind,
            attempt = delivery.attempt,
            correlation = %delivery.message.correlation(),
        );
        *self.running.entry(inlet.clone()).or_default() += 1;
        self.alone |= suspect;
        let route = self.options.routes.inlets.get(&inlet);
        let shared = self.shared.clone();
        match route.and_then(|route| route.find(&delivery.message.kind)).cloned() {
            Some(handling) => {
                let work = work_on(shared, handling, delivery, sent);
                let task = async move { Started { inlet, suspect, count: work.await } };
                self.tasks.spawn(task.instrument(span));
            }
            None => {
                let (kind, before) = (&delivery.message.kind, self.unknown.seen(&delivery.message.id));
                let outcome = unknown_type(kind, before, self.options.unknown_releases_max);
                let work = leave(shared, delivery, outcome, sent);
                let task = async move { Started { inlet, suspect, count: work.await } };
                self.tasks.spawn(task.instrument(span));
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

    fn ended(&mut self, ended: Result<Started, JoinError>) {
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

    /// Gives back what was not started. What is gone from its inlet once handed out has to run instead.
    async fn give_back(&mut self, deliveries: Vec<Delivery>, sent: Duration) {
        let (run, back): (Vec<_>, Vec<_>) =
            deliveries.into_iter().partition(|d| self.at_most_once.contains(&d.token.inlet));
        self.start_all(run, sent);
        let engine = self.shared.onward.engine().clone();
        let ops = back.iter().map(|d| engine.prepare(vec![settle_op(&d.token, release(Duration::ZERO))]));
        let commits: Vec<_> = ops.filter_map(Result::ok).collect();
        if commits.is_empty() {
            return;
        }
        let env = self.shared.onward.env().clone();
        match within(&*env, GIVE_BACK_MAX, engine.submit(commits)).await {
            Some(Ok(answers)) => {
                self.report
                    .add(Count::Released, answers.iter().filter(|answer| answer.is_ok()).count() as u64);
            }
            _ => tracing::warn!(
                "what was not started could not be given back; it comes again when its lease ends"
            ),
        }
    }

    /// Lets what runs end; interrupts it after the time to drain; drops it after the grace.
    async fn wind_down(&mut self) {
        let env = self.shared.onward.env().clone();
        tracing::info!(running = self.tasks.len(), drain = ?self.options.drain, "stopping");
        self.join_all(&*env, self.options.drain).await;
        self.shared.interrupt.send_replace(true);
        self.join_all(&*env, self.options.grace + LAST_WORDS).await;
        if !self.tasks.is_empty() {
            tracing::error!(
                left = self.tasks.len(),
                "dropped what did not stop; it comes again when its lease ends"
            );
        }
        self.report.add(Count::Lost, self.tasks.len() as u64);
        self.tasks.shutdown().await;
    }

    async fn join_all(&mut self, env: &dyn onward_core::Env, span: Duration) {
        let over = env.sleep(span);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                ended = self.tasks.join_next() => match ended {
                    Some(ended) => self.ended(ended),
                    None => return,
                },
                () = &mut over => return,
            }
        }
    }
}

/// How a lease call went.
enum Leased {
    Some(usize),
    Failed(Duration),
    Stopped,
}

/// Errors that no repeat can mend.
fn is_final(error: &Error) -> bool {
    use ErrorKind::{Closed, Invalid, NotFound, Poisoned, Unauthorized, Unsupported};
    matches!(error.kind(), Closed | Invalid | NotFound | Poisoned | Unauthorized | Unsupported)
}

/// Settles a delivery that no handler takes.
async fn leave(shared: Arc<Shared>, delivery: Delivery, outcome: Outcome, sent: Duration) -> Count {
    let count = match &outcome {
        Outcome::Release { .. } => Count::Released,
        _ => Count::Failed,
    };
    tracing::warn!(?count, "no handler takes this type");
    let (token, fence) = (delivery.token, sent + delivery.lease);
    match settle(&shared.onward, vec![settle_op(&token, outcome)], fence).await {
        Settled::As(_) => {
            if count == Count::Failed {
                shared.alarm.dead(&token.inlet, &token.id, onward_core::CauseKind::UnknownType);
            }
            count
        }
        _ => Count::Lost,
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

async fn within<T>(env: &dyn onward_core::Env, span: Duration, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        answer = call => Some(answer),
        () = env.sleep(span) => None,
    }
}
