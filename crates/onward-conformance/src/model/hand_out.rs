//! Handing out, extending, and the death of a process, as the model sees them.

use super::{Bucket, Held, Item, Model, Now, Place, Queue};
use onward_core::{
    CauseKind, Delivery, DeliveryGuarantee, Error, Extended, LeaseRequest, LeaseToken, OrderPolicy,
    ProcessId, RateLimit, Result,
};
use std::time::Duration;

impl Model {
    pub(crate) fn lease(&mut self, request: &LeaseRequest, now: Now) -> Result<Vec<Delivery>> {
        for weighted in &request.inlets {
            self.queue(&weighted.inlet)?;
        }
        let repeat = self.answered_before(request, now);
        if !repeat.is_empty() {
            return Ok(repeat);
        }
        let (mut deliveries, mut bytes) = (Vec::new(), 0u64);
        let turns: Vec<_> =
            request.inlets.iter().flat_map(|w| vec![&w.inlet; w.weight.max(1) as usize]).collect();
        let mut idle = 0;
        while deliveries.len() < request.count_max as usize && idle < turns.len() {
            let inlet = turns[self.turn % turns.len()].clone();
            self.turn += 1;
            if self.holds_suspect(&request.holder.process) {
                break;
            }
            let alone = deliveries.is_empty() && !self.holds_any(&request.holder.process);
            let queue = self.queue(&inlet)?;
            let Some(index) = queue.pick(request, alone, now) else {
                idle += 1;
                continue;
            };
            let size = queue.items[index].message.data.as_bytes().len() as u64;
            if !deliveries.is_empty() && bytes + size > request.bytes_max {
                break;
            }
            (bytes, idle) = (bytes + size, 0);
            deliveries.push(self.hand_out(&inlet, index, request, now)?);
        }
        Ok(deliveries)
    }

    fn answered_before(&self, request: &LeaseRequest, now: Now) -> Vec<Delivery> {
        let items = self.queues.iter().flat_map(|q| &q.items);
        let mine = items.filter(|i| i.held().is_some_and(|h| h.request == request.request_id));
        mine.filter_map(|item| item.delivery(now)).collect()
    }

    fn held(&self, process: &ProcessId) -> impl Iterator<Item = &Item> {
        let items = self.queues.iter().flat_map(|q| &q.items);
        items.filter(move |i| i.held().is_some_and(|h| h.holder.process == *process))
    }

    fn holds_any(&self, process: &ProcessId) -> bool {
        self.held(process).next().is_some()
    }

    fn holds_suspect(&self, process: &ProcessId) -> bool {
        self.held(process).any(|i| i.suspect)
    }

    /// Hands out the item that was picked.
    pub(crate) fn hand_out(
        &mut self,
        inlet: &onward_core::Inlet,
        index: usize,
        request: &LeaseRequest,
        now: Now,
    ) -> Result<Delivery> {
        let serial = self.next();
        let handle = format!("{}:{serial}", self.epoch).into_bytes();
        let queue = self.queue(inlet)?;
        queue.spend(index, now);
        let lease = request.lease.unwrap_or(Duration::from_millis(queue.config.lease_ms));
        let at_most_once = queue.config.guarantee == DeliveryGuarantee::AtMostOnce;
        let item = &mut queue.items[index];
        item.attempts += 1;
        item.tries += 1;
        let token = LeaseToken { inlet: inlet.clone(), id: item.message.id.clone(), handle: handle.into() };
        item.place = Place::Leased(Held {
            token,
            holder: request.holder.clone(),
            request: request.request_id,
            since: now.monotonic,
            until: now.monotonic + lease,
        });
        let delivery = item.delivery(now).ok_or_else(|| Error::internal("it was leased just now"))?;
        if at_most_once {
            item.done(None, now);
        }
        Ok(delivery)
    }

    /// Ends every lease of a process; what was alone in one that died crashed it.
    pub(crate) fn end_process(&mut self, process: &ProcessId, died: bool, now: Now) -> u64 {
        let alone = self.held(process).count() == 1;
        let mut ended = 0;
        for queue in &mut self.queues {
            for index in 0..queue.items.len() {
                if queue.items[index].held().is_some_and(|h| h.holder.process == *process) {
                    queue.process_ended(index, died, alone, now);
                    ended += 1;
                }
            }
        }
        ended
    }

    pub(crate) fn extend(&mut self, token: &LeaseToken, by: Duration, now: Now) -> Result<Extended> {
        let queue = self.queue(&token.inlet)?;
        let index = queue.held_by(token)?;
        let total = queue.config.lease_total_max_ms.map(Duration::from_millis);
        let item = &mut queue.items[index];
        let cancel_requested = item.cancel;
        if let Place::Leased(held) = &mut item.place {
            if total.is_some_and(|most| now.monotonic + by > held.since + most) {
                return Err(Error::invalid("beyond the queue's `lease_total_max_ms`"));
            }
            held.until = now.monotonic + by;
        }
        Ok(Extended { lease: by, cancel_requested })
    }
}

