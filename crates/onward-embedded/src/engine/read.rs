//! Reading: messages, records, numbers, health. Never hands anything out.

use super::{
    Core,
    page::{cursor, limit, of_order_key, of_state, parse, smallest},
    schedules,
    view::{self, Glimpse},
};
use crate::{
    Store,
    state::{Queue, Status, Topic},
};
use onward_core::{
    Books, Cursor, FindBy, Inlet, MessageQuery, MessageView, PAGE_MAX, Page, Position, Record, RecordKey,
    RecordQuery, Result, Stats, TopicKeeps, Topology,
};
use std::sync::Arc;

/// Most bodies that one search by correlation reads; the page then ends early, with a cursor.
const SCAN_MAX: usize = 10_000;

impl<S: Store> Core<S> {
    pub(super) async fn topology(self: &Arc<Self>) -> Result<Topology> {
        let _running = self.enter()?;
        let (topology, end) = {
            let mut inner = self.inner.lock();
            self.catch_up(&mut inner);
            let inlets = inner.state.queues().map(|queue| (queue.name.clone(), (*queue.config).clone()));
            let paused = inner.state.queues().filter(|queue| queue.paused).map(|queue| queue.name.clone());
            let filters = inner.state.queues().filter_map(|queue| {
                let filter = &queue.reader.as_ref()?.filter;
                (!filter.is_all()).then(|| (queue.name.clone(), filter.clone()))
            });
            let mut topics: Vec<&Topic> = inner.state.topics().collect();
            topics.sort_by(|a, b| a.name.cmp(&b.name));
            let mut topology = Topology {
                inlets: inlets.collect(),
                filters: filters.collect(),
                topics: topics.iter().map(|topic| (topic.name.clone(), (*topic.config).clone())).collect(),
                paused: paused.collect(),
                schedules: schedules::views(&inner),
                kept: topics.iter().map(|topic| keeps(topic)).collect(),
            };
            topology.inlets.sort_by(|a, b| a.0.cmp(&b.0));
            topology.filters.sort_by(|a, b| a.0.cmp(&b.0));
            (topology, inner.end)
        };
        self.seen(end).await;
        Ok(topology)
    }

    pub(super) async fn find(self: &Arc<Self>, query: MessageQuery) -> Result<Page<MessageView>> {
        let _running = self.enter()?;
        let limit = limit(query.limit)?;
        self.look_ahead(&query.inlet)?;
        if let FindBy::Correlation(correlation) = &query.by {
            let correlation = correlation.clone();
            return self.find_by_correlation(&query, &correlation, limit).await;
        }
        let (glimpses, next, end) = {
            let mut inner = self.inner.lock();
            self.catch_up(&mut inner);
            let queue = inner.state.find(&query.inlet).ok_or_else(|| crate::plan::no_inlet(&query.inlet))?;
            let after = query.after.as_ref().map(parse).transpose()?;
            let mut found = match &query.by {
                FindBy::Id(id) => {
                    queue.slot_of_id(self.marker.id(id)).into_iter().map(|slot| (0, 0, slot)).collect()
                }
                FindBy::State(state) => of_state(queue, *state, after, limit),
                FindBy::OrderKey(key) => of_order_key(queue, key, after),
                FindBy::Correlation(_) => Vec::new(),
            };
            let more = found.len() > limit;
            found.truncate(limit);
            let next = found.last().filter(|_| more).map(|(first, second, _)| cursor(*first, *second));
            let glimpses = found.iter().map(|(_, _, slot)| view::glimpse(queue, *slot)).collect();
            (glimpses, next, inner.end)
        };
        self.seen(end).await;
        Ok(Page { items: self.show(glimpses)?, next })
    }

    /// The state does not know correlation ids: reads the bodies, so many at a time.
    async fn find_by_correlation(
        &self,
        query: &MessageQuery,
        correlation: &str,
        limit: usize,
    ) -> Result<Page<MessageView>> {
        let after = query.after.as_ref().map(parse).transpose()?;
        let (candidates, more, end): (Vec<Glimpse>, bool, u64) = {
            let inner = self.inner.lock();
            let queue = inner.state.find(&query.inlet).ok_or_else(|| crate::plan::no_inlet(&query.inlet))?;
            let unended = |slot: &u32| !matches!(queue.slab.get(*slot).status, Status::Kept | Status::Gone);
            let mut slots = smallest(queue, queue.slab.slots().filter(unended), after, SCAN_MAX);
            let more = slots.len() > SCAN_MAX;
            slots.truncate(SCAN_MAX);
            (slots.iter().map(|(_, _, slot)| view::glimpse(queue, *slot)).collect(), more, inner.end)
        };
        self.seen(end).await;
        let (mut items, mut last) = (Vec::new(), None);
        for glimpse in candidates {
            if items.len() == limit {
                return Ok(Page { items, next: last.map(|seq| cursor(seq, 0)) });
            }
            last = Some(glimpse.seq);
            let found = self.show(vec![glimpse])?;
            items.extend(found.into_iter().filter(|view| view.message.correlation() == correlation));
        }
        Ok(Page { items, next: last.filter(|_| more).map(|seq| cursor(seq, 0)) })
    }

