//! One queue of the model: accepting, settling, and what time brings about.

use super::{Bucket, Counts, Item, Model, Now, Place, Queue, item::identity};
use onward_core::{
    Accepted, Books, CauseKind, DeliveryGuarantee, Durability, Error, Failure, Inlet, InletConfig,
    LeaseToken, Message, MessageState, OrderPolicy, Outcome, Overflow, Position, Result, RetryDelay,
    SettledAs, StuckHead,
};
use std::time::Duration;

impl Queue {
    pub(crate) fn new(inlet: Inlet, config: InletConfig) -> Self {
        Self {
            inlet,
            config,
            paused: false,
            items: Vec::new(),
            settled: Vec::new(),
            rate: None::<Bucket>,
            key_rates: Vec::new(),
            served: Vec::new(),
            counts: Counts::default(),
            reader: None,
        }
    }

    pub(crate) fn tick(&mut self, now: Now) {
        for index in 0..self.items.len() {
            let ended = self.items[index].held().is_some_and(|held| held.until <= now.monotonic);
            if ended {
                self.lease_ended(index, now);
            }
            let item = &mut self.items[index];
            if item.is_here() && item.expires.is_some_and(|at| at <= now.monotonic) {
                item.gone(MessageState::Expired, now);
            }
        }
    }

    /// The lease ended without a word: a failed attempt.
    fn lease_ended(&mut self, index: usize, now: Now) {
        let causes_max = self.config.causes_max;
        let wait = self.policy_wait(index);
        let item = &mut self.items[index];
        item.silent(CauseKind::LeaseExpired, causes_max, now.wall);
        self.counts.failures += 1;
        self.again_or_dead(index, wait, now);
    }

    fn policy_wait(&self, index: usize) -> Duration {
        self.config.retry.delay(self.items[index].tries, 0)
    }

    /// After a failure: cancelled, dead when attempts are used up, or again after `wait`.
    fn again_or_dead(&mut self, index: usize, wait: Duration, now: Now) {
        if self.items[index].cancel {
            self.items[index].gone(MessageState::Cancelled, now);
        } else if self.items[index].tries >= self.config.retry.attempts_max {
            self.kill(index, now);
        } else {
            let item = &mut self.items[index];
            item.place = Place::Here;
            item.ready = now.monotonic + wait;
        }
    }

    /// Makes a dead letter of it; what stands behind it in its key follows where the queue says so.
    pub(crate) fn kill(&mut self, index: usize, now: Now) {
        self.items[index].place = Place::Dead(now.wall);
        let Some(key) = self.items[index].message.order_key.clone() else { return };
        if self.config.order != (OrderPolicy::ByKey { stuck_head: StuckHead::SetAside }) {
            return;
        }
        for index in 0..self.items.len() {
            if self.items[index].is_here() && self.items[index].message.order_key.as_ref() == Some(&key) {
                self.set_aside(index, now);
            }
        }
    }

    pub(crate) fn set_aside(&mut self, index: usize, now: Now) {
        let causes_max = self.config.causes_max;
        let failure = Failure::new(CauseKind::BehindDeadHead, "an earlier message of its key is dead");
        self.items[index].fail(failure, 0, "", causes_max, now.wall);
        self.items[index].place = Place::Dead(now.wall);
    }

    /// Accepts a message, or tells that it was accepted before.
    pub(crate) fn accept(&mut self, message: &Message, arrival: u64, now: Now) -> Result<Accepted> {
        if let Some(first) = self.remembered(message, now) {
            let (before, after) = (&self.items[first].message, message);
            let same =
                (&before.kind, before.version, &before.data) == (&after.kind, after.version, &after.data);
            if !same {
                return Err(Error::conflict(format!("{} was accepted with other content", before.id)));
            }
            self.counts.duplicates += 1;
            return Ok(self.receipt(first, true));
        }
        if let Some(first) = self.unique(message) {
            self.counts.duplicates += 1;
            return Ok(self.receipt(first, true));
        }
        self.check_room(message, now)?;
        self.items.push(Item::new(message.clone(), arrival, now));
        self.counts.accepted += 1;
        let index = self.items.len() - 1;
        if self.behind_dead(index) {
            self.set_aside(index, now);
        }
        Ok(self.receipt(index, false))
    }

    fn remembered(&self, message: &Message, now: Now) -> Option<usize> {
        let window = Duration::from_millis(self.config.dedup_window_ms);
        self.items.iter().position(|item| {
            let remembered = match item.place {
                Place::Gone { at, .. } => now.monotonic < at + window,
                _ => true,
            };
            remembered && item.identity() == identity(message)
        })
    }

    fn unique(&self, message: &Message) -> Option<usize> {
        let key = message.unique_key.as_ref()?;
        self.items.iter().position(|i| i.is_unfinished() && i.message.unique_key.as_ref() == Some(key))
    }

    pub(crate) fn behind_dead(&self, index: usize) -> bool {
        let key = self.items[index].message.order_key.as_ref();
        let dead = |i: &Item| i.is_dead() && i.message.order_key.as_ref() == key;
        key.is_some()
            && self.config.order == OrderPolicy::ByKey { stuck_head: StuckHead::SetAside }
            && self.items[..index].iter().any(dead)
    }

