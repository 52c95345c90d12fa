//! The message: its envelope, its data and its keys.

use crate::{
    Env, Error, HEADERS_BYTES_MAX, HEADERS_MAX, KEY_BYTES_MAX, MessageId, PAYLOAD_BYTES_CEILING,
    PRIORITY_DEFAULT, PRIORITY_MAX, Payload, Result, TYPE_BYTES_MAX, Timestamp,
};
use crate::{id::check_text, text::common};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// A key by which messages are ordered, deduplicated, shared out fairly or kept unique.
///
/// Limits: 1 to [`KEY_BYTES_MAX`] bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(Arc<str>);

impl Key {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Key {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::try_from(text.as_str())
    }
}

impl TryFrom<&str> for Key {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        check_text("key", text, KEY_BYTES_MAX)?;
        Ok(Self(text.into()))
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0.as_ref().to_owned()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 0 (lowest) to [`PRIORITY_MAX`]; [`PRIORITY_DEFAULT`] where none is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// As a number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(PRIORITY_DEFAULT)
    }
}

impl TryFrom<u8> for Priority {
    type Error = Error;

    fn try_from(value: u8) -> Result<Self> {
        if value <= PRIORITY_MAX {
            return Ok(Self(value));
        }
        Err(Error::invalid(format!("{value} is above {PRIORITY_MAX}"))
            .at("`priority`")
            .mend("use 0 (lowest) to 9"))
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

/// A message: envelope, data and keys. Made by [`Message::builder`] or [`Message::from_json`].
///
/// Both check it, and [`crate::Prepared`] checks it again: what comes out of an engine went through that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Stable id: the same through every retry, redrive and resend.
    pub id: MessageId,
    /// What it is, as in `order.placed`.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// Version of the type's schema, from 1.
    pub version: u32,
    /// When it was made.
    pub timestamp: Timestamp,
    /// Who made it.
    pub source: Arc<str>,
    /// The business action that it belongs to; see [`Message::correlation`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// The id of the message whose handling made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<Arc<str>>,
    /// Free attributes, trace context among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The data.
    pub data: Payload,
    /// Messages of one key are handled in arrival order, on inlets that keep order by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_key: Option<Key>,
    /// What deduplicates it, per queue or topic. `None`: source and id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<Key>,
    /// Whose work it is, for sharing workers out fairly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_key: Option<Key>,
    /// At most one unfinished message of this key per queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_key: Option<Key>,
    /// Higher is handed out earlier.
    #[serde(default)]
    pub priority: Priority,
    /// Not handed out before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Not handed out at or after; counted as expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Timestamp>,
    /// 1, and one more with each edit of a dead letter.
    #[serde(default = "first_edition")]
    pub edition: u32,
}

pub(crate) fn first_edition() -> u32 {
    1
}

impl Message {
    /// Begins a message of a type, as in `order.placed`.
    pub fn builder(kind: &str) -> MessageBuilder {
        MessageBuilder::new(kind)
    }

    /// The correlation id, or this message's own id where it begins the action.
    pub fn correlation(&self) -> &str {
        self.correlation_id.as_deref().unwrap_or_else(|| self.id.as_str())
    }

    /// Bytes of the payload and the headers: what sizes and byte counts are about.
    pub fn size(&self) -> usize {
        self.data.as_bytes().len() + self.headers_bytes()
    }

