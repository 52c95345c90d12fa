//! Publishing: once into the topic, whatever the number of its subscriptions.

use super::{Answer, Context, Draft, Planned, draft::Claimed};
use crate::{Fact, Marks, State, TopicId, state::Topic};
use onward_core::{Accepted, Error, Message, Name, Position, Receipt, Result, RetryHint, TopicConfig};
use std::{sync::Arc, time::Duration};

pub(super) fn plan(
    state: &State,
    draft: &mut Draft,
    name: &Name,
    message: &Arc<Message>,
    marks: &Marks,
    ctx: &mut Context<'_>,
) -> Planned {
    if message.unique_key.is_some() {
        return Err(Error::invalid("a topic has no unfinished work that could be unique")
            .at("`unique_key`")
            .mend("leave it out, or enqueue into a queue")
            .into());
    }
    let topic = state.find_topic(name);
    let (id, declared) = match topic {
        Some(topic) => (topic.id, false),
        None => declare_default(state, draft, name, ctx)?,
    };
    let default = TopicConfig::default();
    check_size(name, topic.map_or(&default, |topic| &topic.config), message)?;
    if let Some(answer) = repeat(topic, draft, id, message, marks, declared, ctx)? {
        return Ok(answer);
    }
    make_room(name, topic, draft, id, message)?;
    let fact = draft.grow(Fact::Published {
        topic: id,
        message: message.clone(),
        marks: *marks,
        skew_us: ctx.skew_us,
    });
    let claimed = Claimed { fact, fingerprint: marks.fingerprint, id: message.id.clone() };
    draft.published.insert((id, marks.dedup), claimed);
    Ok(Answer::Accepted { fact, id: message.id.clone(), duplicate: false, declared })
}

/// The number of a topic that does not exist yet; declares it with defaults unless the engine is strict.
fn declare_default(
    state: &State,
    draft: &mut Draft,
    name: &Name,
    ctx: &Context<'_>,
) -> Result<(TopicId, bool)> {
    if let Some((_, id)) = draft.topics.iter().find(|(known, _)| known == name) {
        return Ok((*id, false));
    }
    if ctx.strict {
        return Err(super::no_topic(name).mend("declare it first: this engine is strict"));
    }
    let id = TopicId(state.next_topic().0 + draft.topics.len() as u32);
    draft.grow(Fact::TopicDeclared { topic: id, name: name.clone(), config: Box::default() });
    draft.topics.push((name.clone(), id));
    Ok((id, true))
}

fn check_size(name: &Name, config: &TopicConfig, message: &Message) -> Result<()> {
    let (bytes, most) = (message.size() as u64, config.payload_bytes_max);
    if bytes <= most {
        return Ok(());
    }
    Err(Error::invalid(format!("has {bytes} bytes, more than the {most} that topic `{name}` allows"))
        .at("`data`")
        .mend("put it into object storage and send a reference (claim check), or raise `payload_bytes_max`"))
}

/// The answer when the message was published already.
fn repeat(
    topic: Option<&Topic>,
    draft: &Draft,
    id: TopicId,
    message: &Message,
    marks: &Marks,
    declared: bool,
    ctx: &Context<'_>,
) -> Result<Option<Answer>> {
    if let Some(first) = draft.published.get(&(id, marks.dedup)) {
        super::enqueue::same_content(first.fingerprint, marks, message)?;
        let first = first.clone();
        return Ok(Some(Answer::Accepted { fact: first.fact, id: first.id, duplicate: true, declared }));
    }
    let Some(topic) = topic else { return Ok(None) };
    let Some(first) = topic.finished.get(marks.dedup, ctx.now, topic.dedup_window()) else {
        return Ok(None);
    };
    super::enqueue::same_content(first.fingerprint, marks, message)?;
    Ok(Some(Answer::Ready(Receipt::Accepted(Accepted {
        id: first.id.clone().unwrap_or_else(|| message.id.clone()),
        duplicate: true,
        declared: false,
        position: Some(Position(first.seq)),
        durability: ctx.durability,
    }))))
}

/// Checks the topic's bounds. A retention by bytes makes room by itself.
fn make_room(
    name: &Name,
    topic: Option<&Topic>,
    draft: &mut Draft,
    id: TopicId,
    message: &Message,
) -> Result<()> {
    let load = draft.topic_load.entry(id).or_default();
    let (count, bytes) = (load.0 + 1, load.1 + message.size() as u64);
    if let Some(topic) = topic {
        let (kept, config) = (topic.shelf.head() - topic.shelf.floor(), &topic.config);
        if kept + count > config.depth_max || topic.bytes + bytes > config.bytes_max {
            let what = format!("it keeps {kept} messages with {} bytes", topic.bytes);
            return Err(Error::full(what)
                .at(format!("topic `{name}`"))
                .retry(RetryHint::After(Duration::from_secs(1)))
                .mend("let the subscription that is furthest behind catch up or drop it, set a retention, or raise `depth_max` or `bytes_max`"));
        }
    }
    *load = (count, bytes);
    Ok(())
}
