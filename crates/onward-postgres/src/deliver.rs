//! Rows of the server as messages and deliveries.

use crate::{
    error::{Readable, unreadable},
    settle::Handle,
};
use bytes::Bytes;
use onward_core::{
    Cause, CauseKind, Delivery, Failure, Inlet, Key, LeaseToken, Message, MessageId, Payload, Priority,
    Result, Timestamp,
};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use tokio_postgres::Row;

/// A cause as the instance keeps it.
#[derive(Debug, Deserialize)]
struct Kept {
    kind: CauseKind,
    error: Arc<str>,
    #[serde(default)]
    detail: Option<Arc<str>>,
    attempt: u32,
    at: i64,
    worker: Arc<str>,
}

/// The columns of the type `delivery`, as one delivery.
pub(crate) fn delivery(row: &Row) -> Result<Delivery> {
    let inlet: Inlet = row.get::<_, &str>("inlet").parse()?;
    let message = message(row)?;
    let handle = Handle { seq: row.get("seq"), nonce: row.get("nonce") };
    Ok(Delivery {
        token: LeaseToken { inlet, id: message.id.clone(), handle: handle.to_bytes() },
        message,
        attempt: number(row, "attempt")?,
        lease: Duration::from_micros(row.get::<_, i64>("term").max(0) as u64),
        accepted_at: Timestamp::from_micros(row.get("accepted")),
        position: None,
        progress: payload(row, "progress", "progress_type"),
        causes: causes(row)?,
        suspect: row.get("suspect"),
        replay: 0,
    })
}

/// The message in such a row.
pub(crate) fn message(row: &Row) -> Result<Message> {
    let text = |name: &str| row.get::<_, Option<&str>>(name).map(Arc::from);
    let key = |name: &str| row.get::<_, Option<&str>>(name).map(Key::try_from).transpose();
    let time = |name: &str| row.get::<_, Option<i64>>(name).map(Timestamp::from_micros);
    let headers = match row.get::<_, Option<&[u8]>>("headers") {
        Some(headers) => serde_json::from_slice(headers).readable("a message's headers")?,
        None => Default::default(),
    };
    let priority = u8::try_from(row.get::<_, i16>("priority")).readable("a message's priority")?;
    Ok(Message {
        id: MessageId::try_from(row.get::<_, &str>("id"))?,
        kind: row.get::<_, &str>("kind").into(),
        version: number(row, "version")?,
        timestamp: Timestamp::from_micros(row.get("made")),
        source: row.get::<_, &str>("source").into(),
        correlation_id: text("correlation"),
        causation_id: text("causation"),
        headers,
        data: Payload::trusted(Bytes::copy_from_slice(row.get("data")), text("content_type")),
        order_key: key("okey")?,
        dedup_key: key("dkey")?,
        fairness_key: key("fkey")?,
        unique_key: key("ukey")?,
        priority: Priority::try_from(priority)?,
        due: time("due"),
        expiry: time("expiry"),
        edition: number(row, "edition")?,
    })
}

/// A number that a message holds in 32 bits.
pub(crate) fn number(row: &Row, name: &str) -> Result<u32> {
    u32::try_from(row.get::<_, i64>(name)).map_err(|why| unreadable(name, why))
}

/// Bytes and their content type, where there are any.
pub(crate) fn payload(row: &Row, bytes: &str, kind: &str) -> Option<Payload> {
    let bytes = row.get::<_, Option<&[u8]>>(bytes)?;
    Some(Payload::trusted(Bytes::copy_from_slice(bytes), row.get::<_, Option<&str>>(kind).map(Arc::from)))
}

/// The failed attempts in such a row.
pub(crate) fn causes(row: &Row) -> Result<Vec<Cause>> {
    let Some(text) = row.get::<_, Option<&str>>("causes") else { return Ok(Vec::new()) };
    let kept: Vec<Kept> = serde_json::from_str(text).readable("a message's causes")?;
    let cause = |kept: Kept| Cause {
        failure: Failure { kind: kept.kind, error: kept.error, detail: kept.detail },
        attempt: kept.attempt,
        at: Timestamp::from_micros(kept.at),
        worker: kept.worker,
    };
    Ok(kept.into_iter().map(cause).collect())
}
