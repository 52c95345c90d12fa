//! The model's events: one list, searched from the front.

use super::{Model, Now};
use onward_core::{
    AppendCondition, Appended, Direction, Error, Event, EventRead, EventScope, EventSlice, Expected,
    Position, ReadFrom, Receipt, RecordedEvent, Result, StreamName, Timestamp,
};
use std::time::Duration;

/// An event, and whether a truncation removed it. When it was recorded stands on the clock that nobody sets.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    recorded: RecordedEvent,
    at: Duration,
    gone: bool,
}

fn id(event: &Event) -> &str {
    event.message.id.as_str()
}

fn same(stored: &Event, new: &Event) -> bool {
    let (old, message) = (&stored.message, &new.message);
    let envelope = (&old.id, &old.kind, old.version) == (&message.id, &message.kind, message.version);
    envelope && old.data == message.data && stored.tags == new.tags
}

impl Model {
    fn stream(&self, name: &StreamName) -> Vec<&Kept> {
        self.events.iter().filter(|kept| kept.recorded.stream == *name).collect()
    }

    fn next_revision(&self, name: &StreamName) -> u64 {
        self.stream(name).len() as u64
    }

    pub(crate) fn expect_stream(&self, name: &StreamName, expected: Expected) -> Result<Receipt> {
        let next = self.next_revision(name);
        let holds = match expected {
            Expected::Any => true,
            Expected::NoStream => next == 0,
            Expected::Exists => next > 0,
            Expected::Revision(revision) => revision + 1 == next,
        };
        if holds {
            return Ok(Receipt::Done);
        }
        let error = Error::conflict(format!("{name} has {next} events"));
        Err(if next == 0 { error } else { error.standing_at(next - 1) })
    }

    pub(crate) fn append(
        &mut self,
        name: &StreamName,
        events: &[Event],
        expected: Expected,
        condition: Option<&AppendCondition>,
        now: Now,
    ) -> Result<Receipt> {
        if let Some(first) = self.appended_before(name, events, expected)? {
            return Ok(Receipt::Appended(first));
        }
        self.expect_stream(name, expected)?;
        let stands = |condition: &&AppendCondition| {
            self.events.iter().filter(|kept| !kept.gone).any(|kept| {
                let event = &kept.recorded.event;
                condition.query.matches(&event.message.kind, &event.tags)
                    && condition.after.is_none_or(|after| kept.recorded.position > after)
            })
        };
        if condition.filter(stands).is_some() {
            return Err(Error::conflict("an event that matches the condition stands there"));
        }
        let first_revision = self.next_revision(name);
        let mut position = Position(0);
        for event in events {
            position = Position(self.next());
            let recorded = RecordedEvent {
                event: event.clone(),
                stream: name.clone(),
                revision: self.next_revision(name),
                position,
                recorded_at: now.wall,
            };
            self.events.push(Kept { recorded, at: now.monotonic, gone: false });
        }
        let last_revision = first_revision + events.len() as u64 - 1;
        Ok(Receipt::Appended(Appended { first_revision, last_revision, position, duplicate: false }))
    }

    /// The first answer, when these events stand where they were to be appended.
    fn appended_before(
        &self,
        name: &StreamName,
        events: &[Event],
        expected: Expected,
    ) -> Result<Option<Appended>> {
        let stream = self.stream(name);
        let place = |event: &Event| stream.iter().position(|kept| id(&kept.recorded.event) == id(event));
        let Some(at) = events.iter().find_map(place) else { return Ok(None) };
        let fits = match expected {
            Expected::NoStream => at == 0,
            Expected::Revision(revision) => at as u64 == revision + 1,
            Expected::Any | Expected::Exists => true,
        };
        let there = stream.get(at..at + events.len()).unwrap_or_default();
        let all =
            there.iter().zip(events).all(|(kept, event)| same(&kept.recorded.event, event) && !kept.gone);
        match there.last() {
            Some(last) if fits && all => Ok(Some(Appended {
                first_revision: at as u64,
                last_revision: last.recorded.revision,
                position: last.recorded.position,
                duplicate: true,
            })),
            _ => Err(Error::conflict("some of these events were appended before, otherwise")),
        }
    }

