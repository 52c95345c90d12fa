//! Taking messages from a topic into a subscription: lazily, when a lease or a reader needs them.

use super::{Context, Draft};
use crate::{
    Fact, InletId, Removal, State,
    state::{Queue, Topic},
};
use onward_core::Overflow;

/// So many messages are taken beyond what was asked for, so that the next requests find them.
const AHEAD: u64 = 128;
/// Most messages of a topic that one step looks at.
const LOOK_MAX: u64 = 4_096;
/// Most bodies that one step reads, where a filter looks at headers.
const READ_MAX: usize = 64;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// There is nothing to take, or enough is there, or no room.
    Nothing,
    /// A fact was drafted: append it, then ask again.
    Drafted,
    /// Read the bodies at these positions, then plan again.
    NeedsBodies(Vec<u64>),
}

/// Plans one step towards `want` messages that can be handed out.
pub(crate) fn draw(
    state: &State,
    draft: &mut Draft,
    inlet: InletId,
    want: u64,
    ctx: &Context<'_>,
) -> Drawing {
    let Some(queue) = state.queue(inlet) else { return Drawing::Nothing };
    let (Some(reader), Some(topic)) = (&queue.reader, state.topic_of(queue)) else { return Drawing::Nothing };
    if queue.ready.len() as u64 >= want {
        return Drawing::Nothing;
    }
    let room = queue.config.depth_max.saturating_sub(queue.depth());
    if let Some(until) = sheds(queue, topic, room) {
        draft.drain(Fact::Passed { inlet, until, why: Removal::Shed, bulk: None });
        return Drawing::Drafted;
    }
    let most = room.min(want - queue.ready.len() as u64 + AHEAD);
    let Some((from, end)) = reader.next_span(topic).filter(|_| most > 0) else { return Drawing::Nothing };
    let by_headers = !reader.filter.headers.is_empty();
    let (mut until, mut taken, mut unfit, mut unread) = (from, 0, Vec::new(), Vec::new());
    while until < end.min(from + LOOK_MAX) && taken < most {
        let Some(entry) = topic.shelf.get(until).filter(|entry| entry.seq < ctx.visible) else { break };
        if topic.takes(&reader.filter, entry) {
            match by_headers.then(|| ctx.bodies.get(&topic.body(entry.seq))) {
                None => taken += 1,
                Some(Some(stored)) if reader.filter.takes_headers(&stored.message.headers) => taken += 1,
                Some(Some(_)) => unfit.push(until),
                Some(None) => unread.push((until, topic.body(entry.seq))),
            }
        }
        if unread.len() == READ_MAX {
            break;
        }
        until += 1;
    }
    if let Some((first, _)) = unread.first() {
        // What is known before it is taken first, so that bodies need not be kept for long.
        until = *first;
        unfit.retain(|number| *number < until);
    }
    match (until == from, unread.is_empty()) {
        (true, true) => return Drawing::Nothing,
        (true, false) => {
            return Drawing::NeedsBodies(unread.into_iter().map(|(_, position)| position).collect());
        }
        (false, _) => {}
    }
    draft.drain(Fact::Drawn { inlet, from, until, unfit });
    Drawing::Drafted
}

/// The number before which a subscription that sheds must pass over what it has not reached.
fn sheds(queue: &Queue, topic: &Topic, room: u64) -> Option<u64> {
    let reader = queue.reader.as_ref()?;
    if queue.config.overflow != Overflow::ShedLowest || reader.unreached(topic) <= room {
        return None;
    }
    let until = topic.shelf.head() - room.min(topic.shelf.head());
    (until > reader.low()).then_some(until)
}

/// Whether a subscription may take more for the sake of a request that found nothing.
pub(crate) fn may_draw_more(queue: &Queue) -> bool {
    let free = queue.config.concurrency_max.is_none_or(|most| (queue.leases.len() as u64) < u64::from(most));
    queue.reader.is_some() && !queue.paused && !queue.stopped_dead_full() && free
}
