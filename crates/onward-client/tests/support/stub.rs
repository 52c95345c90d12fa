//! An engine that does just enough to see what client and host make of it.

use super::queue;
use bytes::Bytes;
use futures::StreamExt;
use onward_core::*;
use onward_env::SystemEnv;
use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
    time::Duration,
};
use tokio::sync::watch;

/// One queue in memory. Commits to the queue `never` are never answered, those to `poison` fail as on a dead disk.
#[derive(Debug)]
pub struct Stub {
    state: watch::Sender<State>,
    pub health: Mutex<Health>,
}

#[derive(Debug, Default)]
pub struct State {
    pub waiting: VecDeque<Message>,
    pub accepted: HashMap<MessageId, Accepted>,
    pub leased: HashMap<Bytes, Delivery>,
    pub holders: HashMap<Bytes, Holder>,
    pub ended: Vec<(ProcessId, bool)>,
    pub dropped_calls: usize,
    pub prepared: usize,
    next: u64,
}

impl Default for Stub {
    fn default() -> Self {
        let health =
            Health { readable: true, writable: true, durability: Durability::Memory, problems: vec![] };
        Self { state: watch::Sender::new(State::default()), health: Mutex::new(health) }
    }
}

impl Stub {
    pub fn see<T>(&self, what: impl FnOnce(&State) -> T) -> T {
        what(&self.state.borrow())
    }

    pub async fn until(&self, holds: impl FnMut(&State) -> bool) {
        self.state.subscribe().wait_for(holds).await.map(drop).unwrap();
    }

    fn one(state: &mut State, op: Op) -> Result<Receipt> {
        match op {
            Op::Enqueue { message, .. } => {
                if let Some(first) = state.accepted.get(&message.id) {
                    return Ok(Receipt::Accepted(Accepted { duplicate: true, ..first.clone() }));
                }
                let accepted = Accepted {
                    id: message.id.clone(),
                    duplicate: false,
                    declared: false,
                    position: None,
                    durability: Durability::Memory,
                };
                state.accepted.insert(message.id.clone(), accepted.clone());
                state.waiting.push_back(*message);
                Ok(Receipt::Accepted(accepted))
            }
            Op::Settle { token, .. } => {
                state.holders.remove(&token.handle);
                state
                    .leased
                    .remove(&token.handle)
                    .map(|_| Receipt::Done)
                    .ok_or_else(|| Error::lease_lost("stale"))
            }
            Op::EndProcess { process, died } => {
                let of =
                    |(handle, holder): (&Bytes, &Holder)| (holder.process == process).then(|| handle.clone());
                let handles: Vec<Bytes> = state.holders.iter().filter_map(of).collect();
                for handle in &handles {
                    state.holders.remove(handle);
                    state.waiting.extend(state.leased.remove(handle).map(|delivery| delivery.message));
                }
                state.ended.push((process, died));
                Ok(Receipt::ProcessEnded { leases: handles.len() as u64 })
            }
            _ => Err(Error::unsupported("the stub does not do this")),
        }
    }

    fn apply(&self, ops: Prepared) -> Result<Vec<Receipt>> {
        let mut answer = Ok(Vec::new());
        self.state.send_modify(|state| {
            answer = ops.into_ops().into_iter().map(|op| Self::one(state, op)).collect()
        });
        answer
    }

    fn take(&self, request: &LeaseRequest) -> Vec<Delivery> {
        let mut taken = Vec::new();
        self.state.send_if_modified(|state| {
            while taken.len() < request.count_max as usize
                && let Some(message) = state.waiting.pop_front()
            {
                state.next += 1;
                let handle = Bytes::copy_from_slice(&state.next.to_be_bytes());
                let inlet = request.inlets[0].inlet.clone();
                let delivery = Delivery {
                    token: LeaseToken { inlet, id: message.id.clone(), handle: handle.clone() },
                    message,
                    attempt: 1,
                    lease: Duration::from_secs(30),
                    accepted_at: Timestamp::default(),
                    position: None,
                    progress: None,
                    causes: vec![],
                    suspect: false,
                    replay: 0,
                };
                state.holders.insert(handle.clone(), request.holder.clone());
                state.leased.insert(handle, delivery.clone());
                taken.push(delivery);
            }
            !taken.is_empty()
        });
        taken
    }

