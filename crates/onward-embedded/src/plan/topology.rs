//! Declaring and removing queues, pausing and resuming.

use super::{Answer, Context, Draft, Planned, no_inlet, record::audit, topics};
use crate::{Fact, InletId, State, state::Queue};
use onward_core::{Error, Inlet, InletConfig, OrderPolicy, Receipt, Result, TopologyChange, TopologyDiff};
use serde_json::Value;

/// Plans a change of what exists.
///
/// `skew_us` is the engine's clock less the wall clock, which start times are said by.
pub(crate) fn declare(
    state: &State,
    draft: &mut Draft,
    change: &TopologyChange,
    skew_us: i64,
) -> Result<TopologyDiff> {
    match change {
        TopologyChange::Queue { name, config, update } => {
            config.check().map_err(|error| {
                let field = error.place().unwrap_or_default().to_owned();
                error.at(format!("queue `{name}`, {field}"))
            })?;
            let inlet = Inlet::Queue(name.clone());
            match state.find(&inlet) {
                Some(queue) => change_queue(draft, queue, config, *update),
                None => Ok(create(draft, state.next_inlet(), inlet, config)),
            }
        }
        TopologyChange::DropInlet { inlet, only_if_empty } => drop_inlet(state, draft, inlet, *only_if_empty),
        TopologyChange::Topic { name, config, update } => {
            topics::declare_topic(state, draft, name, config, *update)
        }
        TopologyChange::Subscription { topic, name, config, filter, start, update } => {
            let ask = topics::Subscription { topic, name, config, filter, start: *start, update: *update };
            topics::declare_subscription(state, draft, &ask, skew_us)
        }
        TopologyChange::DropTopic { name } => topics::drop_topic(state, draft, name),
    }
}

fn create(draft: &mut Draft, id: InletId, name: Inlet, config: &InletConfig) -> TopologyDiff {
    draft.grow(Fact::Declared { inlet: id, name, config: Box::new(config.clone()) });
    TopologyDiff { created: true, ..TopologyDiff::default() }
}

fn change_queue(
    draft: &mut Draft,
    queue: &Queue,
    config: &InletConfig,
    update: bool,
) -> Result<TopologyDiff> {
    let changed = change_inlet(queue, config, update)?;
    if !changed.is_empty() {
        draft.grow(Fact::Declared {
            inlet: queue.id,
            name: queue.name.clone(),
            config: Box::new(config.clone()),
        });
    }
    Ok(TopologyDiff { changed, ..TopologyDiff::default() })
}

/// The fields of an inlet's rules that would change, once it is found that they may.
pub(super) fn change_inlet(queue: &Queue, config: &InletConfig, update: bool) -> Result<Vec<String>> {
    let changed = changed_fields(&*queue.config, config)?;
    if changed.is_empty() {
        return Ok(changed);
    }
    let conflict = |what: String, mend: &str| {
        Error::conflict(what).at(format!("{} `{}`", kind_of(&queue.name), queue.name)).mend(mend)
    };
    if !update {
        let what = format!("it exists with other content: {}", changed.join(", "));
        return Err(conflict(what, "declare it with `update` to take the new content"));
    }
    let empty = queue.depth() == 0 && queue.books.dead == 0 && queue.leases.is_empty();
    let ordered = |order: &OrderPolicy| matches!(order, OrderPolicy::ByKey { .. });
    if !empty
        && (ordered(&queue.config.order) != ordered(&config.order)
            || queue.config.guarantee != config.guarantee)
    {
        let what = "`order` and `guarantee` can't change while it has messages".to_owned();
        return Err(conflict(what, "drain it first, or use a new one"));
    }
    Ok(changed)
}

/// What an inlet is called in messages to people.
pub(super) fn kind_of(inlet: &Inlet) -> &'static str {
    match inlet {
        Inlet::Queue(_) => "queue",
        Inlet::Subscription { .. } => "subscription",
    }
}

/// The fields in which two rules differ.
pub(super) fn changed_fields<T: PartialEq + serde::Serialize>(old: &T, new: &T) -> Result<Vec<String>> {
    if old == new {
        return Ok(Vec::new());
    }
    let value = |config: &T| {
        serde_json::to_value(config)
            .map_err(|error| Error::internal(format!("a configuration as JSON: {error}")))
    };
    let (Value::Object(old), Value::Object(new)) = (value(old)?, value(new)?) else { return Ok(Vec::new()) };
    Ok(new
        .into_iter()
        .filter(|(field, value)| old.get(field) != Some(value))
        .map(|(field, _)| field)
        .collect())
}

fn drop_inlet(state: &State, draft: &mut Draft, inlet: &Inlet, only_if_empty: bool) -> Result<TopologyDiff> {
    let Some(queue) = state.find(inlet) else { return Ok(TopologyDiff::default()) };
    let behind = queue.reader.as_ref().zip(state.topic_of(queue)).map_or(0, |(r, topic)| r.unreached(topic));
    let waits = queue.depth() + behind;
    if only_if_empty && (waits > 0 || queue.books.dead > 0 || !queue.leases.is_empty()) {
        let what = format!("it has {waits} messages and {} dead letters", queue.books.dead);
        return Err(Error::conflict(what)
            .at(format!("{} `{inlet}`", kind_of(inlet)))
            .mend("drain it, or drop it with what is in it"));
    }
    draft.drain(Fact::Dropped { inlet: queue.id });
    Ok(TopologyDiff { dropped: true, ..TopologyDiff::default() })
}

/// The number of a queue that does not exist yet; declares it with defaults unless the engine is strict.
///
/// Answers whether this very operation declared it.
pub(crate) fn declare_default(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    ctx: &Context<'_>,
) -> Result<(InletId, bool)> {
    if let Some((_, id, _)) = draft.declared.iter().find(|(name, _, _)| name == inlet) {
        return Ok((*id, false));
    }
    if ctx.strict {
        return Err(no_inlet(inlet).mend("declare it first: this engine is strict"));
    }
    let id = InletId(state.next_inlet().0 + draft.declared.len() as u32);
    create(draft, id, inlet.clone(), &InletConfig::default());
    draft.declared.push((inlet.clone(), id, InletConfig::default()));
    Ok((id, true))
}

pub(super) fn pause(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    paused: bool,
    ctx: &mut Context<'_>,
) -> Planned {
    let queue = state.find(inlet).ok_or_else(|| no_inlet(inlet))?;
    if queue.paused != paused {
        draft.drain(Fact::Paused { inlet: queue.id, paused });
        audit(state, draft, if paused { "pause" } else { "resume" }, inlet, "", ctx);
    }
    Ok(Answer::Ready(Receipt::Done))
}
