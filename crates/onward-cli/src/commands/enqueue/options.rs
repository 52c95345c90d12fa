//! What the command line says about every message that does not say it itself.

use crate::args::values::{duration, pair, timestamp};
use onward_core::{Key, Message, MessageBuilder, MessageId, PRIORITY_MAX, Timestamp};
use std::time::Duration;

/// A method that sets one text.
type Setter = fn(MessageBuilder, &str) -> MessageBuilder;

/// Parts of the envelope; a message's own fields win over them.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Envelope (a message's own fields win)")]
pub(super) struct Envelope {
    /// Its id, where one message is given
    #[arg(long, value_name = "ID", value_parser = |text: &str| MessageId::try_from(text))]
    id: Option<MessageId>,
    /// Its type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Its schema version
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    type_version: Option<u32>,
    /// Who made it
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// The business action that it belongs to
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// The message whose handling made it
    #[arg(long, value_name = "ID")]
    causation_id: Option<String>,
    /// A header; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// Not handed out before so long from now
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "due")]
    delay: Option<Duration>,
    /// Not handed out before this time
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    due: Option<Timestamp>,
    /// Not handed out when so long has passed
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "expiry")]
    ttl: Option<Duration>,
    /// Not handed out at or after this time
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    expiry: Option<Timestamp>,
    /// 0 (lowest) to 9
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=i64::from(PRIORITY_MAX)))]
    priority: Option<u8>,
    /// Handled in arrival order with the others of this key, where the queue keeps order by key
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    order_key: Option<Key>,
    /// What deduplicates it, instead of source and id
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    dedup_key: Option<Key>,
    /// At most one unfinished message of this key
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    unique_key: Option<Key>,
    /// Whose work it is, for sharing workers out fairly
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    fairness_key: Option<Key>,
}

impl Envelope {
    /// Whether something was said that only one message can be.
    pub(super) fn names_one(&self) -> bool {
        self.id.is_some()
    }

    /// A builder with all of it; `delay` and `ttl` count from `now`, the same for every message.
    pub(super) fn defaults(&self, queue: &str, now: Timestamp) -> MessageBuilder {
        let mut builder = Message::builder(self.kind.as_deref().unwrap_or(queue));
        let optional: [(&Option<String>, Setter); 3] = [
            (&self.source, MessageBuilder::source),
            (&self.correlation_id, MessageBuilder::correlation_id),
            (&self.causation_id, MessageBuilder::causation_id),
        ];
        for (value, set) in optional {
            builder = value.iter().fold(builder, |builder, value| set(builder, value));
        }
        let keys: [(&Option<Key>, Setter); 4] = [
            (&self.order_key, MessageBuilder::order_key),
            (&self.dedup_key, MessageBuilder::dedup_key),
            (&self.unique_key, MessageBuilder::unique_key),
            (&self.fairness_key, MessageBuilder::fairness_key),
        ];
        for (key, set) in keys {
            builder = key.iter().fold(builder, |builder, key| set(builder, key.as_str()));
        }
        builder = self.header.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        builder = self.id.iter().fold(builder, |builder, id| builder.id(id.clone()));
        builder = self.type_version.iter().fold(builder, |builder, n| builder.version(*n));
        builder = self.priority.iter().fold(builder, |builder, n| builder.priority(*n));
        let due = self.delay.map(|delay| now.plus(delay)).or(self.due);
        let expiry = self.ttl.map(|ttl| now.plus(ttl)).or(self.expiry);
        builder = due.iter().fold(builder, |builder, at| builder.due(*at));
        expiry.iter().fold(builder, |builder, at| builder.expiry(*at))
    }
}
