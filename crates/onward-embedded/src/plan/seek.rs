//! Moving a subscription to another place of its topic.

use super::{Answer, Context, Draft, Planned, no_inlet, record::audit};
use crate::{Fact, State, state::Topic};
use onward_core::{Error, Inlet, Position, Receipt, Result, SeekMode, SeekTo, Sought, StartFrom, Timestamp};

/// A place of a topic: the number of a message, and whether what was asked for is not kept any more.
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) clipped: bool,
}

/// The place that a new subscription begins at.
pub(super) fn start(state: &State, topic: &Topic, from: StartFrom, skew_us: i64) -> Result<Place> {
    place(
        state,
        topic,
        match from {
            StartFrom::Now => SeekTo::End,
            StartFrom::Beginning => SeekTo::Beginning,
            StartFrom::Time(time) => SeekTo::Time(time),
            StartFrom::Position(position) => SeekTo::Position(position),
        },
        skew_us,
    )
}

fn place(state: &State, topic: &Topic, to: SeekTo, skew_us: i64) -> Result<Place> {
    let shelf = &topic.shelf;
    let lost = shelf.floor() > 0;
    let oldest = shelf.get(shelf.floor());
    Ok(match to {
        SeekTo::Beginning => Place { number: shelf.floor(), clipped: false },
        SeekTo::End => Place { number: shelf.head(), clipped: false },
        SeekTo::Time(time) => {
            let time = Timestamp::from_micros(time.as_micros().saturating_add(skew_us));
            let number = shelf.since(time);
            let before = oldest.is_none_or(|oldest| time < oldest.accepted_at) && number == shelf.floor();
            Place { number, clipped: lost && before && time < state.time() }
        }
        SeekTo::Position(position) => {
            if position.0 == 0 || position.0 > state.end() {
                return Err(unknown(topic, position));
            }
            let number = shelf.at_or_after(position.0);
            let before = oldest.is_none_or(|oldest| position.0 < oldest.seq) && number == shelf.floor();
            Place { number, clipped: lost && before }
        }
    })
}

fn unknown(topic: &Topic, position: Position) -> Error {
    Error::not_found("no message has this position, nor had one")
        .at(format!("position {} of topic `{}`", position.0, topic.name))
        .mend("use a position that a receipt, a delivery or a read of the topic has told")
}

pub(super) fn plan(
    state: &State,
    draft: &mut Draft,
    inlet: &Inlet,
    to: SeekTo,
    mode: SeekMode,
    ctx: &mut Context<'_>,
) -> Planned {
    let queue = state.find(inlet).ok_or_else(|| no_inlet(inlet))?;
    let (Some(reader), Some(topic)) = (&queue.reader, state.topic_of(queue)) else {
        return Err(Error::invalid("a queue keeps no past that it could be moved to")
            .at(format!("`{inlet}`"))
            .mend("name a subscription, as in `orders:analytics`")
            .into());
    };
    draft.must_be_untouched(queue.id)?;
    if !draft.moved.insert(queue.id) {
        return Err(super::draft::twice().into());
    }
    let place = place(state, topic, to, ctx.skew_us)?;
    let again = mode == SeekMode::Reprocess;
    let messages = match (again, place.number < reader.cursor) {
        (false, true) => reader.gaps.clone().take(place.number, reader.cursor).total(),
        _ => topic.shelf.head() - place.number,
    };
    let sought = Sought {
        next: topic.shelf.get(place.number).map(|entry| Position(entry.seq)),
        messages,
        clipped: place.clipped,
        replay: reader.replay.saturating_add(u32::from(again)),
    };
    draft.drain(Fact::Sought { inlet: queue.id, to: place.number, again });
    let what = format!("{to:?} {mode:?}: {messages} messages come");
    audit(state, draft, "seek", inlet, &what, ctx);
    Ok(Answer::Ready(Receipt::Sought(sought)))
}
