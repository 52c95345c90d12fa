//! Topics of the model: every subscription is a queue that gets its own copy of each message at once.

use super::{Model, Now, Queue, item::identity};
use onward_core::{
    Accepted, Direction, Durability, Error, Event, EventRead, EventSlice, Filter, Inlet, InletConfig,
    Message, Name, Position, ReadFrom, RecordedEvent, Result, SeekMode, SeekTo, Sought, StartFrom, Timestamp,
    TopicConfig, TopicKeeps, TopologyDiff,
};
use std::time::Duration;

/// A topic: its kept messages, and all that were ever published, since their ids are remembered.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) name: Name,
    pub(crate) config: TopicConfig,
    kept: Vec<Published>,
    all: Vec<Published>,
}

#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) message: Message,
    pub(super) arrival: u64,
    number: u64,
    pub(super) at: Timestamp,
    pub(super) on: Duration,
}

/// What makes a queue of the model a subscription.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) topic: Name,
    pub(crate) filter: Filter,
    pub(crate) replay: u32,
}

impl Reader {
    fn takes(&self, message: &Message) -> bool {
        self.filter.takes(&message.kind, &message.source) && self.filter.takes_headers(&message.headers)
    }
}

impl Topic {
    fn bytes(&self) -> u64 {
        self.kept.iter().map(|p| p.message.size() as u64).sum()
    }

    /// Lets go what is past retention; answers the arrivals.
    fn trim(&mut self, now: Now) -> Vec<u64> {
        let mut gone = Vec::new();
        while let Some(oldest) = self.kept.first() {
            let age = self.config.retention_ms.map(Duration::from_millis);
            let old = age.is_some_and(|age| now.monotonic >= oldest.on + age);
            let large = self.config.retention_bytes.is_some_and(|most| self.bytes() > most);
            if !old && !large {
                break;
            }
            gone.push(self.kept.remove(0).arrival);
        }
        gone
    }

    pub(crate) fn keeps(&self, queues: &[Queue]) -> TopicKeeps {
        let of_it = |q: &&Queue| q.reader.as_ref().is_some_and(|r| r.topic == self.name);
        TopicKeeps {
            topic: self.name.clone(),
            published: self.all.len() as u64,
            messages: self.kept.len() as u64,
            bytes: self.bytes(),
            oldest: self.kept.first().map(|p| Position(p.arrival)),
            oldest_at: self.kept.first().map(|p| p.at),
            newest: self.kept.last().map(|p| Position(p.arrival)),
            subscriptions: queues.iter().filter(of_it).count() as u64,
        }
    }
}

fn no_topic(name: &Name) -> Error {
    Error::not_found(format!("topic {name} does not exist")).mend("declare it")
}

impl Model {
    fn topic(&mut self, name: &Name) -> Result<&mut Topic> {
        self.topics.iter_mut().find(|t| t.name == *name).ok_or_else(|| no_topic(name))
    }

    pub(crate) fn declare_topic(
        &mut self,
        name: Name,
        config: TopicConfig,
        update: bool,
    ) -> Result<TopologyDiff> {
        config.check()?;
        let Ok(topic) = self.topic(&name) else {
            self.topics.push(Topic { name, config, kept: Vec::new(), all: Vec::new() });
            return Ok(TopologyDiff { created: true, ..TopologyDiff::default() });
        };
        if topic.config == config {
            return Ok(TopologyDiff::default());
        }
        if !update {
            return Err(Error::conflict(format!("{name} exists with other content")).mend("set `update`"));
        }
        topic.config = config;
        Ok(TopologyDiff { changed: vec!["config".into()], ..TopologyDiff::default() })
    }

    pub(crate) fn drop_topic(&mut self, name: &Name) -> Result<TopologyDiff> {
        if self.queues.iter().any(|q| q.reader.as_ref().is_some_and(|r| r.topic == *name)) {
            return Err(Error::conflict(format!("{name} has subscriptions")));
        }
        self.topic(name)?;
        self.topics.retain(|t| t.name != *name);
        Ok(TopologyDiff { dropped: true, ..TopologyDiff::default() })
    }

