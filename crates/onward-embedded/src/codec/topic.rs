//! The binary form of facts about topics and subscriptions.

use super::{
    fact::{get_body, kind, put, put_body},
    wire::{Decoded, Input, Malformed, Wire, put_bytes},
};
use crate::{Fact, TopicId, store::Stored};
use bytes::Bytes;
use onward_core::{Filter, Timestamp, TopicConfig};

impl Wire for TopicId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Wire::get(input).map(Self)
    }
}

/// Rules are rare and grow with time: they carry the names of their fields, and those missing have their default.
macro_rules! wire_named {
    ($($type:ty: $what:literal),*) => { $(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let named = rmp_serde::to_vec_named(self).expect("plain data into memory can't fail");
                put_bytes(&named, out);
            }

            fn get(input: &mut Input<'_>) -> Decoded<Self> {
                rmp_serde::from_slice(input.bytes()?).map_err(|_| Malformed($what))
            }
        }
    )* };
}

wire_named!(TopicConfig: "a topic's rules can't be read", Filter: "a filter can't be read");

pub(super) fn put_topic_fact<'f>(fact: &'f Fact, time: Timestamp, out: &mut Vec<u8>) -> (u8, &'f [u8]) {
    let kind = match fact {
        Fact::TopicDeclared { topic, name, config } => {
            (*topic, name.clone()).put(out);
            put(kind::TOPIC_DECLARED, &**config, out)
        }
        Fact::TopicDropped { topic } => put(kind::TOPIC_DROPPED, topic, out),
        Fact::Published { topic, message, marks, skew_us } => {
            (*topic, *marks).put(out);
            skew_us.put(out);
            return (kind::PUBLISHED, put_body(time, message, out));
        }
        Fact::Subscribed { inlet, topic, name, config, filter, start } => {
            (*inlet, *topic).put(out);
            name.put(out);
            config.put(out);
            filter.put(out);
            put(kind::SUBSCRIBED, start, out)
        }
        Fact::Drawn { inlet, from, until, unfit } => {
            inlet.put(out);
            // Mostly a short span of high numbers, and no unfit ones.
            (*from, until.wrapping_sub(*from)).put(out);
            let places: Vec<u64> = unfit.iter().map(|number| number.wrapping_sub(*from)).collect();
            put(kind::DRAWN, &places, out)
        }
        Fact::Passed { inlet, until, why, bulk } => {
            (*inlet, *until).put(out);
            put(kind::PASSED, &(*why, *bulk), out)
        }
        Fact::Sought { inlet, to, again } => {
            (*inlet, *to).put(out);
            put(kind::SOUGHT, again, out)
        }
        Fact::Trimmed { topic } => put(kind::TRIMMED, topic, out),
        Fact::TopicMoved { topic, which, accepted_at, message } => {
            (*topic, *which).put(out);
            return (kind::TOPIC_MOVED, put_body(*accepted_at, message, out));
        }
        _ => unreachable!("every other fact has a form of its own"),
    };
    (kind, &[])
}

/// The fact of a kind that is about topics; `None` for the others.
pub(super) fn get_topic_fact(kind: u8, input: &mut Input<'_>, record: &Bytes) -> Decoded<Option<Fact>> {
    Ok(Some(match kind {
        kind::TOPIC_DECLARED => Fact::TopicDeclared {
            topic: Wire::get(input)?,
            name: Wire::get(input)?,
            config: Box::new(Wire::get(input)?),
        },
        kind::TOPIC_DROPPED => Fact::TopicDropped { topic: Wire::get(input)? },
        kind::PUBLISHED => {
            let ((topic, marks), skew_us) = Wire::get(input)?;
            Fact::Published { topic, marks, skew_us, message: get_body(input, record)?.message }
        }
        kind::SUBSCRIBED => Fact::Subscribed {
            inlet: Wire::get(input)?,
            topic: Wire::get(input)?,
            name: Wire::get(input)?,
            config: Wire::get(input)?,
            filter: Wire::get(input)?,
            start: Wire::get(input)?,
        },
        kind::DRAWN => {
            let (inlet, (from, span)) = (Wire::get(input)?, <(u64, u64)>::get(input)?);
            let places = Vec::<u64>::get(input)?;
            let unfit = places.into_iter().map(|place| from.wrapping_add(place)).collect();
            Fact::Drawn { inlet, from, until: from.wrapping_add(span), unfit }
        }
        kind::PASSED => Fact::Passed {
            inlet: Wire::get(input)?,
            until: Wire::get(input)?,
            why: Wire::get(input)?,
            bulk: Wire::get(input)?,
        },
        kind::SOUGHT => {
            Fact::Sought { inlet: Wire::get(input)?, to: Wire::get(input)?, again: Wire::get(input)? }
        }
        kind::TRIMMED => Fact::Trimmed { topic: Wire::get(input)? },
        kind::TOPIC_MOVED => {
            let (topic, which) = Wire::get(input)?;
            let Stored { message, accepted_at, .. } = get_body(input, record)?;
            Fact::TopicMoved { topic, which, accepted_at, message }
        }
        _ => return Ok(None),
    }))
}