impl Queue {
    fn process_ended(&mut self, index: usize, died: bool, alone: bool, now: Now) {
        let (causes_max, crashes_max) = (self.config.causes_max, self.config.crashes_max);
        let item = &mut self.items[index];
        if died && alone {
            item.crashes += 1;
            item.silent(CauseKind::Crashed, causes_max, now.wall);
        }
        let worn_out = item.crashes >= crashes_max;
        item.suspect |= died;
        item.put_back(Duration::ZERO, now);
        if died && alone {
            // A death alone is an attempt; the crash policy decides by its own count.
            item.attempts += 1;
            item.ready = now.monotonic + self.config.retry.delay(item.attempts, 0);
        }
        if worn_out {
            self.kill(index, now);
        }
    }

    /// The item that comes next: the highest rank, then the key served longest ago, then arrival.
    pub(crate) fn pick(&self, request: &LeaseRequest, alone: bool, now: Now) -> Option<usize> {
        let candidates = (0..self.items.len()).filter(|i| self.may_hand_out(*i, request, alone, now));
        candidates.min_by_key(|index| {
            let item = &self.items[*index];
            let turn = item.message.fairness_key.as_ref();
            let turn = turn.and_then(|k| self.served.iter().rposition(|s| s == k.as_str()));
            (u64::MAX - item.rank(self.config.ageing_ms, now), turn.map_or(0, |t| t + 1), item.arrival)
        })
    }

    /// Whether this item may be handed out now to this request.
    pub(crate) fn may_hand_out(&self, index: usize, request: &LeaseRequest, alone: bool, now: Now) -> bool {
        let item = &self.items[index];
        let accepted = request.accepts.is_empty() || request.accepts.contains(&item.message.kind);
        item.is_ready(now)
            && accepted
            && (alone || !item.suspect)
            && self.is_open(now)
            && !self.is_blocked(index)
            && self.key_has_slot(item)
            && self.key_has_rate(item, now)
    }

    pub(crate) fn is_open(&self, now: Now) -> bool {
        let live = self.items.iter().filter(|i| i.held().is_some()).count();
        !self.paused
            && self.dead() < self.config.dead_max
            && self.config.concurrency_max.is_none_or(|most| live < most as usize)
            && self.config.rate.is_none_or(|rate| left(&rate, self.rate, now) >= 1.0)
    }

    /// Behind an unfinished message of its key, or behind a dead one where the key waits for it.
    pub(crate) fn is_blocked(&self, index: usize) -> bool {
        let Some(key) = self.items[index].message.order_key.as_ref() else { return false };
        if self.config.order == OrderPolicy::Unordered {
            return false;
        }
        let mine = self.items[index].arrival;
        self.items.iter().any(|other| {
            let earlier = other.arrival < mine && (other.is_unfinished() || other.is_dead());
            other.message.order_key.as_ref() == Some(key)
                && (earlier || other.arrival != mine && other.held().is_some())
        })
    }

    fn key_has_slot(&self, item: &Item) -> bool {
        let (Some(most), Some(key)) = (self.config.concurrency_per_key_max, &item.message.fairness_key)
        else {
            return true;
        };
        let live = |i: &&Item| i.held().is_some() && i.message.fairness_key.as_ref() == Some(key);
        self.items.iter().filter(live).count() < most as usize
    }

    fn key_has_rate(&self, item: &Item, now: Now) -> bool {
        let (Some(rate), Some(key)) = (&self.config.rate_per_key, &item.message.fairness_key) else {
            return true;
        };
        let bucket = self.key_rates.iter().find(|(k, _)| k == key.as_str()).map(|(_, bucket)| *bucket);
        left(rate, bucket, now) >= 1.0
    }

    /// Counts a hand-out against rates and turns.
    fn spend(&mut self, index: usize, now: Now) {
        self.counts.deliveries += 1;
        if let Some(rate) = self.config.rate {
            self.rate = Some(Bucket { tokens: left(&rate, self.rate, now) - 1.0, at: now.monotonic });
        }
        let Some(key) = self.items[index].message.fairness_key.as_ref().map(|k| k.as_str().to_owned()) else {
            return;
        };
        self.served.retain(|k| *k != key);
        self.served.push(key.clone());
        if let Some(rate) = self.config.rate_per_key {
            let before = self.key_rates.iter().find(|(k, _)| *k == key).map(|(_, bucket)| *bucket);
            self.key_rates.retain(|(k, _)| *k != key);
            self.key_rates.push((key, Bucket { tokens: left(&rate, before, now) - 1.0, at: now.monotonic }));
        }
    }
}

/// What a bucket holds now; one never used is full.
fn left(rate: &RateLimit, bucket: Option<Bucket>, now: Now) -> f64 {
    let Some(bucket) = bucket else { return rate.burst as f64 };
    let passed = now.monotonic.saturating_sub(bucket.at).as_secs_f64() * 1_000.0;
    (bucket.tokens + passed * rate.count as f64 / rate.per_ms as f64).min(rate.burst as f64)
}

impl Item {
    pub(crate) fn delivery(&self, now: Now) -> Option<Delivery> {
        let held = self.held()?;
        Some(Delivery {
            token: held.token.clone(),
            message: self.message.clone(),
            attempt: self.attempts,
            lease: held.until.saturating_sub(now.monotonic),
            accepted_at: self.accepted_at,
            position: Some(onward_core::Position(self.arrival)),
            progress: self.progress.clone(),
            causes: self.causes.clone(),
            suspect: self.suspect,
            replay: self.replay,
        })
    }
}
