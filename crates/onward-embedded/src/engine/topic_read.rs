//! Reading what a topic keeps, in slices, both ways. It hands nothing out.

use super::{Core, events::check};
use crate::{Store, TopicId, plan};
use onward_core::{
    Direction, EVENTS_BYTES_MAX, Error, ErrorKind, Event, EventRead, EventScope, EventSlice, Message, Name,
    Position, ReadFrom, RecordedEvent, Result, StreamName, Timestamp,
};
use std::sync::Arc;

impl<S: Store> Core<S> {
    /// Reads the kept messages of a topic.
    pub(super) async fn read_topic(self: &Arc<Self>, name: &Name, read: &EventRead) -> Result<EventSlice> {
        let _running = self.enter()?;
        check(read)?;
        let bytes_max = read.bytes_max.min(EVENTS_BYTES_MAX);
        let (found, more, head, end) = {
            let inner = self.inner.lock();
            let topic = inner.state.find_topic(name).ok_or_else(|| plan::no_topic(name))?;
            let (shelf, skew) = (&topic.shelf, self.clock.skew_us());
            let first = first(topic, read, skew)?;
            let stood = read.as_of.map(|time| just_behind(by_engine_clock(time, skew)));
            let end = stood.map_or(shelf.head(), |time| shelf.since(time));
            let numbers: Box<dyn Iterator<Item = u64>> = match read.direction {
                Direction::Forward => Box::new(first..end),
                Direction::Backward => Box::new((shelf.floor()..first.min(end)).rev()),
            };
            let mut found: Vec<(TopicId, u64, u64, u64, Timestamp)> = Vec::new();
            let (mut bytes, mut more) = (0, None);
            for number in numbers {
                let Some(entry) = shelf.get(number) else { break };
                let full = found.len() == read.limit || bytes + u64::from(entry.size) > bytes_max;
                if full && !found.is_empty() {
                    more = Some(entry.seq);
                    break;
                }
                bytes += u64::from(entry.size);
                found.push((topic.id, number, entry.seq, topic.body(entry.seq), entry.accepted_at));
            }
            let head = shelf.head().checked_sub(1).and_then(|last| shelf.get(last));
            (found, more, head.map(|entry| Position(entry.seq)), inner.end)
        };
        self.seen(end).await;
        let stream = stream_of(name)?;
        let mut events = Vec::with_capacity(found.len());
        let bodies = self.bodies(&found.iter().map(|(.., body, _)| *body).collect::<Vec<_>>());
        for ((topic, number, seq, body, recorded_at), stored) in found.into_iter().zip(bodies) {
            let message = match stored {
                Some(stored) => Some(Arc::unwrap_or_clone(stored.message)),
                None => self.topic_body(topic, seq, body)?,
            };
            let Some(message) = message else { continue };
            events.push(RecordedEvent {
                event: Event { message, tags: Vec::new() },
                stream: stream.clone(),
                revision: number,
                position: Position(seq),
                recorded_at,
            });
        }
        Ok(EventSlice { events, next: more.map(|seq| ReadFrom::Position(Position(seq))), head })
    }

    /// A topic's body, wherever it was moved meanwhile; `None` when it was let go.
    fn topic_body(&self, topic: TopicId, seq: u64, mut position: u64) -> Result<Option<Message>> {
        loop {
            match self.store.read(position) {
                Ok(stored) => return Ok(Some(Arc::unwrap_or_clone(stored.message))),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let now = self.inner.lock().state.topic_body_at(topic, seq);
                    match now.filter(|now| *now != position) {
                        Some(now) => position = now,
                        None => return Ok(None),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A topic's messages read like the events of a stream of the topic's name; their revision is their number in it.
fn stream_of(name: &Name) -> Result<StreamName> {
    name.full().parse()
}

/// Forward: the number of the first message. Backward: the number behind it.
fn first(topic: &crate::state::Topic, read: &EventRead, skew_us: i64) -> Result<u64> {
    let shelf = &topic.shelf;
    let forward = read.direction == Direction::Forward;
    Ok(match read.from {
        ReadFrom::Start => shelf.floor(),
        ReadFrom::End => shelf.head(),
        ReadFrom::Revision(_) => {
            return Err(Error::invalid("only a stream has revisions")
                .at("`from`")
                .mend("begin at a position, a time, the start or the end"));
        }
        ReadFrom::Position(position) if forward => shelf.at_or_after(position.0),
        ReadFrom::Position(position) => shelf.at_or_after(position.0.saturating_add(1)),
        ReadFrom::Time(time) => {
            let time = by_engine_clock(time, skew_us);
            if forward { shelf.since(time) } else { shelf.since(just_behind(time)) }
        }
    })
}

fn by_engine_clock(time: Timestamp, skew_us: i64) -> Timestamp {
    Timestamp::from_micros(time.as_micros().saturating_add(skew_us))
}

fn just_behind(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros().saturating_add(1))
}

/// Whether a read is of a topic.
pub(super) fn topic_of(read: &EventRead) -> Option<&Name> {
    match &read.scope {
        EventScope::Topic(name) => Some(name),
        _ => None,
    }
}
