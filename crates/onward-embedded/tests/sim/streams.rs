//! The streams of every run: what is appended, read and truncated, and what the history says of it.

use onward_core::{
    Direction, EVENTS_MAX, Event, EventRead, EventScope, EventSlice, Expected, Message, Position, ReadFrom,
    RecordedEvent,
};
use onward_sim::history::{Addition, EventMark, EventsRead, SeenEvent, What, content_mark};

use super::calls::Ask;
use super::parts::Part;
use super::topics::name;
use super::workload::Workload;

/// The streams, all of one category.
const STREAMS: [&str; 3] = ["acct-1", "acct-2", "acct-3"];
const TAGS: [&str; 3] = ["red", "green", "blue"];
/// Appends that are remembered, to be made again.
const LATELY_MAX: usize = 8;

/// What clients know of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// Its latest revision that was seen.
    head: Option<u64>,
    /// The first revision that is kept.
    kept: u64,
}

/// What clients know of all streams.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    of: [Known; STREAMS.len()],
    /// The last place that a reader of everything has reached.
    reached: Option<Position>,
    lately: Vec<(Vec<Event>, Addition)>,
}

impl Streams {
    /// Takes note of an event's place.
    pub(crate) fn learn(&mut self, stream: &str, revision: u64) {
        let Some(index) = STREAMS.iter().position(|name| *name == stream) else { return };
        let known = &mut self.of[index];
        known.head = known.head.max(Some(revision));
    }

    pub(crate) fn learn_slice(&mut self, read: &EventRead, slice: &EventSlice) {
        let topic = matches!(read.scope, EventScope::Topic(_));
        for event in slice.events.iter().filter(|_| !topic) {
            self.learn(&event.stream.to_string(), event.revision);
            self.reached = self.reached.max(Some(event.position));
        }
    }
}

impl Workload {
    /// Events for one stream; what is expected is what clients know, mostly.
    pub(super) fn append(&mut self) -> Part {
        let index = self.random.below(STREAMS.len() as u64) as usize;
        let events: Vec<Event> = (0..=self.random.below(3)).map(|_| self.event()).collect();
        let head = self.streams.of[index].head;
        let expected = match self.random.below(8) {
            0 => Expected::Any,
            1 => Expected::Exists,
            2 => Expected::NoStream,
            3 => Expected::Revision(self.random.below(4)),
            _ => head.map_or(Expected::NoStream, Expected::Revision),
        };
        let absent = self.random.once_in(4).then(|| {
            let tag = TAGS[self.random.below(TAGS.len() as u64) as usize];
            (tag.to_owned(), self.streams.reached)
        });
        let marks = events.iter().map(|event| EventMark {
            id: event.message.id.clone(),
            content: content_mark(&event.message),
            tags: event.tags.iter().map(|tag| tag.as_str().to_owned()).collect(),
        });
        let (stream, marks) = (STREAMS[index].to_owned(), marks.collect());
        let addition = Addition { stream, events: marks, expected, absent, answer: None };
        if self.streams.lately.len() == LATELY_MAX {
            self.streams.lately.remove(0);
        }
        self.streams.lately.push((events.clone(), addition.clone()));
        Part::Append(events, addition)
    }

    fn event(&mut self) -> Event {
        self.messages += 1;
        let id = format!("e{}", self.messages);
        let pad = "x".repeat(self.random.below(2_000) as usize);
        let message = Message::builder("sim.event").json(&serde_json::json!({ "of": id, "pad": pad }));
        let message = message.id(id.as_str().try_into().expect("a short id"));
        let message = message.build(&self.env).expect("a message within the limits");
        let tagged = self.random.once_in(2);
        let tag = TAGS[self.random.below(TAGS.len() as u64) as usize];
        let tags = tagged.then(|| tag.try_into().expect("a short tag")).into_iter().collect();
        Event { message, tags }
    }

    fn append_again(&mut self) -> Part {
        let count = self.streams.lately.len() as u64;
        if count == 0 {
            return self.append();
        }
        let (events, addition) = self.streams.lately[self.random.below(count) as usize].clone();
        Part::Append(events, addition)
    }

    /// Removes the older events of a stream, at most up to its end.
    fn truncate(&mut self) -> Part {
        let index = self.random.below(STREAMS.len() as u64) as usize;
        let known = &mut self.streams.of[index];
        let end = known.head.map_or(0, |head| head + 1);
        known.kept += self.random.below(1 + end.saturating_sub(known.kept));
        let (stream, before) = (STREAMS[index].parse().expect("a constant name"), known.kept);
        Part::Truncate { stream, before }
    }

    fn read_events(&mut self) -> EventRead {
        let index = self.random.below(STREAMS.len() as u64) as usize;
        let stream = STREAMS[index].parse().expect("a constant name");
        let head = self.streams.of[index].head.unwrap_or(0);
        let (backward, whole) = (self.random.once_in(3), self.random.once_in(3));
        let (scope, from) = match (self.random.below(3), self.streams.reached) {
            (0, _) => (EventScope::Stream(stream), ReadFrom::Revision(self.random.below(head + 2))),
            (1, Some(reached)) => (EventScope::All, ReadFrom::Position(reached)),
            (1, None) => (EventScope::Stream(stream), if backward { ReadFrom::End } else { ReadFrom::Start }),
            _ => (EventScope::All, if backward { ReadFrom::End } else { ReadFrom::Start }),
        };
        let direction = if backward { Direction::Backward } else { Direction::Forward };
        let limit = if whole { EVENTS_MAX } else { 1 + self.random.below(6) as usize };
        EventRead { from, direction, limit, ..EventRead::all_of(scope) }
    }

    /// Something about streams.
    pub(super) fn about_streams(&mut self) -> Ask {
        match self.random.below(12) {
            0 => Ask::Commit(vec![self.append_again()]),
            1 => Ask::Commit(vec![self.append(), self.publish(), self.put_part()]),
            2 => Ask::Submit((0..=self.random.below(3)).map(|_| self.append()).collect()),
            3 => Ask::Commit(vec![self.truncate()]),
            4..=7 => Ask::Events(Box::new(self.read_events())),
            _ => Ask::Commit(vec![self.append()]),
        }
    }
}

/// Everything that a topic keeps.
pub(crate) fn topic_read(topic: &str) -> EventRead {
    EventRead::all_of(EventScope::Topic(name(topic)))
}

/// What the history says of a reading.
pub(crate) fn what_was_read(read: &EventRead, slice: &EventSlice) -> Option<What> {
    let stream = match &read.scope {
        EventScope::Topic(topic) => {
            let messages = slice.events.iter().map(|recorded| {
                let message = &recorded.event.message;
                (message.id.clone(), content_mark(message), recorded.position)
            });
            // A slice that is not all says nothing about what is missing.
            let messages = messages.collect();
            return slice.next.is_none().then(|| What::ReadTopic { topic: topic.clone(), messages });
        }
        EventScope::Stream(stream) => Some(stream.to_string()),
        _ => None,
    };
    let events = slice.events.iter().map(seen).collect();
    let (from, next, backward) = (read.from, slice.next, read.direction == Direction::Backward);
    Some(What::ReadEvents(EventsRead { stream, from, backward, next, events }))
}

fn seen(recorded: &RecordedEvent) -> SeenEvent {
    let message = &recorded.event.message;
    SeenEvent {
        stream: recorded.stream.to_string(),
        revision: recorded.revision,
        position: recorded.position,
        id: message.id.clone(),
        content: content_mark(message),
    }
}
