//! Messages and what is known of them as JSON, the data byte for byte.

use onward_core::{
    Cause, LeaseView, Message, MessageState, MessageView, Payload, Position, RecordedEvent, StreamName, Tag,
    Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// One message with everything that is known of it. `message` is the envelope exactly as a worker gets it.
#[derive(Serialize)]
struct View<'a> {
    inlet: String,
    state: MessageState,
    attempts: u32,
    crashes: u32,
    blocked: bool,
    suspect: bool,
    cancel_requested: bool,
    accepted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<&'a LeaseView>,
    causes: &'a [Cause],
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    message: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<Box<RawValue>>,
}

/// A view as JSON, as the command and the HTTP API show it; numbers of the data keep every digit.
pub fn view_json(view: &MessageView) -> impl Serialize + '_ {
    View {
        inlet: view.inlet.to_string(),
        state: view.state,
        attempts: view.attempts,
        crashes: view.crashes,
        blocked: view.blocked,
        suspect: view.suspect,
        cancel_requested: view.cancel_requested,
        accepted_at: view.accepted_at,
        due: view.due,
        ended_at: view.ended_at,
        lease: view.lease.as_ref(),
        causes: &view.causes,
        progress: view.progress.as_ref().map(payload_json),
        result: view.result.as_ref().map(payload_json),
        position: view.position,
        message: envelope_json(&view.message),
        original: view.original.as_deref().map(envelope_json),
    }
}

/// One event at its place. `message` is its envelope.
#[derive(Serialize)]
struct Recorded<'a> {
    stream: &'a StreamName,
    revision: u64,
    position: Position,
    recorded_at: Timestamp,
    #[serde(skip_serializing_if = "<[Tag]>::is_empty")]
    tags: &'a [Tag],
    message: Box<RawValue>,
}

/// An event as JSON; numbers of the data keep every digit.
pub fn event_json(recorded: &RecordedEvent) -> impl Serialize + '_ {
    Recorded {
        stream: &recorded.stream,
        revision: recorded.revision,
        position: recorded.position,
        recorded_at: recorded.recorded_at,
        tags: &recorded.event.tags,
        message: envelope_json(&recorded.event.message),
    }
}

/// JSON text that is known to be right, as it stands.
fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A message's envelope as it stands.
pub fn envelope_json(message: &Message) -> Box<RawValue> {
    raw(message.to_json())
}

/// Data as JSON: JSON stands as it is; anything else as a string, with what is not UTF-8 replaced.
pub fn payload_json(payload: &Payload) -> Box<RawValue> {
    let text = String::from_utf8_lossy(payload.as_bytes());
    let json = payload.is_json().then(|| RawValue::from_string(text.as_ref().to_owned()).ok()).flatten();
    json.unwrap_or_else(|| raw(serde_json::to_string(&text).unwrap_or_default()))
}
