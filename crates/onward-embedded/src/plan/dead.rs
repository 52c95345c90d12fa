//! Editing a dead letter: a new edition, the original kept.

use super::{
    Answer, Context, Draft, Planned, Refusal,
    cancel::no_message,
    draft::{Touch, twice},
    no_inlet,
    record::audit,
};
use crate::{At, Fact, State, state::Status};
use onward_core::{DeadEdit, Error, Inlet, Message, MessageId, Receipt};
use std::sync::Arc;

pub(super) fn edit(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    id: &MessageId,
    edit: &DeadEdit,
    ctx: &mut Context<'_>,
) -> Planned {
    let queue = state.find(inlet).ok_or_else(|| no_inlet(inlet))?;
    let hash = ctx.marker.id(id);
    if draft.ids.contains(&(queue.id, hash)) {
        return Err(twice().into());
    }
    let slot = queue.slot_of_id(hash).ok_or_else(|| no_message(inlet, id))?;
    if queue.slab.get(slot).status != Status::Dead {
        return Err(Error::conflict("only a dead letter can be edited")
            .at(format!("message `{id}` of `{inlet}`"))
            .into());
    }
    let position = queue.body(slot);
    let Some(stored) = ctx.bodies.get(&position) else { return Err(Refusal::NeedsBody(position)) };
    let edition = edited(&stored.message, edit);
    edition.check()?;
    if edition.size() as u64 > queue.config.payload_bytes_max {
        let most = queue.config.payload_bytes_max;
        let what = format!("would have {} bytes, more than {most}", edition.size());
        return Err(Error::invalid(what).at("`data`").into());
    }
    let at = At { inlet: queue.id, message: queue.reference(slot) };
    draft.touch(at.inlet, at.message.seq, Touch::Other)?;
    let number = edition.edition;
    draft.grow(Fact::Edited { at, message: Arc::new(edition) });
    audit(state, draft, "edit", inlet, &format!("{id}: edition {number}, {}", changes(edit)), ctx);
    Ok(Answer::Ready(Receipt::Edited { edition: number }))
}

fn edited(message: &Message, edit: &DeadEdit) -> Message {
    let mut edition = message.clone();
    edition.edition = message.edition.saturating_add(1);
    if let Some(data) = &edit.data {
        edition.data = data.clone();
    }
    if let Some(kind) = &edit.kind {
        edition.kind = kind.clone();
    }
    if let Some(version) = edit.version {
        edition.version = version;
    }
    for (name, value) in &edit.headers {
        match value {
            Some(value) => drop(edition.headers.insert(name.clone(), value.clone())),
            None => drop(edition.headers.remove(name)),
        }
    }
    edition
}

/// Which fields were changed; the contents stand in the editions, since they may be private.
fn changes(edit: &DeadEdit) -> String {
    let mut fields = Vec::new();
    fields.extend(edit.data.is_some().then_some("data"));
    fields.extend(edit.kind.is_some().then_some("type"));
    fields.extend(edit.version.is_some().then_some("version"));
    fields.extend((!edit.headers.is_empty()).then_some("headers"));
    format!("changed: {}", fields.join(", "))
}
