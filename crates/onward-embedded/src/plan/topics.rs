//! Declaring and removing topics and subscriptions.

use super::{
    Draft, no_topic, seek,
    topology::{change_inlet, changed_fields},
};
use crate::{Fact, State};
use onward_core::{Error, Filter, Inlet, InletConfig, Name, Result, StartFrom, TopicConfig, TopologyDiff};

pub(super) fn declare_topic(
    state: &State,
    draft: &mut Draft,
    name: &Name,
    config: &TopicConfig,
    update: bool,
) -> Result<TopologyDiff> {
    config.check().map_err(|error| {
        let field = error.place().unwrap_or_default().to_owned();
        error.at(format!("topic `{name}`, {field}"))
    })?;
    let Some(topic) = state.find_topic(name) else {
        let fact = Fact::TopicDeclared {
            topic: state.next_topic(),
            name: name.clone(),
            config: config.clone().into(),
        };
        draft.grow(fact);
        return Ok(TopologyDiff { created: true, ..TopologyDiff::default() });
    };
    let changed = changed_fields(&*topic.config, config)?;
    if changed.is_empty() {
        return Ok(TopologyDiff::default());
    }
    must_update(update, &format!("topic `{name}`"), &changed)?;
    draft.grow(Fact::TopicDeclared { topic: topic.id, name: name.clone(), config: config.clone().into() });
    Ok(TopologyDiff { changed, ..TopologyDiff::default() })
}

fn must_update(update: bool, place: &str, changed: &[String]) -> Result<()> {
    if update {
        return Ok(());
    }
    Err(Error::conflict(format!("it exists with other content: {}", changed.join(", ")))
        .at(place)
        .mend("declare it with `update` to take the new content"))
}

/// What a subscription is declared with.
pub(super) struct Subscription<'a> {
    pub(super) topic: &'a Name,
    pub(super) name: &'a str,
    pub(super) config: &'a InletConfig,
    pub(super) filter: &'a Filter,
    pub(super) start: StartFrom,
    pub(super) update: bool,
}

pub(super) fn declare_subscription(
    state: &State,
    draft: &mut Draft,
    ask: &Subscription<'_>,
    skew_us: i64,
) -> Result<TopologyDiff> {
    let name = Inlet::subscription(ask.topic.clone(), ask.name)?;
    let at = |error: Error| {
        let field = error.place().unwrap_or_default().to_owned();
        error.at(format!("subscription `{name}`, {field}"))
    };
    ask.config.check().and_then(|()| ask.filter.check()).map_err(at)?;
    let topic = state.find_topic(ask.topic).ok_or_else(|| no_topic(ask.topic))?;
    let fact = |inlet, start| Fact::Subscribed {
        inlet,
        topic: topic.id,
        name: name.clone(),
        config: Box::new(ask.config.clone()),
        filter: Box::new(ask.filter.clone()),
        start,
    };
    let Some(queue) = state.find(&name) else {
        let place = seek::start(state, topic, ask.start, skew_us)?;
        draft.grow(fact(state.next_inlet(), place.number));
        return Ok(TopologyDiff { created: true, clipped: place.clipped, ..TopologyDiff::default() });
    };
    let mut changed = change_inlet(queue, ask.config, ask.update)?;
    let filter = queue.reader.as_ref().map(|reader| &reader.filter);
    if filter != Some(ask.filter) {
        changed.push("filter".to_owned());
        must_update(ask.update, &format!("subscription `{name}`"), &changed)?;
    }
    if !changed.is_empty() {
        draft.grow(fact(queue.id, 0));
    }
    Ok(TopologyDiff { changed, ..TopologyDiff::default() })
}

pub(super) fn drop_topic(state: &State, draft: &mut Draft, name: &Name) -> Result<TopologyDiff> {
    let Some(topic) = state.find_topic(name) else { return Ok(TopologyDiff::default()) };
    if topic.readers_count() > 0 {
        return Err(Error::conflict(format!("it has {} subscriptions", topic.readers_count()))
            .at(format!("topic `{name}`"))
            .mend("drop them first"));
    }
    draft.drain(Fact::TopicDropped { topic: topic.id });
    Ok(TopologyDiff { dropped: true, ..TopologyDiff::default() })
}