    pub(crate) fn truncate(&mut self, name: &StreamName, before: u64) -> Result<Receipt> {
        match self.next_revision(name) {
            0 => return Err(Error::not_found(format!("{name} does not exist"))),
            next if before > next => return Err(Error::invalid(format!("{name} ends before {before}"))),
            _ => {}
        }
        let of_it = self.events.iter_mut().filter(|kept| kept.recorded.stream == *name);
        of_it.filter(|kept| kept.recorded.revision < before).for_each(|kept| kept.gone = true);
        Ok(Receipt::Done)
    }

    pub(crate) fn read_events(&self, read: &EventRead, now: Now) -> Result<EventSlice> {
        let by = |time: Timestamp| move |kept: &&Kept| now.stamp(kept.at) <= time;
        let head = self.events.iter().rfind(|kept| !kept.gone).map(|kept| kept.recorded.position);
        let stands = self.events.iter().filter(|kept| !kept.gone);
        let mut found: Vec<&Kept> =
            stands.filter(|kept| read.as_of.is_none_or(|time| by(time)(kept))).collect();
        match &read.scope {
            EventScope::Heads { prefix } => {
                let last =
                    |kept: &Kept| found.iter().rfind(|other| other.recorded.stream == kept.recorded.stream);
                let is_last = |kept: &&Kept| last(kept).is_some_and(|other| std::ptr::eq(*other, *kept));
                let named = |kept: &&Kept| kept.recorded.stream.to_string().starts_with(prefix);
                found = found.iter().copied().filter(is_last).filter(named).collect();
            }
            scope => found.retain(|kept| in_scope(scope, &kept.recorded)),
        }
        let forward = read.direction == Direction::Forward;
        let behind = match (&read.scope, head) {
            _ if read.from != ReadFrom::End || !forward => None,
            (EventScope::Stream(name), _) => Some(ReadFrom::Revision(self.next_revision(name))),
            (_, head) => Some(ReadFrom::Position(Position(head.map_or(0, |head| head.0 + 1)))),
        };
        found.retain(|kept| begins(read, kept, forward, now));
        if !forward {
            found.reverse();
        }
        let mut events: Vec<RecordedEvent> = Vec::new();
        let mut bytes = 0;
        for kept in &found {
            bytes += kept.recorded.event.message.data.as_bytes().len() as u64;
            if events.len() == read.limit || (bytes > read.bytes_max && !events.is_empty()) {
                break;
            }
            events.push(RecordedEvent { recorded_at: now.stamp(kept.at), ..kept.recorded.clone() });
        }
        let more = events.len() < found.len();
        let next = events.last().filter(|_| more).map(|last| ReadFrom::Position(next_to(last, forward)));
        Ok(EventSlice { events, next: next.or(behind), head })
    }
}

fn next_to(last: &RecordedEvent, forward: bool) -> Position {
    Position(if forward { last.position.0 + 1 } else { last.position.0 - 1 })
}

fn in_scope(scope: &EventScope, recorded: &RecordedEvent) -> bool {
    let (name, event) = (&recorded.stream, &recorded.event);
    match scope {
        EventScope::Stream(wanted) => name == wanted,
        EventScope::Category { namespace, category } => {
            (name.namespace(), name.category()) == (namespace, category)
        }
        EventScope::Query(query) => query.matches(&event.message.kind, &event.tags),
        EventScope::All => true,
        _ => false,
    }
}

fn begins(read: &EventRead, kept: &Kept, forward: bool, now: Now) -> bool {
    let (recorded, at) = (&kept.recorded, now.stamp(kept.at));
    match read.from {
        ReadFrom::Start => forward,
        ReadFrom::End => !forward,
        ReadFrom::Revision(revision) if forward => recorded.revision >= revision,
        ReadFrom::Revision(revision) => recorded.revision <= revision,
        ReadFrom::Position(position) if forward => recorded.position >= position,
        ReadFrom::Position(position) => recorded.position <= position,
        ReadFrom::Time(time) if forward => at >= time,
        ReadFrom::Time(time) => at <= time,
    }
}
