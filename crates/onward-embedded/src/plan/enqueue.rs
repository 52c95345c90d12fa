//! Accepting a message: repeats, unique work, bounds.

use super::{
    Answer, Context, Draft, Planned, Refusal,
    draft::{Claimed, Touch},
    topology::declare_default,
};
use crate::{
    Fact, InletId, Marks, Removal, State,
    state::{Queue, Status},
};
use onward_core::{
    Accepted, Error, Inlet, Message, MessageId, Overflow, PAYLOAD_BYTES_DEFAULT, Position, Receipt, RetryHint,
};
use std::{sync::Arc, time::Duration};

pub(super) fn plan(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    message: &Arc<Message>,
    marks: &Marks,
    ctx: &mut Context<'_>,
) -> Planned {
    let queue = state.find(inlet);
    let mut declared = false;
    let id = match queue {
        Some(queue) => queue.id,
        None => {
            let (id, new) = declare_default(state, draft, inlet, ctx)?;
            declared = new;
            id
        }
    };
    let most = queue.map_or(PAYLOAD_BYTES_DEFAULT as u64, |queue| queue.config.payload_bytes_max);
    check_size(inlet, most, message)?;
    if let Some(found) = repeat(queue, draft, id, message, marks, declared, ctx)? {
        draft.duplicates.push(id);
        return Ok(found);
    }
    match queue {
        Some(queue) => make_room(queue, draft, message)?,
        None => draft.add_load(id, 1, message.size() as i64),
    }
    let fact = draft.grow(Fact::Enqueued {
        inlet: id,
        message: message.clone(),
        marks: *marks,
        skew_us: ctx.skew_us,
    });
    claim(draft, id, message, marks, fact);
    Ok(Answer::Accepted { fact, id: message.id.clone(), duplicate: false, declared })
}

fn check_size(inlet: &Inlet, most: u64, message: &Message) -> Result<(), Error> {
    let bytes = message.size() as u64;
    if bytes <= most {
        return Ok(());
    }
    Err(Error::invalid(format!("has {bytes} bytes, more than the {most} that `{inlet}` allows"))
        .at("`data`")
        .mend("put it into object storage and send a reference (claim check), or raise `payload_bytes_max`"))
}

/// Later operations of the same commit must see the message.
fn claim(draft: &mut Draft, id: InletId, message: &Message, marks: &Marks, fact: usize) {
    let claimed = Claimed { fact, fingerprint: marks.fingerprint, id: message.id.clone() };
    if let Some(key) = &message.unique_key {
        draft.unique.insert((id, key.clone()), Some(claimed.clone()));
    }
    draft.ids.insert((id, marks.id));
    draft.accepted.insert((id, marks.dedup), claimed);
}

/// The answer when the message, or its unique work, is there already.
fn repeat(
    queue: Option<&Queue>,
    draft: &Draft,
    id: InletId,
    message: &Message,
    marks: &Marks,
    declared: bool,
    ctx: &Context<'_>,
) -> Result<Option<Answer>, Refusal> {
    if let Some(first) = draft.accepted.get(&(id, marks.dedup)) {
        same_content(first.fingerprint, marks, message)?;
        let first = first.clone();
        return Ok(Some(Answer::Accepted { fact: first.fact, id: first.id, duplicate: true, declared }));
    }
    if let Some(found) = queue.map_or(Ok(None), |queue| repeat_in(queue, message, marks, ctx))? {
        return Ok(Some(found));
    }
    let Some(key) = &message.unique_key else { return Ok(None) };
    match draft.unique.get(&(id, key.clone())) {
        Some(Some(first)) => {
            let first = first.clone();
            Ok(Some(Answer::Accepted { fact: first.fact, id: first.id, duplicate: true, declared }))
        }
        Some(None) => Ok(None),
        None => Ok(queue.and_then(|queue| {
            let slot = queue.slot_of_unique(key)?;
            let first = queue.side(slot)?.id.clone()?;
            Some(duplicate(first, queue.slab.get(slot).seq, ctx))
        })),
    }
}

