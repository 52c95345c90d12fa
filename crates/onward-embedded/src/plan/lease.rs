//! Choosing what is handed out to whom, and extending.

use super::{
    Context, Draft,
    limits::{KeyLimits, Taken, limits_keys, turn_of},
    suspect::Suspect,
};
use crate::{
    At, Fact, Given, InletId, State,
    state::{Ask, LeaseMark, Queue, Turn},
    token,
};
use onward_core::{Cause, Inlet, LeaseRequest, LeaseToken, MessageId, Payload, Position, Timestamp};
use std::{sync::Arc, time::Duration};

/// One message that is handed out, with all that a delivery needs but the body.
#[derive(Debug, Clone)]
pub(crate) struct Picked {
    pub(crate) inlet: Inlet,
    pub(crate) given: Given,
    pub(crate) slot: u32,
    /// The position that had made it ready.
    pub(crate) ready_at: u64,
    pub(crate) body: u64,
    pub(crate) term: Duration,
    pub(crate) deadline: Timestamp,
    pub(crate) accepted_at: Timestamp,
    pub(crate) progress: Option<Payload>,
    pub(crate) causes: Vec<Arc<Cause>>,
    pub(crate) suspect: bool,
    pub(crate) replay: u32,
    pub(crate) mark: LeaseMark,
}

impl Picked {
    pub(crate) fn token(&self, id: MessageId) -> LeaseToken {
        token::seal(self.inlet.clone(), id, self.mark)
    }

    pub(crate) fn position(&self) -> Position {
        Position(self.given.at.message.seq)
    }
}

/// What a request gets now.
#[derive(Debug, Default)]
pub(crate) struct LeasePlan {
    pub(crate) picked: Vec<Picked>,
    /// When asking again may help, though nothing else happens (a rate).
    pub(crate) retry_at: Option<Timestamp>,
    /// A limit holds some keys: what is further on may be of others.
    pub(crate) holds_keys: bool,
    /// It got nothing because of what its own process holds.
    pub(crate) held_back: bool,
}

/// One request while it is being answered.
pub(super) struct Taking<'a> {
    pub(super) request: &'a LeaseRequest,
    pub(super) plan: LeasePlan,
    bytes: u64,
    pub(super) taken: Taken,
    pub(super) process_leases: u64,
    pub(super) process_suspects: u64,
    /// Where nonces come from: one random number per request, spread by mixing.
    seed: u64,
    full: bool,
}

/// Takes messages out of the ready structures for a request. When nothing comes of it, [`put_back`] undoes it.
pub(crate) fn plan(
    state: &mut State,
    draft: &mut Draft,
    request: &LeaseRequest,
    ctx: &mut Context<'_>,
) -> LeasePlan {
    let process = state.processes.get(&request.holder.process).copied().unwrap_or_default();
    let mut taking = Taking {
        request,
        plan: LeasePlan::default(),
        bytes: 0,
        taken: Taken::default(),
        process_leases: process.leases,
        process_suspects: process.suspects,
        seed: (ctx.random)(),
        full: false,
    };
    let mut open: Vec<(InletId, u64)> = Vec::with_capacity(request.inlets.len());
    for weighted in &request.inlets {
        if let Some(queue) = state.find(&weighted.inlet) {
            open.push((queue.id, u64::from(weighted.weight.max(1))));
        }
    }
    let epoch = state.epoch();
    while !taking.full && taking.plan.picked.len() < request.count_max as usize && !open.is_empty() {
        let at = choose(&open, ctx);
        let Some(queue) = state.queue_mut(open[at].0) else { break };
        if !taking.one(queue, epoch, ctx) {
            open.swap_remove(at);
        }
    }
    let plan = taking.plan;
    if !plan.picked.is_empty() {
        draft.drain(Fact::Leased {
            request: request.request_id,
            holder: request.holder.clone(),
            terms_us: plan.picked.iter().map(|picked| picked.term.as_micros() as u64).collect(),
            given: plan.picked.iter().map(|picked| picked.given).collect(),
        });
    }
    plan
}

/// One of several inlets, by chance in proportion to their weights.
fn choose(open: &[(InletId, u64)], ctx: &mut Context<'_>) -> usize {
    if open.len() == 1 {
        return 0;
    }
    let total: u64 = open.iter().map(|(_, weight)| weight).sum();
    let mut ticket = ((u128::from((ctx.random)()) * u128::from(total)) >> 64) as u64;
    for (at, (_, weight)) in open.iter().enumerate() {
        if ticket < *weight {
            return at;
        }
        ticket -= weight;
    }
    0
}

