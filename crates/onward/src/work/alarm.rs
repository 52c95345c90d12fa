//! The alarm for dead letters: on by default, in the log and by callback, and never a flood.

use super::{Alert, settle::answered, watching::Alerts};
use crate::Onward;
use futures::StreamExt;
use onward_core::{CauseKind, Inlet, Interest, MessageId};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// An inlet is reported at most this often.
pub const ALARM_EVERY_MIN: Duration = Duration::from_secs(5);
/// Dead letters of other workers and of the engine are looked for this often, should no hint tell of them.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Messages went to the dead letters, or lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadAlarm {
    /// Where.
    pub inlet: Inlet,
    /// Dead letters there now.
    pub dead: u64,
    /// Of these, since the last alarm.
    pub new: u64,
    /// The latest one that this worker saw go, and why.
    pub latest: Option<(MessageId, CauseKind)>,
}

pub(crate) type OnDead = Arc<dyn Fn(&DeadAlarm) + Send + Sync>;

/// What was seen of one inlet.
#[derive(Debug, Default)]
struct Seen {
    dead: u64,
    latest: Option<(MessageId, CauseKind)>,
}

/// What attempts tell the alarm.
#[derive(Default)]
pub(crate) struct Alarm {
    pub(crate) on_dead: Option<OnDead>,
    alerts: Arc<Alerts>,
    seen: Mutex<BTreeMap<Inlet, Seen>>,
    something: Notify,
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alarm")
    }
}

impl Alarm {
    pub(crate) fn new(on_dead: Option<OnDead>, alerts: Arc<Alerts>) -> Self {
        Self { on_dead, alerts, ..Self::default() }
    }

    /// One message went to the dead letters.
    pub(crate) fn dead(&self, inlet: &Inlet, id: &MessageId, kind: CauseKind) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(inlet.clone()).or_default().latest = Some((id.clone(), kind));
        self.something.notify_one();
    }

    /// Watches the dead letters of `inlets` for ever.
    pub(crate) async fn watch(&self, onward: &Onward, inlets: Vec<Inlet>) {
        let env = onward.env();
        let mut hints = onward.engine().watch(Interest::Dead(inlets.clone())).fuse();
        loop {
            self.look(onward, &inlets).await;
            env.sleep(ALARM_EVERY_MIN).await;
            tokio::select! {
                () = self.something.notified() => {}
                Some(_) = hints.next(), if !futures::stream::FusedStream::is_terminated(&hints) => {}
                () = env.sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Compares with what was seen before; also once more when the worker ends, so that nothing goes unreported.
    pub(crate) async fn look(&self, onward: &Onward, inlets: &[Inlet]) {
        // An engine that can't be asked is reported by everything else that asks it.
        let Ok(all) = answered(onward, "asking for numbers", onward.engine().stats(inlets.to_vec())).await
        else {
            return;
        };
        for stats in all {
            if let Some(alarm) = self.compare(stats.inlet, stats.books.dead) {
                self.sound(&alarm);
            }
        }
    }

    fn compare(&self, inlet: Inlet, dead: u64) -> Option<DeadAlarm> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(inlet.clone()).or_default();
        let before = std::mem::replace(&mut seen.dead, dead);
        let new = dead.saturating_sub(before);
        (new > 0).then(|| DeadAlarm { inlet, dead, new, latest: seen.latest.take() })
    }

    fn sound(&self, alarm: &DeadAlarm) {
        let (inlet, dead, new) = (&alarm.inlet, alarm.dead, alarm.new);
        let latest = alarm.latest.as_ref().map(|(id, kind)| format!("{id} ({kind:?})")).unwrap_or_default();
        tracing::warn!(%inlet, dead, new, latest, "dead letters: look at them, mend the cause, redrive them");
        self.alerts.pass_on(&Alert::Dead(alarm.clone()));
        if let Some(tell) = &self.on_dead {
            tell(alarm);
        }
    }
}
