//! Suspects of a process's death: handed out one at a time, alone in a process.

use super::{Context, lease::Taking, limits::KeyLimits};
use crate::state::{Ask, Queue};
use onward_core::{ProcessId, Timestamp};
use std::time::Duration;

/// So long a process is believed to ask again, while nothing new is given to it for a suspect's sake.
const DRAIN_PATIENCE: Duration = Duration::from_secs(30);

/// What there is for a request as to suspects.
pub(super) enum Suspect {
    None,
    Taken(u32, u64),
    HeldBack,
}

/// Whether this process is the one that gets nothing new until it is free for a waiting suspect.
fn drains(queue: &mut Queue, process: &ProcessId, now: Timestamp) -> bool {
    let until = now.plus(DRAIN_PATIENCE);
    match &queue.moment.drainer {
        Some((drainer, patience)) if drainer != process && *patience > now => false,
        _ => {
            queue.moment.drainer = Some((process.clone(), until));
            true
        }
    }
}

impl Taking<'_> {
    /// A suspect goes alone to a process that holds nothing; while one waits, one process drains for it.
    pub(super) fn suspect(&self, queue: &mut Queue, kinds: Option<&[u32]>, ctx: &Context<'_>) -> Suspect {
        if self.process_suspects > 0 {
            return Suspect::HeldBack;
        }
        let mine = self.taken.of(queue);
        let (config, leases, rates) = (&queue.config, &queue.leases, &queue.rates);
        let limits = KeyLimits { now: ctx.now, config, leases, rates, mine };
        let turn = |key: &_| limits.turn(key);
        let ask = Ask { now: ctx.now, ageing_ms: config.ageing_ms, visible: ctx.visible, kinds, turn: &turn };
        if !queue.ready.has_suspect(&queue.slab, &ask) {
            return Suspect::None;
        }
        let process = &self.request.holder.process;
        if self.process_leases == 0 && self.plan.picked.is_empty() {
            let taken = queue.ready.take_suspect(&mut queue.slab, &ask);
            return taken.map_or(Suspect::None, |(slot, ready_at)| {
                queue.moment.drainer = None;
                Suspect::Taken(slot, ready_at)
            });
        }
        if drains(queue, process, ctx.now) { Suspect::HeldBack } else { Suspect::None }
    }
}