impl Taking<'_> {
    /// Takes one message from an inlet; `false` when it has none for this request.
    fn one(&mut self, queue: &mut Queue, epoch: u32, ctx: &mut Context<'_>) -> bool {
        let kinds = self.kinds(queue);
        if kinds.as_ref().is_some_and(Vec::is_empty) || !self.may_hand_out(queue, ctx) {
            return false;
        }
        match self.suspect(queue, kinds.as_deref(), ctx) {
            Suspect::Taken(slot, ready_at) => {
                self.add(queue, slot, ready_at, epoch, true, ctx);
                self.full = true;
                return true;
            }
            Suspect::HeldBack => {
                self.plan.held_back |= self.plan.picked.is_empty();
                return false;
            }
            Suspect::None => {}
        }
        let Some((slot, ready_at)) = self.take(queue, kinds.as_deref(), ctx) else { return false };
        let size = u64::from(queue.slab.get(slot).size);
        if self.bytes + size > self.request.bytes_max && !self.plan.picked.is_empty() {
            queue.return_taken(slot, ready_at);
            self.full = true;
            return true;
        }
        self.add(queue, slot, ready_at, epoch, false, ctx);
        true
    }

    /// The numbers of the accepted types; `None` for all.
    fn kinds(&self, queue: &Queue) -> Option<Vec<u32>> {
        let accepts = &self.request.accepts;
        (!accepts.is_empty()).then(|| accepts.iter().filter_map(|kind| queue.kinds.number(kind)).collect())
    }

    fn nonce(&mut self) -> u32 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 32)) as u32
    }

    fn may_hand_out(&mut self, queue: &Queue, ctx: &Context<'_>) -> bool {
        if queue.paused || queue.stopped_dead_full() {
            return false;
        }
        match turn_of(queue, &self.taken, ctx) {
            Turn::Now => true,
            Turn::WhenFreed => false,
            Turn::At(free_at) => {
                self.wait_for(free_at);
                false
            }
        }
    }

    fn wait_for(&mut self, at: Timestamp) {
        self.plan.retry_at = Some(self.plan.retry_at.map_or(at, |before| before.min(at)));
    }

    fn take(&mut self, queue: &mut Queue, kinds: Option<&[u32]>, ctx: &Context<'_>) -> Option<(u32, u64)> {
        let mine = self.taken.of(queue);
        let (config, leases, rates) = (&queue.config, &queue.leases, &queue.rates);
        let limits = KeyLimits { now: ctx.now, config, leases, rates, mine };
        let turn = |key: &_| limits.turn(key);
        let ageing_ms = config.ageing_ms;
        let ask = Ask { now: ctx.now, ageing_ms, visible: ctx.visible, kinds, turn: &turn };
        let taken = queue.ready.take(&mut queue.slab, &ask);
        if taken.is_none() && limits_keys(&queue.config) {
            self.plan.holds_keys |= queue.ready.holds_keys();
            queue.ready.next_wake().into_iter().for_each(|at| self.wait_for(at));
        }
        taken
    }

    fn add(
        &mut self,
        queue: &mut Queue,
        slot: u32,
        ready_at: u64,
        epoch: u32,
        suspect: bool,
        ctx: &mut Context<'_>,
    ) {
        let entry = queue.slab.get(slot);
        let side = queue.side(slot);
        let attempt = side.map_or(0, |side| side.attempts).saturating_add(1);
        let nonce = self.nonce();
        let at = At { inlet: queue.id, message: queue.reference(slot) };
        let asked = self.request.lease.unwrap_or(Duration::from_millis(queue.config.lease_ms));
        let most = queue.config.lease_total_max_ms.map_or(Duration::MAX, Duration::from_millis);
        self.bytes += u64::from(entry.size);
        self.taken.add(queue, side.and_then(|side| side.fairness_key.clone()));
        self.plan.picked.push(Picked {
            inlet: queue.name.clone(),
            given: Given { at, attempt, nonce },
            slot,
            ready_at,
            body: queue.body(slot),
            term: asked.min(most),
            deadline: ctx.now.plus(asked.min(most)),
            accepted_at: entry.accepted_at,
            progress: side.and_then(|side| side.progress.clone()),
            causes: side.map_or(Vec::new(), |side| side.causes.clone()),
            suspect,
            replay: side.map_or(0, |side| side.replay),
            mark: LeaseMark { seq: at.message.seq, epoch, attempt, nonce },
        });
    }
}

/// Undoes the taking of a plan that came to nothing.
pub(crate) fn put_back(state: &mut State, plan: &LeasePlan) {
    for picked in &plan.picked {
        if let Some(queue) = state.queue_mut(picked.given.at.inlet) {
            queue.return_taken(picked.slot, picked.ready_at);
        }
    }
}