    fn leased_page(&self) -> Page<MessageView> {
        let view = |(handle, delivery): (&Bytes, &Delivery)| MessageView {
            inlet: delivery.token.inlet.clone(),
            message: delivery.message.clone(),
            original: None,
            state: MessageState::Leased,
            attempts: 1,
            crashes: 0,
            blocked: false,
            suspect: false,
            cancel_requested: false,
            accepted_at: Timestamp::default(),
            due: None,
            ended_at: None,
            lease: Some(LeaseView {
                id: delivery.message.id.clone(),
                holder: self.state.borrow().holders[handle].clone(),
                attempt: 1,
                since: Timestamp::default(),
                until: Timestamp::default(),
            }),
            causes: vec![],
            progress: None,
            result: None,
            position: None,
        };
        Page::whole(self.state.borrow().leased.iter().map(view).collect())
    }
}

/// Counts a call whose future was dropped.
struct Dropped<'a>(&'a Stub);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.dropped_calls += 1);
    }
}

fn refused<T>() -> Fut<'static, T> {
    Box::pin(async { Err(Error::unsupported("the stub does not do this")) })
}

impl Engine for Stub {
    fn capabilities(&self) -> Capabilities {
        let limits = EngineLimits {
            payload_bytes_max: 16 << 20,
            delay_max: None,
            lease_total_max: None,
            dedup_window_max: None,
            ops_max: 100,
        };
        Capabilities::all("stub", Durability::Memory, AtomicScope::Store, limits)
    }

    fn prepare(&self, ops: Vec<Op>) -> Result<Prepared> {
        self.state.send_modify(|state| state.prepared += 1);
        Prepared::check(ops, &self.capabilities(), SystemEnv.now())
    }

    fn declare(&self, _: TopologyChange) -> Fut<'_, TopologyDiff> {
        refused()
    }

    fn topology(&self) -> Fut<'_, Topology> {
        let inlets = vec![(queue(), InletConfig::default())];
        Box::pin(async { Ok(Topology { inlets, ..Topology::default() }) })
    }

    fn commit(&self, ops: Prepared) -> Fut<'_, Vec<Receipt>> {
        Box::pin(async move {
            if matches!(&ops.ops()[0], Op::Enqueue { queue, .. } if queue.local() == "never") {
                let _dropped = Dropped(self);
                self.apply(ops)?;
                std::future::pending::<()>().await;
                return Ok(vec![]);
            }
            if matches!(&ops.ops()[0], Op::Enqueue { queue, .. } if queue.local() == "poison") {
                return Err(Error::poisoned("the disk is gone"));
            }
            self.apply(ops)
        })
    }

    fn submit(&self, commits: Vec<Prepared>) -> Fut<'_, Vec<Result<Vec<Receipt>>>> {
        Box::pin(async move { Ok(commits.into_iter().map(|ops| self.apply(ops)).collect()) })
    }

    fn lease(&self, request: LeaseRequest) -> Fut<'_, Vec<Delivery>> {
        Box::pin(async move {
            let _dropped = (!request.wait.is_zero()).then(|| Dropped(self));
            if !request.wait.is_zero() {
                self.until(|state| !state.waiting.is_empty()).await;
            }
            Ok(self.take(&request))
        })
    }

    fn extend(&self, leases: Vec<LeaseToken>, by: Duration) -> Fut<'_, Vec<Result<Extended>>> {
        let extend = |token: LeaseToken| match self.see(|state| state.leased.contains_key(&token.handle)) {
            true => Ok(Extended { lease: by, cancel_requested: false }),
            false => Err(Error::lease_lost("stale")),
        };
        let answers = leases.into_iter().map(extend).collect();
        Box::pin(async { Ok(answers) })
    }

    fn find(&self, _: MessageQuery) -> Fut<'_, Page<MessageView>> {
        Box::pin(async { Ok(self.leased_page()) })
    }

    fn read_events(&self, _: EventRead) -> Fut<'_, EventSlice> {
        refused()
    }

    fn get_records(&self, _: RecordQuery) -> Fut<'_, Page<Record>> {
        refused()
    }

    fn stats(&self, _: Vec<Inlet>) -> Fut<'_, Vec<Stats>> {
        refused()
    }

    fn watch(&self, _: Interest) -> BoxStream<Hint> {
        let changes = self.state.subscribe();
        futures::stream::unfold(changes, |mut changes| async {
            changes.changed().await.ok()?;
            Some((Hint::Inlet(queue()), changes))
        })
        .boxed()
    }

    fn health(&self) -> Health {
        self.health.lock().unwrap().clone()
    }

    fn close(&self, _: Duration) -> Fut<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
