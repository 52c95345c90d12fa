//! From facts about topics and subscriptions to the state.

use super::{Queue, Reader, State, Topic};
use crate::{Fact, InletId, Marks, MessageRef, TopicId};
use onward_core::{Filter, Inlet, InletConfig, Message, Name, Timestamp, TopicConfig};

type Topics = [Option<Box<Topic>>];

/// Tells a topic which of its messages a subscription is done with; `queue` has a reader.
pub(super) fn tell_topic(queue: &mut Queue, topics: &mut Topics, freed: &mut Vec<u64>) {
    let Some(reader) = &mut queue.reader else { return };
    let Some(topic) = topics.get_mut(reader.topic.0 as usize).and_then(Option::as_deref_mut) else { return };
    for seq in std::mem::take(&mut reader.done_with) {
        topic.let_go(seq, freed);
    }
    queue.note_removed(topic);
}

impl State {
    pub(crate) fn topic(&self, id: TopicId) -> Option<&Topic> {
        self.topics.get(id.0 as usize)?.as_deref()
    }

    pub(crate) fn find_topic(&self, name: &Name) -> Option<&Topic> {
        self.topic_names.get(name).and_then(|id| self.topic(*id))
    }

    /// The topic of a subscription.
    pub(crate) fn topic_of(&self, queue: &Queue) -> Option<&Topic> {
        self.topic(queue.reader.as_ref()?.topic)
    }

