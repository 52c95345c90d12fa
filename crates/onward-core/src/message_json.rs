//! The envelope as one JSON object: strict on the way in, the data byte for byte.

use crate::message::first_edition;
use crate::{Env, Error, Key, Message, MessageBuilder, MessageId, Payload, Priority, Result, Timestamp};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

const FIELDS: [&str; 19] = [
    "id",
    "type",
    "version",
    "timestamp",
    "source",
    "correlation_id",
    "causation_id",
    "headers",
    "content_type",
    "data",
    "data_base64",
    "order_key",
    "dedup_key",
    "fairness_key",
    "unique_key",
    "priority",
    "due",
    "expiry",
    "edition",
];

#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<MessageId>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_key: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedup_key: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fairness_key: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<Key>,
    #[serde(default)]
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiry: Option<Timestamp>,
    #[serde(default = "first_edition")]
    edition: u32,
}

impl Message {
    /// Reads one envelope: every field that the envelope requires must be there.
    ///
    /// # Errors
    /// `Invalid`, naming line, column, field and mend; an unknown field is refused with the nearest known one.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let wire = read(text)?;
        let missing = |field: &str| {
            Error::invalid(format!("the message has no `{field}`"))
                .mend("a message has id, type, version, timestamp, source and data")
        };
        let data = data_of(&wire)?.ok_or_else(|| missing("data"))?;
        let message = Message {
            id: wire.id.ok_or_else(|| missing("id"))?,
            kind: wire.kind.ok_or_else(|| missing("type"))?,
            version: wire.version.ok_or_else(|| missing("version"))?,
            timestamp: wire.timestamp.ok_or_else(|| missing("timestamp"))?,
            source: wire.source.ok_or_else(|| missing("source"))?,
            correlation_id: wire.correlation_id,
            causation_id: wire.causation_id,
            headers: wire.headers,
            data,
            order_key: wire.order_key,
            dedup_key: wire.dedup_key,
            fairness_key: wire.fairness_key,
            unique_key: wire.unique_key,
            priority: wire.priority,
            due: wire.due,
            expiry: wire.expiry,
            edition: wire.edition,
        };
        message.check()?;
        Ok(message)
    }

    /// Reads one envelope, filling in what is missing: id, type, version, timestamp and source from `defaults`,
    /// data as `null`.
    ///
    /// # Errors
    /// As [`Message::from_json`].
    pub fn from_json_with(text: &[u8], defaults: MessageBuilder, env: &dyn Env) -> Result<Self> {
        let wire = read(text)?;
        let data = data_of(&wire)?;
        let mut message = defaults.build(env)?;
        message.id = wire.id.unwrap_or(message.id);
        message.kind = wire.kind.unwrap_or(message.kind);
        message.version = wire.version.unwrap_or(message.version);
        message.timestamp = wire.timestamp.unwrap_or(message.timestamp);
        message.source = wire.source.unwrap_or(message.source);
        message.correlation_id = wire.correlation_id.or(message.correlation_id);
        message.causation_id = wire.causation_id.or(message.causation_id);
        message.headers.extend(wire.headers);
        message.data = data.unwrap_or(message.data);
        message.order_key = wire.order_key.or(message.order_key);
        message.dedup_key = wire.dedup_key.or(message.dedup_key);
        message.fairness_key = wire.fairness_key.or(message.fairness_key);
        message.unique_key = wire.unique_key.or(message.unique_key);
        message.priority =
            if wire.priority == Priority::default() { message.priority } else { wire.priority };
        message.due = wire.due.or(message.due);
        message.expiry = wire.expiry.or(message.expiry);
        message.edition = wire.edition;
        message.check()?;
        Ok(message)
    }

    /// The envelope as one line of JSON; data that is not JSON stands as `data_base64`.
    pub fn to_json(&self) -> String {
        // Data that is said to be JSON but is not (adopted from elsewhere) must not break the envelope.
        let raw = self.data.is_json().then(|| serde_json::from_slice::<&RawValue>(self.data.as_bytes()).ok());
        let data = raw.flatten();
        let wire = Wire {
            id: Some(self.id.clone()),
            kind: Some(self.kind.clone()),
            version: Some(self.version),
            timestamp: Some(self.timestamp),
            source: Some(self.source.clone()),
            correlation_id: self.correlation_id.clone(),
            causation_id: self.causation_id.clone(),
            headers: self.headers.clone(),
            content_type: (!self.data.is_json()).then(|| Cow::Borrowed(self.data.content_type())),
            data,
            data_base64: data.is_none().then(|| BASE64.encode(self.data.as_bytes())),
            order_key: self.order_key.clone(),
            dedup_key: self.dedup_key.clone(),
            fairness_key: self.fairness_key.clone(),
            unique_key: self.unique_key.clone(),
            priority: self.priority,
            due: self.due,
            expiry: self.expiry,
            edition: self.edition,
        };
        let line = serde_json::to_string(&wire).expect("strings, numbers and checked JSON always serialise");
        // Raw data may span lines; a newline can stand only between JSON tokens, so this keeps its value and its digits.
        if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line }
    }
}

fn read(text: &[u8]) -> Result<Wire<'_>> {
    check_field_names(text)?;
    serde_json::from_slice(text).map_err(|e| Error::invalid(format!("the message is not right: {e}")))
}

/// Refuses unknown fields with a suggestion: a misspelt `delay` must not be silently dropped.
fn check_field_names(text: &[u8]) -> Result<()> {
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(text).map_err(|e| {
        Error::invalid(format!("the message is not a JSON object: {e}"))
            .mend("write one object, as in {\"type\":\"x\"}")
    })?;
    match fields.keys().find(|name| !FIELDS.contains(&name.as_ref())) {
        None => Ok(()),
        Some(unknown) => Err(Error::invalid(format!("unknown field `{}`", unknown.escape_debug()))
            .mend(format!("did you mean `{}`? Free attributes belong into `headers`", nearest(unknown)))),
    }
}

/// The known field nearest to an unknown one. Only its beginning is compared, so that a long one costs no more.
fn nearest(unknown: &str) -> &'static str {
    let beginning: String = unknown.chars().take(64).collect();
    let by_distance = FIELDS.iter().min_by_key(|field| strsim::levenshtein(&beginning, field));
    by_distance.copied().unwrap_or("data")
}

fn data_of(wire: &Wire<'_>) -> Result<Option<Payload>> {
    match (wire.data, &wire.data_base64) {
        (Some(_), Some(_)) => {
            Err(Error::invalid("has both `data` and `data_base64`").at("the message").mend("give one"))
        }
        (Some(raw), None) => match wire.content_type.as_deref() {
            None | Some("application/json") => {
                Ok(Some(Payload::trusted(raw.get().as_bytes().to_vec().into(), None)))
            }
            Some(_) => Err(Error::invalid("`data` is JSON, but `content_type` says otherwise")
                .mend("give the bytes as `data_base64`, or leave `content_type` out")),
        },
        (None, Some(text)) => {
            let bytes = BASE64
                .decode(text)
                .map_err(|e| Error::invalid(format!("is not base64: {e}")).at("`data_base64`"))?;
            Payload::bytes(bytes, wire.content_type.as_deref().unwrap_or("application/octet-stream"))
                .map(Some)
        }
        (None, None) => Ok(None),
    }
}