    pub(crate) fn subscribe(
        &mut self,
        inlet: Inlet,
        config: InletConfig,
        filter: Filter,
        start: StartFrom,
        update: bool,
        now: Now,
    ) -> Result<TopologyDiff> {
        let Inlet::Subscription { topic: name, .. } = &inlet else {
            return Err(Error::invalid("a queue is no subscription"));
        };
        filter.check()?;
        self.topic(name)?;
        if let Ok(queue) = self.queue(&inlet) {
            let same = queue.reader.as_ref().is_some_and(|r| r.filter == filter);
            if !same && !update {
                return Err(Error::conflict(format!("{inlet} exists with other content")));
            }
            if let Some(reader) = &mut queue.reader {
                reader.filter = filter;
            }
            return self.declare_queue(inlet, config, update);
        }
        let to = match start {
            StartFrom::Now => SeekTo::End,
            StartFrom::Beginning => SeekTo::Beginning,
            StartFrom::Time(time) => SeekTo::Time(time),
            StartFrom::Position(position) => SeekTo::Position(position),
        };
        let (from, clipped) = self.place(name, to)?;
        let reader = Reader { topic: name.clone(), filter, replay: 0 };
        let diff = self.declare_queue(inlet.clone(), config, update)?;
        self.queue(&inlet)?.reader = Some(reader);
        self.refill(&inlet, from, now)?;
        Ok(TopologyDiff { clipped, ..diff })
    }

    /// The arrival that a place begins at, and whether what was asked for is not kept any more.
    fn place(&mut self, name: &Name, to: SeekTo) -> Result<(u64, bool)> {
        let serial = self.serial;
        let topic = self.topic(name)?;
        let lost = topic.kept.len() < topic.all.len();
        let first = |holds: &dyn Fn(&Published) -> bool| {
            let found = topic.kept.iter().position(holds);
            let clipped = lost && found.unwrap_or(0) == 0 && topic.all.iter().any(holds);
            let gone = topic.all.iter().find(|p| holds(p)).map(|p| p.arrival);
            let kept = found.map(|at| topic.kept[at].arrival);
            (kept.unwrap_or(u64::MAX), clipped && gone != kept)
        };
        Ok(match to {
            SeekTo::Beginning => (0, false),
            SeekTo::End => (u64::MAX, false),
            SeekTo::Time(time) => first(&|p| p.at >= time),
            SeekTo::Position(position) if position.0 == 0 || position.0 > serial => {
                return Err(Error::not_found("no message has this position, nor had one"));
            }
            SeekTo::Position(position) => first(&|p| p.arrival >= position.0),
        })
    }

    /// Gives a subscription what is kept from there on and what it has not in hand, nor processed in this epoch.
    fn refill(&mut self, inlet: &Inlet, from: u64, now: Now) -> Result<u64> {
        let queue = self.queue(inlet)?.clone();
        let Some(reader) = &queue.reader else { return Err(Error::invalid("a queue keeps no past")) };
        let topic = self.topic(&reader.topic)?;
        let has = |arrival: u64| queue.items.iter().any(|i| i.arrival == arrival && !i.passed_over);
        let missing: Vec<Published> =
            topic.kept.iter().filter(|p| p.arrival >= from && !has(p.arrival)).cloned().collect();
        let (count, reader) = (missing.len() as u64, reader.clone());
        let queue = self.queue(inlet)?;
        for published in missing.into_iter().filter(|p| reader.takes(&p.message)) {
            queue.take_copy(&published, reader.replay, now);
        }
        Ok(count)
    }

