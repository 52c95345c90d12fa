//! What is kept beside queues: topics with their messages and subscriptions, streams, schedules.

use super::MessageLine;
use crate::{commands::peek::page, context::Context, exit::Outcome};
use onward_core::{
    Engine, EventRead, EventScope, Filter, Inlet, InletConfig, MessageQuery, MessageState, Name, PAGE_MAX,
    Position, RecordedEvent, Schedule, StreamName, Tag, Timestamp, TopicConfig, Topology,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// What a subscription has still to finish of what it has taken.
const TAKEN: [MessageState; 3] = [MessageState::Waiting, MessageState::Delayed, MessageState::Leased];

#[derive(Serialize)]
struct TopicLine<'a> {
    topic: &'a Name,
    config: &'a TopicConfig,
}

#[derive(Serialize)]
struct SubscriptionLine<'a> {
    subscription: &'a Inlet,
    config: &'a InletConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a Filter>,
    paused: bool,
}

#[derive(Serialize)]
struct PublishedLine<'a> {
    in_topic: &'a Name,
    accepted_at: Timestamp,
    message: Box<RawValue>,
}

#[derive(Serialize)]
struct EventLine<'a> {
    in_stream: &'a StreamName,
    revision: u64,
    accepted_at: Timestamp,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [Tag],
    message: Box<RawValue>,
}

#[derive(Serialize)]
struct ScheduleLine<'a> {
    schedule: &'a Name,
    plan: &'a Schedule,
}

/// A subscription, and the place of the first message that it has not finished.
struct Reader<'a> {
    line: SubscriptionLine<'a>,
    from: Option<Position>,
}

/// Writes each topic with what it keeps. A subscription's line stands before the first message that it has not finished,
/// so that one that begins with the next message at that line misses nothing.
pub(super) async fn topics(context: &Context, engine: &dyn Engine, topology: &Topology) -> Outcome<()> {
    for (topic, config) in &topology.topics {
        context.out.object(&TopicLine { topic, config });
        let mut readers = readers(engine, topology, topic).await?;
        let all = EventRead::all_of(EventScope::Topic(topic.clone()));
        events(context, engine, all, |event| {
            let (begin, later) = std::mem::take(&mut readers)
                .into_iter()
                .partition::<Vec<_>, _>(|reader| reader.from.is_some_and(|from| from <= event.position));
            begin.iter().for_each(|reader| context.out.object(&reader.line));
            readers = later;
            let message = onward::envelope_json(&event.event.message);
            context.out.object(&PublishedLine { in_topic: topic, accepted_at: event.recorded_at, message });
        })
        .await?;
        readers.iter().for_each(|reader| context.out.object(&reader.line));
    }
    dead_letters(context, engine, topology).await
}

async fn readers<'a>(engine: &dyn Engine, topology: &'a Topology, of: &Name) -> Outcome<Vec<Reader<'a>>> {
    let mut readers = Vec::new();
    for (inlet, config) in &topology.inlets {
        if !matches!(inlet, Inlet::Subscription { topic, .. } if topic == of) {
            continue;
        }
        let filter =
            topology.filters.iter().find(|(filtered, _)| filtered == inlet).map(|(_, filter)| filter);
        let paused = topology.paused.contains(inlet);
        let line = SubscriptionLine { subscription: inlet, config, filter, paused };
        readers.push(Reader { line, from: first_unfinished(engine, inlet).await? });
    }
    Ok(readers)
}

async fn first_unfinished(engine: &dyn Engine, inlet: &Inlet) -> Outcome<Option<Position>> {
    let stats = engine.stats(vec![inlet.clone()]).await?;
    let mut first = stats.first().and_then(|stats| stats.lag).and_then(|lag| lag.next);
    for state in TAKEN {
        let mut query = MessageQuery::state(inlet.clone(), state, PAGE_MAX);
        let mut more = true;
        while more {
            let (items, next) = page(engine, &mut query).await?;
            first = items.iter().filter_map(|view| view.position).chain(first).min();
            more = next;
        }
    }
    Ok(first)
}

/// Dead letters stay with their subscription: their lines are to be looked through.
async fn dead_letters(context: &Context, engine: &dyn Engine, topology: &Topology) -> Outcome<()> {
    for (inlet, _) in topology.inlets.iter().filter(|(inlet, _)| matches!(inlet, Inlet::Subscription { .. }))
    {
        let mut query = MessageQuery::state(inlet.clone(), MessageState::Dead, PAGE_MAX);
        let mut more = true;
        while more && !context.out.closed() {
            let (items, next) = page(engine, &mut query).await?;
            items.iter().for_each(|view| context.out.object(&MessageLine::of(inlet, view)));
            more = next;
        }
    }
    Ok(())
}

/// Writes the events of all streams, in the order in which they were appended.
pub(super) async fn streams(context: &Context, engine: &dyn Engine) -> Outcome<()> {
    events(context, engine, EventRead::all_of(EventScope::All), |event| {
        context.out.object(&EventLine {
            in_stream: &event.stream,
            revision: event.revision,
            accepted_at: event.recorded_at,
            tags: &event.event.tags,
            message: onward::envelope_json(&event.event.message),
        });
    })
    .await
}

async fn events(
    context: &Context,
    engine: &dyn Engine,
    mut read: EventRead,
    mut write: impl FnMut(&RecordedEvent),
) -> Outcome<()> {
    loop {
        let slice = engine.read_events(read.clone()).await?;
        slice.events.iter().for_each(&mut write);
        match slice.next.filter(|_| !context.out.closed()) {
            Some(next) => read.from = next,
            None => return Ok(()),
        }
    }
}

/// Writes the schedules.
pub(super) fn schedules(context: &Context, topology: &Topology) {
    let lines = topology.schedules.iter();
    lines.for_each(|view| context.out.object(&ScheduleLine { schedule: &view.name, plan: &view.schedule }));
}
