//! Appending to streams: what stands there, repeats, conditions; truncating.

use super::{Answer, Context, Draft, Planned, append_repeat};
use crate::{Fact, State, StreamId, marks::Marker};
use hashbrown::HashMap;
use onward_core::{
    AppendCondition, Error, Event, Expected, Message, Receipt, Result, RetryHint, StreamName, Tag,
};
use std::sync::Arc;

/// An event made ready for planning.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) message: Arc<Message>,
    pub(crate) tags: Vec<Tag>,
    /// The keyed hash of stream and id.
    pub(crate) mark: u64,
}

/// An append made ready for planning.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) stream: StreamName,
    pub(crate) events: Vec<Ready>,
    pub(crate) expected: Expected,
    pub(crate) condition: Option<AppendCondition>,
}

/// What the earlier operations of a commit did to streams.
#[derive(Debug, Default)]
pub(crate) struct Appends {
    /// Streams that it appended to: their numbers, and the revision of the next event.
    streams: HashMap<StreamName, (StreamId, u64)>,
    /// Streams that it begins.
    begun: u32,
    truncated: HashMap<StreamId, u64>,
    /// The facts of its events by their marks.
    pub(super) marks: HashMap<u64, usize>,
}

impl Appends {
    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.begun = 0;
        self.truncated.clear();
        self.marks.clear();
    }
}

impl Append {
    pub(super) fn new(
        stream: StreamName,
        events: Vec<Event>,
        expected: Expected,
        condition: Option<AppendCondition>,
        marker: &Marker,
    ) -> Self {
        let ready = |event: Event| {
            let mark = marker.event(&stream, &event.message.id);
            Ready { message: Arc::new(event.message), tags: event.tags, mark }
        };
        let events = events.into_iter().map(ready).collect();
        Self { stream, events, expected, condition }
    }
}

/// How far a stream goes, the earlier operations of the commit included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub(super) stream: Option<StreamId>,
    /// The revision of the next event; 0 where there never was one.
    pub(super) next: u64,
}

pub(super) fn standing(state: &State, draft: &Draft, name: &StreamName) -> Standing {
    if let Some((stream, next)) = draft.appends.streams.get(name) {
        return Standing { stream: Some(*stream), next: *next };
    }
    match state.streams.find(name) {
        Some((stream, found)) => Standing { stream: Some(stream), next: found.next },
        None => Standing { stream: None, next: 0 },
    }
}

fn holds(expected: Expected, next: u64) -> bool {
    match expected {
        Expected::Any => true,
        Expected::NoStream => next == 0,
        Expected::Exists => next > 0,
        Expected::Revision(revision) => revision.checked_add(1) == Some(next),
    }
}

fn expect(name: &StreamName, expected: Expected, next: u64) -> Result<()> {
    if holds(expected, next) {
        return Ok(());
    }
    let wanted = match expected {
        Expected::Any => "anything".to_owned(),
        Expected::NoStream => "no stream".to_owned(),
        Expected::Exists => "a stream".to_owned(),
        Expected::Revision(revision) => format!("revision {revision}"),
    };
    let found = next.checked_sub(1).map_or("no event".to_owned(), |last| format!("revision {last}"));
    let error = Error::conflict(format!("expected {wanted}, found {found}"))
        .at(format!("stream `{name}`"))
        .mend("read the stream again and decide anew");
    Err(next.checked_sub(1).map_or(error.clone(), |last| error.standing_at(last)))
}

fn check_condition(
    state: &State,
    draft: &Draft,
    name: &StreamName,
    condition: &AppendCondition,
) -> Result<()> {
    let found = state.streams.first_match(&condition.query, condition.after);
    let own = |fact: &Fact| matches!(fact, Fact::Appended { message, tags, .. } if condition.query.matches(&message.kind, tags));
    let where_it_is = match found {
        Some(position) => format!("at position {position}"),
        None if draft.facts.iter().any(own) => "in an earlier operation of this commit".to_owned(),
        None => return Ok(()),
    };
    Err(Error::conflict(format!("an event that matches the condition stands {where_it_is}"))
        .at(format!("stream `{name}`"))
        .mend("read what matches again and decide anew"))
}

pub(super) fn plan(state: &State, draft: &mut Draft, append: &Append, ctx: &Context<'_>) -> Planned {
    if let Some(first) = append_repeat::find(state, draft, append, ctx)? {
        return Ok(first);
    }
    let name = &append.stream;
    let standing = standing(state, draft, name);
    expect(name, append.expected, standing.next)?;
    if let Some(condition) = &append.condition {
        check_condition(state, draft, name, condition)?;
    }
    let stream = match standing.stream {
        Some(stream) => stream,
        None => begin(state, draft, name)?,
    };
    let mut revision = standing.next;
    for event in &append.events {
        let fact = draft.grow(Fact::Appended {
            stream,
            revision,
            message: event.message.clone(),
            tags: event.tags.clone(),
            mark: event.mark,
        });
        draft.appends.marks.insert(event.mark, fact);
        revision += 1;
    }
    draft.appends.streams.insert(name.clone(), (stream, revision));
    let fact = draft.facts.len() - 1;
    Ok(Answer::Appended {
        fact,
        first_revision: standing.next,
        last_revision: revision - 1,
        duplicate: false,
    })
}

fn begin(state: &State, draft: &mut Draft, name: &StreamName) -> Result<StreamId> {
    let number = state.streams.next_stream().0.checked_add(draft.appends.begun);
    let Some(number) = number.filter(|number| *number < u32::MAX) else {
        return Err(Error::full("there are as many streams as a store can number")
            .at(format!("stream `{name}`"))
            .retry(RetryHint::Never));
    };
    draft.appends.begun += 1;
    draft.grow(Fact::StreamNamed { stream: StreamId(number), name: name.clone() });
    Ok(StreamId(number))
}

/// A condition on a stream without a write.
pub(super) fn guard(state: &State, draft: &Draft, name: &StreamName, expected: Expected) -> Planned {
    expect(name, expected, standing(state, draft, name).next)?;
    Ok(Answer::Ready(Receipt::Done))
}

pub(super) fn truncate(state: &State, draft: &mut Draft, name: &StreamName, before: u64) -> Planned {
    let Standing { stream: Some(stream), next } = standing(state, draft, name) else {
        return Err(Error::not_found("no such stream").at(format!("stream `{name}`")).into());
    };
    if before > next {
        return Err(Error::invalid(format!("revision {before} is not there yet; the next is {next}"))
            .at(format!("stream `{name}`"))
            .mend(format!("truncate before {next} to remove everything so far"))
            .into());
    }
    let kept = state.streams.get(stream).map_or(0, |stream| stream.first);
    let kept = draft.appends.truncated.get(&stream).copied().unwrap_or(kept);
    if before > kept {
        draft.appends.truncated.insert(stream, before);
        draft.drain(Fact::Truncated { stream, before });
    }
    Ok(Answer::Ready(Receipt::Done))
}
