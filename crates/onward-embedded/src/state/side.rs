//! What only some messages have: keys, times, failures, editions. Plain waiting messages have none of it.

use onward_core::{Cause, Key, Message, MessageId, MessageState, Payload, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The part of a message's knowledge that most messages lack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    pub(crate) order_key: Option<Key>,
    pub(crate) fairness_key: Option<Key>,
    pub(crate) unique_key: Option<Key>,
    /// The id, where a repeat by dedup or unique key must be told it.
    pub(crate) id: Option<MessageId>,
    /// It is deduplicated by a key of its own.
    pub(crate) own_dedup_key: bool,
    pub(crate) due: Option<Timestamp>,
    pub(crate) expiry: Option<Timestamp>,
    /// Attempts that count so far, the running one not included.
    pub(crate) attempts: u32,
    pub(crate) crashes: u32,
    pub(crate) suspect: bool,
    pub(crate) causes: Vec<Arc<Cause>>,
    pub(crate) progress: Option<Payload>,
    /// Where the body stands, when it was copied forward.
    pub(crate) body: Option<u64>,
    /// Where the latest edition's body stands.
    pub(crate) edition: Option<u64>,
    /// The number of the latest edition, where it was edited.
    pub(crate) edition_number: u32,
    /// The position and time of its death.
    pub(crate) dead: Option<(u64, Timestamp)>,
    /// When and how it finished, where it is kept for its result.
    pub(crate) ended: Option<(Timestamp, MessageState)>,
    pub(crate) result: Option<Payload>,
    /// Of a subscription: its replay epoch when the message was taken from the topic.
    #[serde(default)]
    pub(crate) replay: u32,
}

impl Side {
    /// What a new message brings along; `None` when that is nothing.
    pub(crate) fn of(message: &Message, skew_us: i64) -> Option<Box<Self>> {
        let shift = |at: Timestamp| Timestamp::from_micros(at.as_micros().saturating_add(skew_us));
        let own_dedup_key = message.dedup_key.is_some();
        let named = own_dedup_key || message.unique_key.is_some();
        let side = Self {
            order_key: message.order_key.clone(),
            fairness_key: message.fairness_key.clone(),
            unique_key: message.unique_key.clone(),
            id: named.then(|| message.id.clone()),
            own_dedup_key,
            due: message.due.map(shift),
            expiry: message.expiry.map(shift),
            edition_number: message.edition,
            ..Self::default()
        };
        let plain = !named
            && side.order_key.is_none()
            && side.fairness_key.is_none()
            && side.due.is_none()
            && side.expiry.is_none()
            && message.edition == 1;
        (!plain).then(|| Box::new(side))
    }

    /// What a new message of a topic brings along. What deduplicates it is the topic's concern.
    pub(crate) fn of_published(message: &Message, skew_us: i64) -> Option<Box<Self>> {
        let mut side = Self::of(message, skew_us)?;
        (side.own_dedup_key, side.unique_key, side.id) = (false, None, None);
        let plain = side.order_key.is_none()
            && side.fairness_key.is_none()
            && side.due.is_none()
            && side.expiry.is_none()
            && message.edition == 1;
        (!plain).then_some(side)
    }

    /// Adds a failed attempt, keeping the first and the latest ones within `most`.
    pub(crate) fn add_cause(&mut self, cause: &Cause, most: u32) {
        let most = most.max(1) as usize;
        if self.causes.len() >= most {
            let first_kept = most / 2;
            self.causes.remove(first_kept.min(self.causes.len() - 1));
        }
        self.causes.push(Arc::new(cause.clone()));
    }
}
