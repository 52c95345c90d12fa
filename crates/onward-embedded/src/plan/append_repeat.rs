//! Repeats of an append: the same events again, in the same stream, where they stand already.

use super::{
    Answer, Context, Draft, Refusal,
    append::{Append, Ready, standing},
};
use crate::{Fact, State, state::Stream};
use onward_core::{Appended, Error, Expected, Message, Position, Receipt, StreamName, Tag};

type Repeated = Result<Option<Answer>, Refusal>;

/// The first answer, when these events stand already where they were to be appended.
///
/// An exact expectation says where that would be, so its repeat is recognised for ever; others are within the last
/// [`crate::EVENT_IDS_MAX`] events.
pub(super) fn find(state: &State, draft: &Draft, append: &Append, ctx: &Context<'_>) -> Repeated {
    let Some(first) = append.events.first() else { return Ok(None) };
    twice_in_itself(append)?;
    if let Some(fact) = draft.appends.marks.get(&first.mark) {
        return of_this_commit(draft, append, *fact).map(Some);
    }
    let recent = |event: &Ready| state.streams.recent(event.mark).map(|found| found.revision);
    let known = recent(first);
    let exact = match append.expected {
        Expected::NoStream => Some(0),
        Expected::Revision(revision) => Some(revision.saturating_add(1)),
        Expected::Any | Expected::Exists => None,
    };
    let stands = standing(state, draft, &append.stream);
    let stored = stands.stream.and_then(|stream| state.streams.get(stream));
    let place = match (known, exact) {
        (Some(known), Some(exact)) if known != exact => {
            return Err(elsewhere(&append.stream, first, known).into());
        }
        (Some(known), _) => Some(known),
        (None, Some(exact)) => stored.filter(|stream| exact < stream.next).map(|_| exact),
        (None, None) => None,
    };
    if let (Some(place), Some(stream)) = (place, stored) {
        return at(stream, append, place, known.is_some(), ctx);
    }
    match append.events.iter().find_map(|event| Some((event, recent(event)?))) {
        Some((event, known)) => Err(elsewhere(&append.stream, event, known).into()),
        None => Ok(None),
    }
}

fn twice_in_itself(append: &Append) -> Result<(), Error> {
    let mut marks: Vec<u64> = append.events.iter().map(|event| event.mark).collect();
    marks.sort_unstable();
    if marks.windows(2).all(|pair| pair[0] != pair[1]) {
        return Ok(());
    }
    Err(Error::invalid("two of the events have the same id")
        .at(format!("stream `{}`", append.stream))
        .mend("give each event an id of its own"))
}

/// Compares with what stands from a revision on.
fn at(stream: &Stream, append: &Append, place: u64, known: bool, ctx: &Context<'_>) -> Repeated {
    let end = place + append.events.len() as u64;
    let places: Vec<u64> = (place..end.min(stream.next)).filter_map(|at| stream.place(at)).collect();
    let missing: Vec<u64> = places.iter().copied().filter(|place| !ctx.bodies.contains_key(place)).collect();
    if !missing.is_empty() {
        return Err(Refusal::NeedsBodies(missing));
    }
    let stored = |place: &u64| ctx.bodies.get(place);
    let same_id =
        |(place, event): (&u64, &Ready)| stored(place).is_some_and(|s| s.message.id == event.message.id);
    if !places.first().zip(append.events.first()).is_some_and(same_id) {
        // Another event stands there, or its place was truncated.
        let truncated = known && place < stream.first;
        return if truncated { Err(truncated_before(append).into()) } else { Ok(None) };
    }
    let same = |(place, event): (&u64, &Ready)| {
        stored(place).is_some_and(|stored| {
            let tags = stored.event.as_ref().map_or(&[][..], |event| &event.tags);
            same(&stored.message, tags, event)
        })
    };
    if places.len() < append.events.len() || !places.iter().zip(&append.events).all(same) {
        return Err(other_content(append).into());
    }
    let position = Position(places.last().copied().unwrap_or_default());
    let receipt = Appended { first_revision: place, last_revision: end - 1, position, duplicate: true };
    Ok(Some(Answer::Ready(Receipt::Appended(receipt))))
}

/// Compares with what an earlier operation of the same commit appends.
fn of_this_commit(draft: &Draft, append: &Append, from: usize) -> Result<Answer, Refusal> {
    let mut first_revision = None;
    for (index, event) in append.events.iter().enumerate() {
        match draft.facts.get(from + index) {
            Some(Fact::Appended { revision, message, tags, mark, .. })
                if *mark == event.mark && same(message, tags, event) =>
            {
                first_revision.get_or_insert(*revision);
            }
            _ => return Err(other_content(append).into()),
        }
    }
    let (count, first_revision) = (append.events.len(), first_revision.unwrap_or_default());
    let (fact, last_revision) = (from + count - 1, first_revision + count as u64 - 1);
    Ok(Answer::Appended { fact, first_revision, last_revision, duplicate: true })
}

/// What a repeat must have the same: id, type, version, data and tags.
fn same(stored: &Message, tags: &[Tag], event: &Ready) -> bool {
    let new = &*event.message;
    let envelope = (&stored.id, &stored.kind, stored.version) == (&new.id, &new.kind, new.version);
    envelope && stored.data == new.data && tags == event.tags
}

fn elsewhere(stream: &StreamName, event: &Ready, revision: u64) -> Error {
    Error::conflict(format!("the event `{}` was appended before, as revision {revision}", event.message.id))
        .at(format!("stream `{stream}`"))
        .mend("give what is new an id of its own, or expect what was expected then")
}

fn other_content(append: &Append) -> Error {
    Error::conflict("these events were appended before with another type, version, data, tags or order")
        .at(format!("stream `{}`", append.stream))
        .mend("give what is new an id of its own")
}

fn truncated_before(append: &Append) -> Error {
    Error::conflict("these events were appended before, and have been truncated since")
        .at(format!("stream `{}`", append.stream))
        .mend("give what is new an id of its own")
}