    fn check_room(&mut self, message: &Message, now: Now) -> Result<()> {
        let size = message.size() as u64;
        if size > self.config.payload_bytes_max {
            let what = format!("has {size} bytes, more than {}", self.config.payload_bytes_max);
            return Err(Error::invalid(what).at("`data`").mend("use a claim check"));
        }
        while self.unfinished() >= self.config.depth_max || self.bytes() + size > self.config.bytes_max {
            if self.config.overflow != Overflow::ShedLowest || !self.shed_below(message, now) {
                return Err(Error::full(format!("{} is full", self.inlet)));
            }
        }
        Ok(())
    }

    /// Drops the oldest message of the lowest priority under this one's.
    fn shed_below(&mut self, message: &Message, now: Now) -> bool {
        let lower = |i: &&mut Item| i.is_here() && i.message.priority < message.priority;
        let lowest = self.items.iter_mut().filter(lower).min_by_key(|i| (i.message.priority, i.arrival));
        let Some(item) = lowest else { return false };
        item.gone(MessageState::Cancelled, now);
        item.redriven = false;
        self.counts.shed += 1;
        true
    }

    fn receipt(&self, index: usize, duplicate: bool) -> Accepted {
        let item = &self.items[index];
        Accepted {
            id: item.message.id.clone(),
            duplicate,
            declared: false,
            position: Some(Position(item.arrival)),
            durability: Durability::OsBuffer,
        }
    }

    pub(crate) fn held_by(&mut self, token: &LeaseToken) -> Result<usize> {
        let found = self.items.iter().position(|i| i.held().is_some_and(|h| h.token == *token));
        found.ok_or_else(|| Error::lease_lost(format!("the lease of {} ended", token.id)))
    }

    pub(crate) fn settle(&mut self, token: &LeaseToken, outcome: &Outcome, now: Now) -> Result<SettledAs> {
        if let Some((_, first, answer)) = self.settled.iter().find(|(t, ..)| t == token) {
            return match first == outcome {
                true => Ok(SettledAs { already: true, ..answer.clone() }),
                false => Err(Error::conflict(format!("the lease of {} was settled otherwise", token.id))),
            };
        }
        if self.config.guarantee == DeliveryGuarantee::AtMostOnce {
            self.counts.lost += u64::from(!matches!(outcome, Outcome::Ack { .. }));
            return Ok(SettledAs { state: MessageState::Done, due: None, already: false });
        }
        let index = self.held_by(token)?;
        self.end_attempt(index, outcome, now);
        let item = &self.items[index];
        let state = item.state(now);
        let due = (state == MessageState::Delayed).then(|| now.stamp(item.ready));
        let answer = SettledAs { state, due, already: false };
        self.settled.push((token.clone(), outcome.clone(), answer.clone()));
        Ok(answer)
    }

    fn end_attempt(&mut self, index: usize, outcome: &Outcome, now: Now) {
        let causes_max = self.config.causes_max;
        let wait = match outcome {
            Outcome::Retry { delay: RetryDelay::After(asked), .. } => self.config.retry.at_least_min(*asked),
            _ => self.policy_wait(index),
        };
        let item = &mut self.items[index];
        let worker = item.held().map(|h| h.holder.worker.clone()).unwrap_or_default();
        let attempt = item.attempts;
        match outcome {
            Outcome::Ack { result } => item.done(result.clone(), now),
            Outcome::Release { .. } if item.cancel => item.gone(MessageState::Cancelled, now),
            Outcome::Release { delay } => item.put_back(*delay, now),
            Outcome::Retry { failure, .. } => {
                item.fail(failure.clone(), attempt, &worker, causes_max, now.wall);
                self.counts.failures += 1;
                self.again_or_dead(index, wait, now);
            }
            Outcome::Reject { failure } => {
                item.fail(failure.clone(), attempt, &worker, causes_max, now.wall);
                self.counts.failures += 1;
                self.kill(index, now);
            }
        }
    }

    pub(crate) fn unfinished(&self) -> u64 {
        self.items.iter().filter(|i| i.is_unfinished()).count() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.items.iter().filter(|i| i.is_unfinished()).map(|i| i.message.size() as u64).sum()
    }

    pub(crate) fn dead(&self) -> u64 {
        self.items.iter().filter(|i| i.is_dead()).count() as u64
    }

    pub(crate) fn books(&self, now: Now) -> Books {
        let of = |state| self.items.iter().filter(|i| i.state(now) == state).count() as u64;
        let removed = self.counts.purged + self.counts.shed;
        Books {
            accepted: self.counts.accepted,
            done: of(MessageState::Done),
            dead: of(MessageState::Dead),
            waiting: of(MessageState::Waiting),
            leased: of(MessageState::Leased),
            delayed: of(MessageState::Delayed),
            expired: of(MessageState::Expired),
            cancelled: of(MessageState::Cancelled) - removed,
            purged: self.counts.purged,
            shed: self.counts.shed,
        }
    }
}

impl Model {
    pub(crate) fn enqueue(&mut self, inlet: &Inlet, message: &Message, now: Now) -> Result<Accepted> {
        let declared = self.queue(inlet).is_err();
        if declared {
            self.queues.push(Queue::new(inlet.clone(), InletConfig::default()));
        }
        let arrival = self.next();
        let accepted = self.queue(inlet)?.accept(message, arrival, now)?;
        Ok(Accepted { declared, ..accepted })
    }
}
