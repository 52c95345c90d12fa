//! Short ways to append and read.

use crate::check::{ensure, ensure_eq};
use crate::{Answer, Bench, Done, Stop};
use onward_core::{
    Appended, Direction, ErrorKind, Event, EventRead, EventScope, EventSlice, Expected, Op, ReadFrom,
    Receipt, Result, StreamName, Tag,
};

/// A stream of the category `check`.
pub(super) fn stream(name: &str) -> StreamName {
    format!("check-{name}").parse().expect("checks write names within the limits")
}

pub(super) fn tags(tags: &[&str]) -> Vec<Tag> {
    tags.iter().map(|tag| Tag::try_from(*tag).expect("checks write tags within the limits")).collect()
}

pub(super) fn event(b: &Bench, id: &str) -> Result<Event> {
    event_of(b, id, &[])
}

pub(super) fn event_of(b: &Bench, id: &str, with: &[&str]) -> Result<Event> {
    Ok(Event { message: b.message(id).build(b.env())?, tags: tags(with) })
}

pub(super) fn append_op(b: &Bench, to: &StreamName, ids: &[&str], expected: Expected) -> Result<Op> {
    let events = ids.iter().map(|id| event(b, id)).collect::<Result<_>>()?;
    Ok(Op::Append { stream: to.clone(), events, expected, condition: None })
}

pub(super) async fn append(b: &Bench, to: &StreamName, ids: &[&str], expected: Expected) -> Answer<Appended> {
    match b.op(append_op(b, to, ids, expected)?).await? {
        Receipt::Appended(appended) => Ok(appended),
        other => Err(Stop::Failed(format!("an append answered {other:?}"))),
    }
}

/// The operation is a conflict that says what revision stands there, where the check knows it.
pub(super) async fn conflict(b: &Bench, op: Op, standing: Option<u64>, what: &str) -> Done {
    match b.op(op).await {
        Err(error) => {
            ensure_eq!(error.kind(), ErrorKind::Conflict, "{what}");
            ensure!(
                standing.is_none() || error.revision() == standing,
                "{what}: it says {:?}",
                error.revision()
            );
            Ok(())
        }
        Ok(receipt) => Err(Stop::Failed(format!("{what} was accepted: {receipt:?}"))),
    }
}

pub(super) async fn read(b: &Bench, read: EventRead) -> Result<EventSlice> {
    b.engine().read_events(read).await
}

pub(super) fn ids(slice: &EventSlice) -> Vec<String> {
    slice.events.iter().map(|recorded| recorded.event.message.id.to_string()).collect()
}

/// Ids of all of a scope, in one slice.
pub(super) async fn all(b: &Bench, scope: EventScope) -> Result<Vec<String>> {
    Ok(ids(&read(b, EventRead::all_of(scope)).await?))
}

/// Ids of all of a scope, in small slices.
pub(super) async fn read_pages(b: &Bench, scope: EventScope, direction: Direction) -> Answer<Vec<String>> {
    let from = if direction == Direction::Forward { ReadFrom::Start } else { ReadFrom::End };
    let mut ask = EventRead { from, direction, limit: 4, ..EventRead::all_of(scope) };
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let slice = read(b, ask.clone()).await?;
        ensure!(slice.events.len() <= 4, "a slice of at most 4 has {}", slice.events.len());
        seen.extend(ids(&slice));
        match slice.next {
            Some(next) => ask.from = next,
            None => return Ok(seen),
        }
    }
    Err(Stop::Failed("a read goes on for ever".into()))
}