    /// All of them, in the order of declaration.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.iter().flatten().map(|topic| &**topic)
    }

    pub(crate) fn next_topic(&self) -> TopicId {
        TopicId(self.topics.len() as u32)
    }

    /// Topics that got messages, and how many, since the last call.
    pub(crate) fn take_published(&mut self) -> Vec<(TopicId, u32)> {
        std::mem::take(&mut self.published)
    }

    /// Makes room for topics whose numbers were given.
    pub(super) fn expect_topics(&mut self, count: u32) {
        self.topics.resize_with(count as usize, || None);
    }

    pub(super) fn put_topic(&mut self, topic: Topic) {
        let at = topic.id.0 as usize;
        if at >= self.topics.len() {
            self.topics.resize_with(at + 1, || None);
        }
        self.topic_names.insert(topic.name.clone(), topic.id);
        self.topics[at] = Some(Box::new(topic));
    }

    pub(super) fn topic_mut(&mut self, id: TopicId) -> Option<&mut Topic> {
        self.topics.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(super) fn last_topic(&mut self) -> Option<&mut Topic> {
        self.topics.iter_mut().rev().find_map(Option::as_deref_mut)
    }

    pub(super) fn apply_topic(&mut self, fact: &Fact, position: u64, time: Timestamp) {
        match fact {
            Fact::TopicDeclared { topic, name, config } => self.topic_declared(*topic, name, config, time),
            Fact::TopicDropped { topic } => self.topic_dropped(*topic),
            Fact::Subscribed { inlet, topic, name, config, filter, start } => {
                self.subscribed((*inlet, *topic), name, config, filter, *start);
            }
            Fact::Passed { inlet, until, why, bulk } => {
                self.with_topic(*inlet, position, time, |queue, topic| queue.pass(topic, *until, *why));
                self.mark_bulk(bulk);
            }
            Fact::Sought { inlet, to, again } => self.sought(*inlet, *to, *again, position, time),
            Fact::Trimmed { topic } => self.trim(*topic, time),
            Fact::TopicMoved { topic, which, .. } => self.topic_moved(*topic, *which, position),
            _ => {}
        }
    }

    pub(super) fn apply_published(
        &mut self,
        id: TopicId,
        message: &Message,
        marks: &Marks,
        skew_us: i64,
        position: u64,
        time: Timestamp,
    ) {
        let Some(topic) = self.topic_mut(id) else { return };
        topic.publish(position, time, message, marks, skew_us);
        match self.published.iter_mut().find(|(topic, _)| *topic == id) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.published.push((id, 1)),
        }
        self.trim(id, time);
    }

    fn topic_declared(&mut self, id: TopicId, name: &Name, config: &TopicConfig, time: Timestamp) {
        match self.topic_mut(id) {
            Some(topic) => *topic.config = config.clone(),
            None => self.put_topic(Topic::new(id, name.clone(), Box::new(config.clone()))),
        }
        self.trim(id, time);
    }

    fn topic_dropped(&mut self, id: TopicId) {
        let Some(topic) = self.topics.get_mut(id.0 as usize).and_then(Option::take) else { return };
        self.topic_names.remove(&topic.name);
        topic.each_body(&mut |_, position| self.freed.push(position));
    }

    fn subscribed(
        &mut self,
        (id, topic): (InletId, TopicId),
        name: &Inlet,
        config: &InletConfig,
        filter: &Filter,
        start: u64,
    ) {
        if let Some(queue) = self.queue(id) {
            let before = queue.reader.as_ref().map(|reader| (reader.low(), reader.is_filtered()));
            self.apply_declared(id, name, config);
            if let (Some(topic), Some((low, was))) = (self.topic_mut(topic), before) {
                topic.set_low(id, was, Some(low), None);
                topic.set_low(id, !filter.is_all(), None, Some(low));
            }
            if let Some(reader) = self.queue_mut(id).and_then(|queue| queue.reader.as_mut()) {
                reader.filter = filter.clone();
            }
            return;
        }
        self.apply_declared(id, name, config);
        if let Some(queue) = self.queue_mut(id) {
            queue.reader = Some(Box::new(Reader::new(topic, filter.clone(), start)));
        }
        if let Some(topic) = self.topic_mut(topic) {
            topic.set_low(id, !filter.is_all(), None, Some(start));
        }
    }

    pub(super) fn apply_drawn(
        &mut self,
        inlet: InletId,
        span: (u64, u64),
        unfit: &[u64],
        position: u64,
        time: Timestamp,
    ) {
        self.with_topic(inlet, position, time, |queue, topic| {
            queue.draw(topic, span, unfit, position, time);
        });
    }

    /// Changes a subscription beside its topic, then lets the topic go what nobody needs any more.
    fn with_topic(
        &mut self,
        inlet: InletId,
        position: u64,
        time: Timestamp,
        change: impl FnOnce(&mut Queue, &mut Topic),
    ) {
        let now = self.time;
        let Some(queue) = self.queues.get_mut(inlet.0 as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        let Some(id) = queue.reader.as_ref().map(|reader| reader.topic) else { return };
        let Some(topic) = self.topics.get_mut(id.0 as usize).and_then(Option::as_deref_mut) else { return };
        queue.promote(now, position);
        let place = |queue: &Queue| queue.reader.as_ref().map(|r| (r.low(), r.is_filtered()));
        let before = place(queue);
        change(queue, topic);
        if let (Some((was, filtered)), Some((low, _))) = (before, place(queue)) {
            topic.set_low(inlet, filtered, Some(was), Some(low));
        }
        // What follows is the same as after every change of a queue.
        self.with(inlet, |_| {});
        self.trim(id, time);
    }

    fn sought(&mut self, inlet: InletId, to: u64, again: bool, position: u64, time: Timestamp) {
        if again {
            let Some(queue) = self.queue(inlet) else { return };
            let mut leases: Vec<(u64, u32)> =
                queue.leases.iter().map(|(seq, lease)| (*seq, lease.slot)).collect();
            leases.sort_unstable();
            for (seq, slot) in leases {
                let mut ended = None;
                self.with(inlet, |queue| {
                    let (message, end) = (queue.reference(slot), queue.end_by_seek(slot));
                    ended = queue.end_lease(message, &end, position, time);
                });
                if let Some((lease, _)) = ended {
                    self.forget_lease(inlet, seq, &lease);
                }
            }
        }
        self.with_topic(inlet, position, time, |queue, topic| queue.seek(topic, to, again, position, time));
    }

    /// One step of letting go what the topic needs not keep.
    fn trim(&mut self, id: TopicId, time: Timestamp) {
        let Some(topic) = self.topics.get_mut(id.0 as usize).and_then(Option::as_deref_mut) else { return };
        let until = topic.trim_to(time);
        if until <= topic.shelf.floor() {
            return;
        }
        // Those with a filter count what they missed while it can still be looked at; the others count numbers later.
        while let Some(&(low, inlet)) = topic.filtered.first().filter(|(low, _)| *low < until) {
            let queue = self.queues.get_mut(inlet.0 as usize).and_then(Option::as_deref_mut);
            let low_now = queue.and_then(|queue| {
                queue.count_missed(topic, until);
                queue.reader.as_ref().map(|reader| reader.low())
            });
            topic.set_low(inlet, true, Some(low), low_now);
        }
        while topic.shelf.floor() < until {
            topic.drop_oldest(&mut self.freed);
        }
    }

    /// A subscription was removed.
    pub(super) fn leave_topic(&mut self, queue: &Queue) {
        let Some(reader) = &queue.reader else { return };
        let time = self.time;
        let Some(topic) = self.topics.get_mut(reader.topic.0 as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        for slot in queue.slab.slots() {
            topic.let_go(queue.slab.get(slot).seq, &mut self.freed);
        }
        topic.set_low(queue.id, reader.is_filtered(), Some(reader.low()), None);
        self.trim(reader.topic, time);
    }

    fn topic_moved(&mut self, id: TopicId, which: MessageRef, position: u64) {
        let Some(topic) = self.topics.get_mut(id.0 as usize).and_then(Option::as_deref_mut) else { return };
        if topic.body_at(which.seq).is_none() {
            self.freed.push(position);
            return;
        }
        self.freed.push(topic.move_body(which.seq, position));
        if !topic.holds.contains_key(&which.seq) {
            return;
        }
        let readers: Vec<InletId> = topic.readers().collect();
        for inlet in readers {
            if let Some(queue) = self.queue_mut(inlet)
                && let Some(slot) = queue.slot_of(which)
            {
                queue.side_mut(slot).body = Some(position);
            }
        }
    }
}
