//! One lease call: what is asked for, and what comes of it.

use super::{
    run::{GIVE_BACK_MAX, Runner},
    settle::{CALL_WAIT_MAX, within},
};
use onward_core::{
    Error, ErrorKind, Holder, Inlet, LEASE_COUNT_MAX, LEASE_INLETS_MAX, LeaseRequest, RequestId, Result,
    WeightedInlet,
};
use std::{collections::BTreeSet, future::Future, pin::Pin, time::Duration};

/// Payload bytes of one lease request: what one worker takes in at once.
pub const LEASE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How a lease call went.
pub(super) enum Leased {
    Some(usize),
    Failed(Duration),
    Stopped,
}

impl Runner {
    /// Asks for as much as can start at once; `None` when nothing can.
    pub(super) fn request(&self) -> Option<LeaseRequest> {
        let free = self.shared.monitor.capacity().saturating_sub(self.tasks.len() as u32);
        if free == 0 || self.alone {
            return None;
        }
        let room = |inlet: &Inlet, most: Option<u32>| {
            most.map_or(free, |most| most.saturating_sub(self.running.get(inlet).copied().unwrap_or(0)))
        };
        let now = self.shared.onward.env().monotonic();
        let open = |(inlet, route): &(&Inlet, &super::routes::Route)| {
            room(inlet, route.concurrency) > 0 && !route.is_held(now)
        };
        let routes = || self.options.routes.inlets.iter().filter(open);
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
    pub(super) async fn lease(
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
                self.shared.monitor.leased(count);
                self.start_all(deliveries, sent);
                Ok(Leased::Some(count))
            }
            Err(error) if is_final(&error) => Err(error),
            Err(error) => Ok(Leased::Failed(self.backoff(&error))),
        }
    }

    pub(super) fn backoff(&mut self, error: &Error) -> Duration {
        let longest = (BACKOFF_MIN * (1 << self.failures.min(6))).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        let random = self.shared.onward.env().random() as f64 / u64::MAX as f64;
        let wait = longest.mul_f64(0.5 + random / 2.0);
        tracing::warn!(%error, ?wait, "could not lease; trying again");
        wait
    }
}

/// Errors that no repeat can mend.
fn is_final(error: &Error) -> bool {
    use ErrorKind::{Closed, Invalid, NotFound, Poisoned, Unauthorized, Unsupported};
    matches!(error.kind(), Closed | Invalid | NotFound | Poisoned | Unauthorized | Unsupported)
}
