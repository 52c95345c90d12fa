//! How a message is staged: as it stands, but for the parts that would act in the outbox, which one header keeps.

use crate::Destination;
use onward_core::{Error, Key, Message, MessageId, Result, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The header of a staged message that keeps where it goes and what it is there.
pub const STAGED_HEADER: &str = "onward-outbox";

/// What the header keeps: the message's parts that would delay, end, merge or refuse it in the outbox already.
#[derive(Debug, Serialize, Deserialize)]
struct Staged {
    to: Destination,
    id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expiry: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dedup_key: Option<Key>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fairness_key: Option<Key>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unique_key: Option<Key>,
}

/// The message as it stands in the outbox. Its data, type and correlation stay, so that people find it and a repeat of
/// the same message is recognised as one.
pub(super) fn stage(to: &Destination, mut message: Message) -> Result<Message> {
    let id = staged_id(to, &message.id)?;
    let staged = Staged {
        id: std::mem::replace(&mut message.id, id),
        due: message.due.take(),
        expiry: message.expiry.take(),
        dedup_key: message.dedup_key.take(),
        fairness_key: message.fairness_key.take(),
        unique_key: message.unique_key.take(),
        to: to.clone(),
    };
    if message.headers.contains_key(STAGED_HEADER) {
        return Err(Error::invalid("is staged already").at(&staged.id).mend("stage the message itself"));
    }
    message.correlation_id.get_or_insert_with(|| staged.id.as_str().into());
    let header = serde_json::to_string(&staged).map_err(|e| Error::internal(e.to_string()))?;
    message.headers.insert(STAGED_HEADER.into(), header);
    message.check()?;
    Ok(message)
}

/// One id in an outbox for each message and destination: the same message may go to several.
fn staged_id(to: &Destination, id: &MessageId) -> Result<MessageId> {
    let hash = Sha256::digest(format!("{to}\n{id}"));
    MessageId::try_from(format!("outbox-{}", hex::encode(&hash[..16])))
}

/// The message as it was before it was staged, and where it goes.
///
/// # Errors
/// `Invalid` for a message that was not staged by an outbox.
pub fn unstage(mut message: Message) -> Result<(Destination, Message)> {
    let wrong = |what: String| {
        Error::invalid(what).at(STAGED_HEADER).mend("let only `Outbox::stage` put messages into an outbox")
    };
    let header = message.headers.remove(STAGED_HEADER).ok_or_else(|| wrong("has no such header".into()))?;
    let staged: Staged =
        serde_json::from_str(&header).map_err(|e| wrong(format!("the header can't be read: {e}")))?;
    let Staged { to, id, due, expiry, dedup_key, fairness_key, unique_key } = staged;
    Ok((to, Message { id, due, expiry, dedup_key, fairness_key, unique_key, ..message }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::MessageBuilder;

    fn built(change: impl FnOnce(MessageBuilder) -> MessageBuilder) -> Message {
        let id = MessageId::try_from("order-1").unwrap();
        let builder = Message::builder("order.placed").id(id).timestamp(Timestamp::from_micros(7)).json(&1);
        change(builder).correlation_id("c").build(&crate::still::StillEnv).unwrap()
    }

    fn topic() -> Destination {
        Destination::Topic("orders".parse().unwrap())
    }

    #[test]
    fn what_is_staged_comes_out_as_it_went_in() {
        let at = Timestamp::from_micros(9_000_000);
        let message = built(|m| {
            m.order_key("k").dedup_key("d").fairness_key("f").unique_key("u").priority(7).header("a", "ü")
        });
        let message = Message { due: Some(at), expiry: Some(Timestamp::from_micros(9_500_000)), ..message };
        let staged = stage(&topic(), message.clone()).unwrap();
        assert_eq!(unstage(staged).unwrap(), (topic(), message));
    }

    #[test]
    fn in_the_outbox_it_keeps_its_order_and_loses_what_would_hold_it_there() {
        let message = built(|m| m.order_key("k").unique_key("u"));
        let staged = stage(&topic(), Message { due: Some(Timestamp::from_micros(1)), ..message }).unwrap();
        assert_eq!(staged.order_key.as_ref().map(Key::as_str), Some("k"));
        assert_eq!((staged.due, staged.unique_key.as_ref()), (None, None));
    }

    #[test]
    fn one_message_for_two_destinations_has_two_ids_there_and_a_repeat_has_the_same() {
        let queue = Destination::Queue("orders".parse().unwrap());
        let id = |to: &Destination| stage(to, built(|m| m)).unwrap().id;
        assert_ne!(id(&topic()), id(&queue));
        assert_eq!(id(&queue), id(&queue));
    }

    #[test]
    fn a_message_that_no_outbox_staged_is_refused() {
        let error = unstage(built(|m| m)).unwrap_err();
        assert_eq!(error.kind(), onward_core::ErrorKind::Invalid);
        let error = stage(&topic(), stage(&topic(), built(|m| m)).unwrap()).unwrap_err();
        assert_eq!(error.kind(), onward_core::ErrorKind::Invalid);
    }
}
