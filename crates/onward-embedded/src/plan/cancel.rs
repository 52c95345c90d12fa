//! Cancelling by id, and moving a due time.

use super::{
    Answer, Context, Draft, Planned,
    draft::{Touch, twice},
    no_inlet,
    record::audit,
};
use crate::{
    At, Fact, Removal, State,
    state::{Queue, Status},
};
use onward_core::{CancelOutcome, Error, Inlet, MessageId, Receipt, Timestamp};

/// The slot of a message by id.
///
/// # Errors
/// `Invalid` when this commit itself accepted it or changed it, `NotFound` when there is none.
fn find<'a>(
    state: &'a State,
    draft: &Draft,
    inlet: &Inlet,
    id: &MessageId,
    ctx: &Context<'_>,
) -> Result<(&'a Queue, Option<u32>), Error> {
    let queue = state.find(inlet).ok_or_else(|| no_inlet(inlet))?;
    let hash = ctx.marker.id(id);
    if draft.ids.contains(&(queue.id, hash)) {
        return Err(twice());
    }
    Ok((queue, queue.slot_of_id(hash)))
}

pub(super) fn no_message(inlet: &Inlet, id: &MessageId) -> Error {
    Error::not_found("no message of this id").at(format!("message `{id}` of `{inlet}`"))
}

pub(super) fn plan(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    id: &MessageId,
    ctx: &mut Context<'_>,
) -> Planned {
    let (queue, slot) = find(state, draft, inlet, id, ctx)?;
    let outcome = match slot.map(|slot| (slot, queue.slab.get(slot).status)) {
        None if queue.finished.has_id(ctx.marker.id(id)) => CancelOutcome::AlreadyFinished,
        None => return Err(no_message(inlet, id).into()),
        Some((slot, Status::Waiting | Status::Delayed)) => {
            cancel_waiting(draft, queue, slot)?;
            CancelOutcome::Cancelled
        }
        Some((slot, Status::Leased | Status::Gone)) => {
            let message = queue.reference(slot);
            if draft.touched.contains_key(&(queue.id, message.seq)) {
                return Err(twice().into());
            }
            if queue.leases.get(&message.seq).is_some_and(|lease| !lease.cancel_requested) {
                draft.drain(Fact::CancelRequested { at: At { inlet: queue.id, message } });
            }
            CancelOutcome::Requested
        }
        Some((_, Status::Dead | Status::Kept)) => CancelOutcome::AlreadyFinished,
    };
    audit(state, draft, "cancel", inlet, &format!("{id}: {outcome:?}"), ctx);
    Ok(Answer::Ready(Receipt::Cancelled(outcome)))
}

fn cancel_waiting(draft: &mut Draft, queue: &Queue, slot: u32) -> Result<(), Error> {
    let message = queue.reference(slot);
    draft.touch(queue.id, message.seq, Touch::Other)?;
    draft.add_load(queue.id, -1, -i64::from(queue.slab.get(slot).size));
    if let Some(key) = queue.side(slot).and_then(|side| side.unique_key.clone())
        && queue.slot_of_unique(&key) == Some(slot)
    {
        draft.unique.entry((queue.id, key)).or_insert(None);
    }
    draft.drain(Fact::Removed {
        inlet: queue.id,
        messages: vec![message],
        why: Removal::Cancelled,
        bulk: None,
    });
    Ok(())
}

pub(super) fn reschedule(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    id: &MessageId,
    due: Timestamp,
    ctx: &mut Context<'_>,
) -> Planned {
    let (queue, slot) = find(state, draft, inlet, id, ctx)?;
    let slot = slot.ok_or_else(|| no_message(inlet, id))?;
    if !matches!(queue.slab.get(slot).status, Status::Waiting | Status::Delayed) {
        return Err(Error::conflict("it is neither waiting nor delayed, so its due time can't be moved")
            .at(format!("message `{id}` of `{inlet}`"))
            .into());
    }
    let message = queue.reference(slot);
    let due = Timestamp::from_micros(due.as_micros().saturating_add(ctx.skew_us));
    draft.touch(queue.id, message.seq, Touch::Other)?;
    draft.grow(Fact::Rescheduled { at: At { inlet: queue.id, message }, due });
    Ok(Answer::Ready(Receipt::Done))
}