    pub(super) async fn get_records(self: &Arc<Self>, query: RecordQuery) -> Result<Page<Record>> {
        let _running = self.enter()?;
        let (page, end) = {
            let inner = self.inner.lock();
            let (records, now) = (&inner.state.records, self.clock.now());
            let show = |key: &RecordKey, kept: &crate::state::Kept| Record {
                key: key.clone(),
                value: kept.value.clone(),
                revision: kept.revision,
                expires: kept.expires,
                written: kept.written,
                position: Some(Position(kept.revision)),
            };
            let page = match query {
                RecordQuery::Keys(keys) => {
                    limit(keys.len().max(1))?;
                    let found = keys.iter().filter_map(|key| Some(show(key, records.get(key, now)?)));
                    Page::whole(found.collect())
                }
                RecordQuery::Prefix { prefix, after, limit: most } => {
                    let most = limit(most)?;
                    let after = after.map(|cursor| RecordKey::try_from(cursor.0)).transpose()?;
                    let found = records.range(&prefix, after.as_ref(), now);
                    let mut items: Vec<Record> =
                        found.take(most + 1).map(|(key, kept)| show(key, kept)).collect();
                    let more = items.len() > most;
                    items.truncate(most);
                    let next = items.last().filter(|_| more).map(|last| Cursor(last.key.to_string()));
                    Page { items, next }
                }
            };
            (page, inner.end)
        };
        self.seen(end).await;
        Ok(page)
    }

    pub(super) async fn stats(self: &Arc<Self>, inlets: Vec<Inlet>) -> Result<Vec<Stats>> {
        let _running = self.enter()?;
        let (mut stats, leases, end) = {
            let mut inner = self.inner.lock();
            let now = self.clock.now();
            self.catch_up(&mut inner);
            let state = &inner.state;
            let queues: Vec<&Queue> = if inlets.is_empty() {
                let mut all: Vec<&Queue> = state.queues().collect();
                all.sort_by(|a, b| a.name.cmp(&b.name));
                all
            } else {
                let named =
                    inlets.iter().map(|inlet| state.find(inlet).ok_or_else(|| crate::plan::no_inlet(inlet)));
                named.collect::<Result<_>>()?
            };
            let stats: Vec<Stats> =
                queues.iter().map(|queue| stats_of(queue, state.topic_of(queue), now)).collect();
            let leases: Vec<Vec<Glimpse>> = queues.iter().map(|queue| leases_of(queue)).collect();
            (stats, leases, inner.end)
        };
        self.seen(end).await;
        for (stats, leases) in stats.iter_mut().zip(leases) {
            stats.leases = self.show(leases)?.into_iter().filter_map(|view| view.lease).collect();
        }
        Ok(stats)
    }
}

fn keeps(topic: &Topic) -> TopicKeeps {
    let shelf = &topic.shelf;
    let oldest = shelf.get(shelf.floor());
    let newest = shelf.head().checked_sub(1).and_then(|last| shelf.get(last));
    TopicKeeps {
        topic: topic.name.clone(),
        published: shelf.head(),
        messages: shelf.head() - shelf.floor(),
        bytes: topic.bytes,
        oldest: oldest.map(|entry| Position(entry.seq)),
        oldest_at: oldest.map(|entry| entry.accepted_at),
        newest: newest.map(|entry| Position(entry.seq)),
        subscriptions: topic.readers_count(),
    }
}

fn stats_of(queue: &Queue, topic: Option<&Topic>, now: onward_core::Timestamp) -> Stats {
    let missed = topic.map_or(0, |topic| queue.uncounted(topic));
    let oldest = queue.ready.oldest(&queue.slab).map(|slot| queue.slab.get(slot).accepted_at);
    let blocked = queue.chains.values().filter_map(|chain| chain.members.values().next());
    let oldest_blocked = || {
        let waiting = blocked.filter(|slot| queue.slab.get(**slot).status == Status::Waiting);
        waiting.map(|slot| queue.slab.get(*slot).accepted_at).min()
    };
    Stats {
        inlet: queue.name.clone(),
        books: Books {
            accepted: queue.books.accepted + missed,
            shed: queue.books.shed + missed,
            ..queue.books
        },
        approximate: false,
        blocked: queue.blocked(),
        bytes: queue.bytes,
        oldest_waiting: oldest.into_iter().chain(oldest_blocked()).min(),
        next_due: queue.due.first().map(|(at, _, _)| *at),
        deliveries: queue.counts.deliveries,
        failures: queue.counts.failures,
        lost_at_most_once: queue.counts.lost,
        duplicates: queue.moment.duplicates,
        dedup_entries: queue.finished.len(),
        dedup_window_ms: queue.finished.window(now, queue.dedup_window()).as_millis() as u64,
        paused: queue.paused,
        stopped_dead_full: queue.stopped_dead_full(),
        leases: Vec::new(),
        lag: topic.and_then(|topic| queue.lag(topic)),
    }
}

/// Live leases, oldest first.
fn leases_of(queue: &Queue) -> Vec<Glimpse> {
    let mut leases: Vec<_> =
        queue.leases.iter().map(|(seq, lease)| (lease.since, *seq, lease.slot)).collect();
    leases.sort_unstable();
    leases.truncate(PAGE_MAX);
    leases.iter().map(|(_, _, slot)| view::glimpse(queue, *slot)).collect()
}