    pub(crate) fn publish(&mut self, name: &Name, message: &Message, now: Now) -> Result<Accepted> {
        if message.unique_key.is_some() {
            return Err(Error::invalid("a topic has no unfinished work"));
        }
        let declared = self.topic(name).is_err();
        if declared {
            self.declare_topic(name.clone(), TopicConfig::default(), false)?;
        }
        let arrival = self.next();
        let topic = self.topic(name)?;
        let window = Duration::from_millis(topic.config.dedup_window_ms);
        let same =
            |p: &&Published| now.monotonic < p.on + window && identity(&p.message) == identity(message);
        let receipt = |p: &Published, duplicate| Accepted {
            id: p.message.id.clone(),
            duplicate,
            declared,
            position: Some(Position(p.arrival)),
            durability: Durability::OsBuffer,
        };
        if let Some(first) = topic.all.iter().find(same) {
            let before = &first.message;
            if (&before.kind, before.version, &before.data) != (&message.kind, message.version, &message.data)
            {
                return Err(Error::conflict(format!("{} was published with other content", before.id)));
            }
            return Ok(receipt(first, true));
        }
        let number = topic.all.len() as u64;
        let published =
            Published { message: message.clone(), arrival, number, at: now.wall, on: now.monotonic };
        topic.kept.push(published.clone());
        topic.all.push(published.clone());
        for queue in &mut self.queues {
            let reader = queue.reader.clone().filter(|r| r.topic == *name && r.takes(message));
            if let Some(reader) = reader {
                queue.take_copy(&published, reader.replay, now);
            }
        }
        self.trim_topics(now);
        Ok(receipt(&published, false))
    }

    /// What topics let go is shed from subscriptions that have not begun it.
    pub(crate) fn trim_topics(&mut self, now: Now) {
        for topic in &mut self.topics {
            let gone = topic.trim(now);
            for queue in self.queues.iter_mut().filter(|_| !gone.is_empty()) {
                if queue.reader.as_ref().is_some_and(|r| r.topic == topic.name) {
                    queue.pass_over(&|item| gone.contains(&item.arrival), now, true);
                }
            }
        }
    }

    pub(crate) fn seek(&mut self, inlet: &Inlet, to: SeekTo, mode: SeekMode, now: Now) -> Result<Sought> {
        let reader = self.queue(inlet)?.reader.clone();
        let reader = reader.ok_or_else(|| Error::invalid("a queue keeps no past"))?;
        let (from, clipped) = self.place(&reader.topic, to)?;
        let again = mode == SeekMode::Reprocess;
        let queue = self.queue(inlet)?;
        let here = queue.items.iter().filter(|i| i.is_ready(now) && i.attempts == 0);
        if here.map(|i| i.arrival).min().is_some_and(|first| from > first) {
            queue.pass_over(&|item| item.arrival < from, now, false);
        }
        if again {
            queue.begin_again(from, now);
        }
        let missing = self.refill(inlet, from, now)?;
        let replay = self.queue(inlet)?.reader.as_ref().map_or(0, |r| r.replay);
        let topic = self.topic(&reader.topic)?;
        let next = topic.kept.iter().find(|p| p.arrival >= from);
        let ahead = topic.kept.iter().filter(|p| p.arrival >= from).count() as u64;
        let messages = if again { ahead } else { missing };
        Ok(Sought { next: next.map(|p| Position(p.arrival)), messages, clipped, replay })
    }

    pub(crate) fn read_topic(&mut self, name: &Name, read: &EventRead) -> Result<EventSlice> {
        let topic = self.topic(name)?;
        let fits = |p: &&Published| match (read.from, read.direction) {
            (ReadFrom::Start, Direction::Forward) | (ReadFrom::End, Direction::Backward) => true,
            (ReadFrom::Position(at), Direction::Forward) => p.arrival >= at.0,
            (ReadFrom::Position(at), Direction::Backward) => p.arrival <= at.0,
            (ReadFrom::Time(time), Direction::Forward) => p.at >= time,
            (ReadFrom::Time(time), Direction::Backward) => p.at <= time,
            _ => false,
        };
        let mut found: Vec<&Published> = topic.kept.iter().filter(fits).collect();
        if read.direction == Direction::Backward {
            found.reverse();
        }
        let next = found.get(read.limit).map(|p| ReadFrom::Position(Position(p.arrival)));
        let event = |p: &&Published| {
            Ok(RecordedEvent {
                event: Event { message: p.message.clone(), tags: Vec::new() },
                stream: name.full().parse()?,
                revision: p.number,
                position: Position(p.arrival),
                recorded_at: p.at,
            })
        };
        let events = found.iter().take(read.limit).map(event).collect::<Result<_>>()?;
        Ok(EventSlice { events, next, head: topic.all.last().map(|p| Position(p.arrival)) })
    }
}