fn repeat_in(
    queue: &Queue,
    message: &Message,
    marks: &Marks,
    ctx: &Context<'_>,
) -> Result<Option<Answer>, Refusal> {
    let own_key = message.dedup_key.is_some();
    if let Some(slot) = queue.slot_of_dedup(marks, own_key) {
        let entry = queue.slab.get(slot);
        same_content(entry.marks.fingerprint, marks, message)?;
        let first = queue.side(slot).and_then(|side| side.id.clone()).filter(|_| own_key);
        return Ok(Some(duplicate(first.unwrap_or_else(|| message.id.clone()), entry.seq, ctx)));
    }
    let Some(first) = queue.finished.get(marks.dedup, ctx.now, queue.dedup_window()) else { return Ok(None) };
    same_content(first.fingerprint, marks, message)?;
    Ok(Some(duplicate(first.id.clone().unwrap_or_else(|| message.id.clone()), first.seq, ctx)))
}

fn duplicate(id: MessageId, seq: u64, ctx: &Context<'_>) -> Answer {
    Answer::Ready(Receipt::Accepted(Accepted {
        id,
        duplicate: true,
        declared: false,
        position: Some(Position(seq)),
        durability: ctx.durability,
    }))
}

/// Refuses a repeat with other content.
pub(super) fn same_content(first: u64, marks: &Marks, message: &Message) -> Result<(), Error> {
    if Marks::short_fingerprint(first) == Marks::short_fingerprint(marks.fingerprint) {
        return Ok(());
    }
    Err(Error::conflict("it was accepted before with another type, version or data")
        .at(format!("message `{}`", message.id))
        .mend("give what is new an id (or dedup key) of its own"))
}

/// Checks the inlet's bounds; where it sheds, lets less urgent messages go.
fn make_room(queue: &Queue, draft: &mut Draft, message: &Message) -> Result<(), Error> {
    if let Some(key) = &message.order_key {
        let stuck = queue.sets_aside() && queue.chains.get(key).is_some_and(|chain| chain.is_stuck());
        if stuck && queue.stopped_dead_full() {
            return Err(full(queue, "its order key is set aside and the dead letters are full"));
        }
    }
    let size = message.size() as i64;
    let config = &queue.config;
    let mut load = draft.load(queue.id);
    let fits = |load: super::draft::Load| {
        (queue.depth() as i64).saturating_add(load.depth) < config.depth_max.min(i64::MAX as u64) as i64
            && (queue.bytes as i64).saturating_add(load.bytes).saturating_add(size)
                <= config.bytes_max.min(i64::MAX as u64) as i64
    };
    let mut shed = Vec::new();
    if !fits(load) && config.overflow == Overflow::ShedLowest {
        for slot in queue.ready.less_urgent(&queue.slab, message.priority.get()) {
            let entry = queue.slab.get(slot);
            if draft.touched.contains_key(&(queue.id, entry.seq)) || entry.status != Status::Waiting {
                continue;
            }
            load.depth -= 1;
            load.bytes -= i64::from(entry.size);
            shed.push(queue.reference(slot));
            if fits(load) {
                break;
            }
        }
    }
    if !fits(load) {
        let what = format!("{} messages with {} bytes are unfinished", queue.depth(), queue.bytes);
        return Err(full(queue, &what));
    }
    if !shed.is_empty() {
        for message in &shed {
            draft.touch(queue.id, message.seq, Touch::Other)?;
        }
        draft.drain(Fact::Removed { inlet: queue.id, messages: shed, why: Removal::Shed, bulk: None });
    }
    load.depth += 1;
    load.bytes += size;
    draft.load.insert(queue.id, load);
    Ok(())
}

fn full(queue: &Queue, what: &str) -> Error {
    Error::full(what)
        .at(format!("queue `{}`", queue.name))
        .retry(RetryHint::After(Duration::from_secs(1)))
        .mend("wait until workers have caught up, or raise `depth_max` or `bytes_max`")
}
