//! Declaring and removing queues, pausing and resuming.

use super::{Answer, Context, Draft, Planned, no_inlet, record::audit};
use crate::{Fact, InletId, State, state::Queue};
use onward_core::{Error, Inlet, InletConfig, OrderPolicy, Receipt, Result, TopologyChange, TopologyDiff};
use serde_json::Value;

/// Plans a change of what exists.
pub(crate) fn declare(state: &State, draft: &mut Draft, change: &TopologyChange) -> Result<TopologyDiff> {
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
        TopologyChange::Topic { .. }
        | TopologyChange::Subscription { .. }
        | TopologyChange::DropTopic { .. } => {
            Err(Error::unsupported("topics and subscriptions are not in this release")
                .mend("use one queue for each reader"))
        }
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
    let changed = changed_fields(&queue.config, config)?;
    if changed.is_empty() {
        return Ok(TopologyDiff::default());
    }
    let conflict =
        |what: String, mend: &str| Error::conflict(what).at(format!("queue `{}`", queue.name)).mend(mend);
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
        return Err(conflict(what, "drain it first, or use a new queue"));
    }
    draft.grow(Fact::Declared {
        inlet: queue.id,
        name: queue.name.clone(),
        config: Box::new(config.clone()),
    });
    Ok(TopologyDiff { changed, ..TopologyDiff::default() })
}

fn changed_fields(old: &InletConfig, new: &InletConfig) -> Result<Vec<String>> {
    if old == new {
        return Ok(Vec::new());
    }
    let value = |config| {
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
    if only_if_empty && (queue.depth() > 0 || queue.books.dead > 0 || !queue.leases.is_empty()) {
        let what = format!("it has {} messages and {} dead letters", queue.depth(), queue.books.dead);
        return Err(Error::conflict(what)
            .at(format!("queue `{inlet}`"))
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
