//! One operation after the other; a commit is tried on a copy, which is kept only when all went well.

use super::{Model, Now, Queue};
use onward_core::{
    Error, FindBy, Guarded, Inlet, LeaseView, MessageQuery, MessageState, MessageView, Op, OrderPolicy, Page,
    Receipt, Result, Stats, Topology, TopologyChange, TopologyDiff,
};

impl Model {
    /// All of the operations or none.
    pub(crate) fn commit(&mut self, ops: &[Op], now: Now) -> Result<Vec<Receipt>> {
        let mut copy = self.clone();
        let receipts = ops.iter().map(|op| copy.apply(op, now)).collect::<Result<Vec<_>>>()?;
        *self = copy;
        Ok(receipts)
    }

    fn apply(&mut self, op: &Op, now: Now) -> Result<Receipt> {
        Ok(match op {
            Op::Enqueue { queue, message } => {
                Receipt::Accepted(self.enqueue(&Inlet::Queue(queue.clone()), message, now)?)
            }
            Op::Publish { topic, message } => Receipt::Accepted(self.publish(topic, message, now)?),
            Op::Seek { inlet, to, mode } => Receipt::Sought(self.seek(inlet, *to, *mode, now)?),
            Op::Settle { token, outcome } => {
                Receipt::Settled(self.queue(&token.inlet)?.settle(token, outcome, now)?)
            }
            Op::Cancel { inlet, id } => Receipt::Cancelled(self.cancel(inlet, id, now)?),
            Op::Reschedule { inlet, id, due } => {
                self.reschedule(inlet, id, *due, now)?;
                Receipt::Done
            }
            Op::Progress { token, detail } => {
                let queue = self.queue(&token.inlet)?;
                let index = queue.held_by(token)?;
                queue.items[index].progress = Some(detail.clone());
                Receipt::Done
            }
            Op::EndProcess { process, died } => {
                Receipt::ProcessEnded { leases: self.end_process(process, *died, now) }
            }
            Op::PutSchedule { name, schedule } => {
                self.put_schedule(name, schedule.as_deref(), now)?;
                Receipt::Done
            }
            Op::Pause { inlet } => self.set_paused(inlet, true)?,
            Op::Resume { inlet } => self.set_paused(inlet, false)?,
            Op::EditDead { inlet, id, edit } => Receipt::Edited { edition: self.edit(inlet, id, edit)? },
            Op::Redrive { inlet, selection, spacing, bulk, dry_run } => {
                Receipt::Bulk(self.redrive(inlet, selection, *spacing, *bulk, *dry_run, now)?)
            }
            Op::Purge { inlet, what, selection, bulk, dry_run } => {
                Receipt::Bulk(self.purge(inlet, *what, selection, *bulk, *dry_run, now)?)
            }
            other => self.apply_record(other, now)?,
        })
    }

    fn apply_record(&mut self, op: &Op, now: Now) -> Result<Receipt> {
        match op {
            Op::PutRecord { key, value, expect, ttl } => {
                self.expect(key, *expect)?;
                Ok(Receipt::Recorded { revision: self.put(key, Some(value.clone()), *ttl, now) })
            }
            Op::DeleteRecord { key, expect } => {
                self.expect(key, *expect)?;
                self.put(key, None, None, now);
                Ok(Receipt::Done)
            }
            Op::Guard(Guarded::Record { key, expect }) => self.expect(key, *expect).map(|()| Receipt::Done),
            Op::Guard(Guarded::Lease { token }) => {
                self.queue(&token.inlet)?.held_by(token).map(|_| Receipt::Done)
            }
            Op::Append { stream, events, expected, condition } => {
                self.append(stream, events, *expected, condition.as_ref(), now)
            }
            Op::Guard(Guarded::Stream { stream, expected }) => self.expect_stream(stream, *expected),
            Op::Truncate { stream, before } => self.truncate(stream, *before),
            other => Err(Error::unsupported(format!("the model has no {}", other.name()))),
        }
    }

    fn set_paused(&mut self, inlet: &Inlet, paused: bool) -> Result<Receipt> {
        self.queue(inlet)?.paused = paused;
        Ok(Receipt::Done)
    }

    pub(crate) fn declare(&mut self, change: TopologyChange, now: Now) -> Result<TopologyDiff> {
        match change {
            TopologyChange::Queue { name, config, update } => {
                self.declare_queue(name.into(), *config, update)
            }
            TopologyChange::DropInlet { inlet, only_if_empty } => {
                let queue = self.queue(&inlet)?;
                if only_if_empty && queue.unfinished() + queue.dead() > 0 {
                    return Err(Error::conflict(format!("{inlet} is not empty")));
                }
                self.queues.retain(|q| q.inlet != inlet);
                Ok(TopologyDiff { dropped: true, ..TopologyDiff::default() })
            }
            TopologyChange::Topic { name, config, update } => self.declare_topic(name, config, update),
            TopologyChange::Subscription { topic, name, config, filter, start, update } => {
                let inlet = Inlet::subscription(topic, &name)?;
                self.subscribe(inlet, *config, filter, start, update, now)
            }
            TopologyChange::DropTopic { name } => self.drop_topic(&name),
        }
    }

    pub(crate) fn declare_queue(
        &mut self,
        inlet: Inlet,
        config: onward_core::InletConfig,
        update: bool,
    ) -> Result<TopologyDiff> {
        config.check()?;
        let Ok(queue) = self.queue(&inlet) else {
            self.queues.push(Queue::new(inlet, config));
            return Ok(TopologyDiff { created: true, ..TopologyDiff::default() });
        };
        if queue.config == config {
            return Ok(TopologyDiff::default());
        }
        if !update {
            return Err(Error::conflict(format!("{inlet} exists with other content")).mend("set `update`"));
        }
        queue.config = config;
        Ok(TopologyDiff { changed: vec!["config".into()], ..TopologyDiff::default() })
    }

