//! Schedules in the engine: the clock that their ticks go by, and the step that fires them.

use super::{Core, Inner};
use crate::{AppendError, Store, plan, plan::Context, plan::Draft};
use onward_core::{Env, ScheduleView, Timestamp, tick_id};
use parking_lot::Mutex;
use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

/// While a tick waits, the wall clock is looked at so often: it may be set forward meanwhile.
const LOOK: Duration = Duration::from_secs(30);
/// A tick that its queue refuses is tried again so much later.
const HELD_WAIT: Duration = Duration::from_secs(1);

/// The clock of schedules: the wall clock, but one that never goes back.
///
/// Set forward, it follows at once. When the wall clock is set back, it goes on at half the speed until that has
/// caught up: no tick comes twice, and none of the following has to wait out the repeated time.
#[derive(Debug)]
pub(crate) struct ScheduleClock {
    env: Arc<dyn Env>,
    last: Mutex<(Timestamp, Duration)>,
}

impl ScheduleClock {
    /// One that does not stand before `floor`.
    pub(crate) fn new(env: Arc<dyn Env>, floor: Timestamp) -> Self {
        let last = Mutex::new((env.now().max(floor), env.monotonic()));
        Self { env, last }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let (wall, monotonic) = (self.env.now(), self.env.monotonic());
        let mut last = self.last.lock();
        let passed = monotonic.saturating_sub(last.1);
        *last = (wall.max(last.0.plus(passed / 2)), monotonic.max(last.1));
        last.0
    }
}

impl<S: Store> Core<S> {
    /// Fires what is due, in a unit of its own, so that it holds up nothing else. Answers whether more is due.
    pub(super) fn fire_schedules(
        &self,
        inner: &mut Inner,
        ctx: &mut Context<'_>,
    ) -> Result<bool, AppendError> {
        let mut draft = Draft::new();
        if !self.revised.swap(true, Ordering::Relaxed) {
            plan::revise_schedules(&inner.state, &mut draft);
            self.append(inner, &draft, ctx.now)?;
            draft.clear();
        }
        let now = self.scheduled.now();
        if inner.state.schedules.next().is_none_or(|next| next > now) {
            return Ok(false);
        }
        let fired = plan::fire_schedules(&inner.state, &mut draft, now, ctx);
        self.append(inner, &draft, ctx.now)?;
        inner.held = fired.held.into_iter().map(|(name, error)| (name, error.to_string())).collect();
        Ok(fired.more)
    }

    /// When the schedules want the clock task, by the engine's clock.
    pub(super) fn schedules_want(&self, inner: &Inner) -> Option<Timestamp> {
        let next = inner.state.schedules.next()?;
        let now = self.scheduled.now();
        let wait = if next > now {
            next.since(now).min(LOOK)
        } else if inner.held.is_empty() {
            Duration::ZERO
        } else {
            let later = inner.state.schedules.next_after(now).map_or(HELD_WAIT, |next| next.since(now));
            later.min(HELD_WAIT)
        };
        Some(self.clock.now().plus(wait))
    }

    /// Whether a tick is due that has not been refused just now.
    pub(super) fn schedules_are_due(&self, inner: &Inner) -> bool {
        inner.state.schedules.next().is_some_and(|next| next <= self.scheduled.now())
    }
}

/// Every schedule as it is shown.
pub(super) fn views(inner: &Inner) -> Vec<ScheduleView> {
    let view = |entry: &crate::state::ScheduleImage| ScheduleView {
        name: entry.name.clone(),
        schedule: entry.schedule.clone(),
        since: entry.since,
        next: entry.next,
        last: entry.last,
        last_message: entry.last.map(|last| tick_id(&entry.name, last)),
        fired: entry.fired,
        missed: entry.missed,
        overlapped: entry.overlapped,
        problem: inner.held.get(&entry.name).cloned(),
    };
    inner.state.schedules.each().map(view).collect()
}