    fn headers_bytes(&self) -> usize {
        self.headers.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Checks every field against its limits.
    ///
    /// # Errors
    /// `Invalid`, naming the field and the mend.
    pub fn check(&self) -> Result<()> {
        check_text("type", &self.kind, TYPE_BYTES_MAX)?;
        check_text("source", &self.source, TYPE_BYTES_MAX)?;
        for (field, value) in [("correlation_id", &self.correlation_id), ("causation_id", &self.causation_id)]
        {
            value.as_deref().map_or(Ok(()), |text| check_text(field, text, TYPE_BYTES_MAX))?;
        }
        if self.version == 0 {
            return Err(Error::invalid("is 0").at("`version`").mend("versions count from 1"));
        }
        if self.edition == 0 {
            return Err(Error::invalid("is 0").at("`edition`").mend("leave it out: editions count from 1"));
        }
        if self.expiry.is_some_and(|expiry| self.due.is_some_and(|due| expiry <= due)) {
            return Err(Error::invalid("is not after `due`")
                .at("`expiry`")
                .mend("make it later, or leave it out"));
        }
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<()> {
        let bytes = self.data.as_bytes().len();
        if bytes > PAYLOAD_BYTES_CEILING {
            return Err(Error::invalid(format!("has {bytes} bytes, more than {PAYLOAD_BYTES_CEILING}"))
                .at("`data`")
                .mend("put it into object storage and send a reference (claim check)"));
        }
        if self.headers.len() > HEADERS_MAX || self.headers_bytes() > HEADERS_BYTES_MAX {
            let what = format!("more than {HEADERS_MAX} headers or {HEADERS_BYTES_MAX} bytes of them");
            return Err(Error::invalid(what).at("`headers`").mend("put what is large into the data"));
        }
        match self.headers.keys().find(|name| name.is_empty()) {
            Some(_) => Err(Error::invalid("has an empty name").at("`headers`")),
            None => Ok(()),
        }
    }
}

/// Builds a [`Message`]; what is not set gets its default when it is built.
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    draft: Message,
    id: Option<MessageId>,
    timestamp: Option<Timestamp>,
    delay: Option<Duration>,
    ttl: Option<Duration>,
    problem: Option<Error>,
}

macro_rules! optional_text {
    ($($(#[$doc:meta])* $name:ident: $convert:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(mut self, value: &str) -> Self {
            match $convert(value) {
                Ok(value) => self.draft.$name = Some(value),
                Err(problem) => self.fail(Error::at(problem, concat!("`", stringify!($name), "`"))),
            }
            self
        }
    )* };
}

fn text(value: &str) -> Result<Arc<str>> {
    Ok(value.into())
}

impl MessageBuilder {
    fn new(kind: &str) -> Self {
        let draft = Message {
            id: MessageId::try_from("draft").expect("a constant within the limits"),
            kind: common(kind),
            version: 1,
            timestamp: Timestamp::default(),
            source: common("onward"),
            correlation_id: None,
            causation_id: None,
            headers: BTreeMap::new(),
            data: Payload::trusted("null".into(), None),
            order_key: None,
            dedup_key: None,
            fairness_key: None,
            unique_key: None,
            priority: Priority::default(),
            due: None,
            expiry: None,
            edition: 1,
        };
        Self { draft, id: None, timestamp: None, delay: None, ttl: None, problem: None }
    }

    fn fail(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// The id; without it a new UUIDv7. Give one wherever the caller may repeat the call.
    pub fn id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// The schema version, from 1.
    pub fn version(mut self, version: u32) -> Self {
        self.draft.version = version;
        self
    }

    /// When it was made; without it, now.
    pub fn timestamp(mut self, at: Timestamp) -> Self {
        self.timestamp = Some(at);
        self
    }

    /// Who made it; without it, `onward`.
    pub fn source(mut self, source: &str) -> Self {
        self.draft.source = common(source);
        self
    }

    /// The data as a value written as JSON.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match Payload::json(value) {
            Ok(data) => self.draft.data = data,
            Err(problem) => self.fail(problem),
        }
        self
    }

    /// The data.
    pub fn data(mut self, data: Payload) -> Self {
        self.draft.data = data;
        self
    }

    /// Adds one header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.draft.headers.insert(name.into(), value.into());
        self
    }

    optional_text! {
        /// The business action that it belongs to.
        correlation_id: text;
        /// The message whose handling made it.
        causation_id: text;
        /// Handled in arrival order with the others of this key.
        order_key: Key::try_from;
        /// What deduplicates it instead of source and id.
        dedup_key: Key::try_from;
        /// Whose work it is.
        fairness_key: Key::try_from;
        /// At most one unfinished message of this key.
        unique_key: Key::try_from;
    }

    /// 0 (lowest) to 9.
    pub fn priority(mut self, priority: u8) -> Self {
        match Priority::try_from(priority) {
            Ok(priority) => self.draft.priority = priority,
            Err(problem) => self.fail(problem),
        }
        self
    }

    /// Not handed out before `at`.
    pub fn due(mut self, at: Timestamp) -> Self {
        self.draft.due = Some(at);
        self
    }

    /// Not handed out before this long from now.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Not handed out at or after `at`.
    pub fn expiry(mut self, at: Timestamp) -> Self {
        self.draft.expiry = Some(at);
        self
    }

    /// Not handed out when this long has passed from now.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Carries correlation and causation on from the message being handled.
    pub fn caused_by(mut self, cause: &Message) -> Self {
        self.draft.correlation_id = Some(cause.correlation().into());
        self.draft.causation_id = Some(cause.id.as_str().into());
        self
    }

    /// The checked message.
    ///
    /// # Errors
    /// `Invalid` for the first field that is not right.
    pub fn build(self, env: &dyn Env) -> Result<Message> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let (mut message, now) = (self.draft, env.now());
        message.id = self.id.unwrap_or_else(|| MessageId::generate(env));
        message.timestamp = self.timestamp.unwrap_or(now);
        message.due = self.delay.map(|delay| now.plus(delay)).or(message.due);
        message.expiry = self.ttl.map(|ttl| now.plus(ttl)).or(message.expiry);
        message.check()?;
        Ok(message)
    }
}