    pub(crate) fn topology(&self) -> Topology {
        let filter = |q: &Queue| {
            let filter = &q.reader.as_ref()?.filter;
            (!filter.is_all()).then(|| (q.inlet.clone(), filter.clone()))
        };
        Topology {
            filters: self.queues.iter().filter_map(filter).collect(),
            topics: self.topics.iter().map(|t| (t.name.clone(), t.config.clone())).collect(),
            kept: self.topics.iter().map(|t| t.keeps(&self.queues)).collect(),
            inlets: self.queues.iter().map(|q| (q.inlet.clone(), q.config.clone())).collect(),
            paused: self.queues.iter().filter(|q| q.paused).map(|q| q.inlet.clone()).collect(),
            schedules: self.schedule_views(),
        }
    }

    pub(crate) fn find(&mut self, query: &MessageQuery, now: Now) -> Result<Page<MessageView>> {
        let queue = self.queue(&query.inlet)?;
        let mut found: Vec<(u64, MessageView)> = Vec::new();
        for index in 0..queue.items.len() {
            let view = queue.view(index, now);
            let open =
                !matches!(view.state, MessageState::Done | MessageState::Expired | MessageState::Cancelled);
            let fits = match &query.by {
                FindBy::Id(id) => view.message.id == *id,
                FindBy::State(state) => view.state == *state,
                FindBy::Correlation(id) => open && view.message.correlation() == &**id,
                FindBy::OrderKey(key) => open && view.message.order_key.as_ref() == Some(key),
            };
            found.extend(fits.then(|| (queue.items[index].arrival, view)));
        }
        if matches!(query.by, FindBy::Id(_)) {
            found.reverse();
        }
        let after: u64 = query.after.as_ref().and_then(|c| c.0.parse().ok()).unwrap_or(0);
        found.retain(|(arrival, _)| *arrival > after);
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found.last().filter(|_| more).map(|(arrival, _)| onward_core::Cursor(arrival.to_string()));
        Ok(Page { items: found.into_iter().map(|(_, view)| view).collect(), next })
    }

    pub(crate) fn stats(&self, inlets: &[Inlet], now: Now) -> Result<Vec<Stats>> {
        let all: Vec<Inlet> = self.queues.iter().map(|q| q.inlet.clone()).collect();
        let asked = if inlets.is_empty() { &all[..] } else { inlets };
        let of = |inlet: &Inlet| {
            let queue = self.queues.iter().find(|q| q.inlet == *inlet);
            queue.map(|q| q.stats(now)).ok_or_else(|| Error::not_found(format!("{inlet} does not exist")))
        };
        asked.iter().map(of).collect()
    }
}

impl Queue {
    fn lease_view(&self, index: usize, now: Now) -> Option<LeaseView> {
        let item = &self.items[index];
        item.held().map(|held| LeaseView {
            id: item.message.id.clone(),
            holder: held.holder.clone(),
            attempt: item.attempts,
            since: now.stamp(held.since),
            until: now.stamp(held.until),
        })
    }

    fn view(&self, index: usize, now: Now) -> MessageView {
        let item = &self.items[index];
        let kept = std::time::Duration::from_millis(self.config.result_retention_ms);
        let result = match &item.place {
            super::Place::Gone { at, result, .. } if now.monotonic < *at + kept => result.clone(),
            _ => None,
        };
        let ended_at = match &item.place {
            super::Place::Dead(at) => Some(*at),
            super::Place::Gone { at, .. } => Some(now.stamp(*at)),
            _ => None,
        };
        MessageView {
            inlet: self.inlet.clone(),
            message: item.message.clone(),
            original: item.original.clone(),
            state: item.state(now),
            attempts: item.attempts,
            crashes: item.crashes,
            blocked: item.is_here() && self.is_blocked(index),
            suspect: item.suspect,
            cancel_requested: item.cancel,
            accepted_at: item.accepted_at,
            due: (item.is_here() && item.ready > now.monotonic).then(|| now.stamp(item.ready)),
            ended_at,
            lease: self.lease_view(index, now),
            causes: item.causes.clone(),
            progress: item.progress.clone(),
            result,
            position: Some(onward_core::Position(item.arrival)),
        }
    }

    fn stats(&self, now: Now) -> Stats {
        let here = || self.items.iter().filter(|i| i.is_here());
        let blocked =
            (0..self.items.len()).filter(|i| self.items[*i].is_here() && self.is_blocked(*i)).count();
        let next_due = here().filter(|i| i.ready > now.monotonic).map(|i| i.ready).min();
        Stats {
            inlet: self.inlet.clone(),
            books: self.books(now),
            approximate: false,
            blocked: if self.config.order == OrderPolicy::Unordered { 0 } else { blocked as u64 },
            bytes: self.bytes(),
            oldest_waiting: here().filter(|i| i.is_ready(now)).map(|i| i.accepted_at).min(),
            next_due: next_due.map(|at| now.stamp(at)),
            deliveries: self.counts.deliveries,
            failures: self.counts.failures,
            lost_at_most_once: self.counts.lost,
            duplicates: self.counts.duplicates,
            dedup_entries: self.items.len() as u64,
            dedup_window_ms: self.config.dedup_window_ms,
            paused: self.paused,
            stopped_dead_full: self.dead() >= self.config.dead_max,
            leases: (0..self.items.len()).filter_map(|i| self.lease_view(i, now)).collect(),
            lag: self.lag(),
        }
    }
}
