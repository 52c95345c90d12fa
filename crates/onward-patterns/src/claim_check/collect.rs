//! The collection: removes payloads whose messages are gone.
//!
//! A payload's name says whose it is, so each is decided by one look at its message, which the engine answers from one
//! moment. Nothing is concluded from a walk over all messages, in which one that moves could be missed. A topic is read
//! before its subscriptions are asked: messages go from the topic into a subscription and never back.

use super::{ClaimCheck, payloads::Stored};
use crate::Destination;
use onward_core::{
    Capability, ErrorKind, EventRead, EventScope, Inlet, MessageId, MessageQuery, MessageState, Name,
    PAGE_MAX, Result,
};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

/// What a collection did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Payloads removed: their messages are gone.
    pub removed: u64,
    /// Payloads kept: their messages wait, are worked on, are dead letters or are kept by a topic.
    pub kept: u64,
    /// Payloads too young to be looked at.
    pub young: u64,
}

/// The messages that each topic still holds, read at most once a collection.
type OfTopics = HashMap<Name, HashSet<MessageId>>;

impl ClaimCheck {
    /// Removes the payloads that are older than `grace` and whose messages are gone. Safe beside everything else, and
    /// to repeat.
    ///
    /// Guarantees: no payload is removed while a message of its id is in hand where it was sent, dead letters included.
    /// `grace` must be longer than from the storing of a payload to the answer of its message's commit, repeats
    /// included ([`super::GRACE_DEFAULT`] is).
    ///
    /// Limits: the ids of all messages that a topic keeps are held in memory while its payloads are looked at.
    ///
    /// # Errors
    /// `Unsupported` where the engine can't look at messages without leasing; what engine and store answer. What was
    /// removed before stays removed.
    pub async fn collect(&self, grace: Duration) -> Result<Collected> {
        self.inner.capabilities().require(Capability::Browse, "the collection of payloads")?;
        let newest = self.env.now().minus(grace);
        let (mut collected, mut topics) = (Collected::default(), OfTopics::new());
        for stored in self.payloads.list().await? {
            if stored.since > newest {
                collected.young += 1;
            } else if self.is_needed(&stored, &mut topics).await? {
                collected.kept += 1;
            } else {
                self.payloads.remove(&stored.path).await?;
                collected.removed += 1;
            }
        }
        Ok(collected)
    }

    async fn is_needed(&self, stored: &Stored, topics: &mut OfTopics) -> Result<bool> {
        let (to, id) = &stored.owner;
        let inlets = match to {
            Destination::Queue(queue) => vec![Inlet::Queue(queue.clone())],
            Destination::Topic(topic) => {
                if !topics.contains_key(topic) {
                    topics.insert(topic.clone(), self.ids_of(topic).await?);
                }
                if topics[topic].contains(id) {
                    return Ok(true);
                }
                self.subscriptions(topic).await?
            }
        };
        for inlet in inlets {
            if self.has_in_hand(inlet, id).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an inlet has a message of this id in hand. Which one it is does not matter: an id may be used again, and
    /// a payload is rather kept a while longer.
    async fn has_in_hand(&self, inlet: Inlet, id: &MessageId) -> Result<bool> {
        let is_in_hand = |state| match state {
            MessageState::Waiting | MessageState::Delayed | MessageState::Leased | MessageState::Dead => true,
            MessageState::Done | MessageState::Expired | MessageState::Cancelled => false,
        };
        match self.inner.find(MessageQuery::id(inlet, id.clone())).await {
            Ok(page) => Ok(page.items.iter().any(|view| is_in_hand(view.state))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn subscriptions(&self, topic: &Name) -> Result<Vec<Inlet>> {
        let of_topic =
            |inlet: &Inlet| matches!(inlet, Inlet::Subscription { topic: one, .. } if one == topic);
        let inlets = self.inner.topology().await?.inlets.into_iter().map(|(inlet, _)| inlet);
        Ok(inlets.filter(of_topic).collect())
    }

    async fn ids_of(&self, topic: &Name) -> Result<HashSet<MessageId>> {
        let mut ids = HashSet::new();
        let mut read = EventRead { limit: PAGE_MAX, ..EventRead::all_of(EventScope::Topic(topic.clone())) };
        loop {
            let slice = match self.inner.read_events(read.clone()).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ids),
                slice => slice?,
            };
            let next = slice.next.filter(|_| !slice.events.is_empty());
            ids.extend(slice.events.into_iter().map(|one| one.event.message.id));
            match next {
                Some(next) => read.from = next,
                None => return Ok(ids),
            }
        }
    }
}
