//! Starting what was leased.

use super::{
    Handling,
    attempt::{Shared, work_on},
    decide::{Count, unknown_type},
    run::{Runner, Started},
    settle::{Settled, settle, settle_op},
};
use onward_core::{CauseKind, Delivery, Message, Outcome};
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
        let found = route.and_then(|route| route.find(&delivery.message.kind)).cloned();
        match found {
            Some(handling) if handling.versions.take(delivery.message.version) => {
                let kind = handling.kinds.first().cloned().unwrap_or_else(|| "*".into());
                let (monitor, env) = (shared.monitor.clone(), shared.onward.env().clone());
                monitor.started();
                let work = work_on(shared, handling, delivery, sent);
                let task = async move {
                    let began = env.monotonic();
                    let count = work.await;
                    monitor.ended(&inlet, &kind, env.monotonic().saturating_sub(began), count);
                    Started { inlet, suspect, count }
                };
                self.tasks.spawn(task.instrument(span));
            }
            other => {
                let before = self.unknown.seen(&delivery.message.id);
                let what = untaken(other.as_deref(), &delivery.message);
                let outcome = unknown_type(&what, before, self.options.unknown_releases_max);
                let work = leave(shared, delivery, outcome, sent);
                let task = async move { Started { inlet, suspect, count: work.await } };
                self.tasks.spawn(task.instrument(span));
            }
        }
    }
}

/// Why no handler takes a message.
fn untaken(handling: Option<&Handling>, message: &Message) -> String {
    let (kind, version) = (&message.kind, message.version);
    match handling {
        None => format!("no handler takes the type `{kind}`"),
        Some(handling) => {
            format!("no handler takes version {version} of `{kind}`, only {}", handling.versions.text())
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
