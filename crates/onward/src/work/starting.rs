//! Starting what was leased.

use super::{
    attempt::{Shared, work_on},
    decide::{Count, unknown_type},
    run::{Runner, Started},
    settle::{Settled, settle, settle_op},
};
use onward_core::{CauseKind, Delivery, Outcome};
use std::{sync::Arc, time::Duration};
use tracing::Instrument;

impl Runner {
    /// Starts what was leased; suspects last, so that they wait for nothing that was not started.
    pub(super) fn start_all(&mut self, mut deliveries: Vec<Delivery>, sent: Duration) {
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
                shared.alarm.dead(&token.inlet, &token.id, CauseKind::UnknownType);
            }
            count
        }
        _ => Count::Lost,
    }
}
