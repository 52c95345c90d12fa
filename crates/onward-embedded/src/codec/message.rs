//! The binary form of a message: what is nearly always there, then what its flags name, then the data to the end.
//!
//! The data comes last and without a length, so that it goes to the log as a part of its own and comes back as a
//! slice of the record, without a copy either way.

use super::core::content_type;
use super::wire::{Decoded, Input, Malformed, Wire, put_bytes, put_number};
use bytes::Bytes;
use onward_core::{HEADERS_MAX, Message, Payload, Priority};
use std::collections::BTreeMap;

const CORRELATION: u64 = 1;
const CAUSATION: u64 = 1 << 1;
const HEADERS: u64 = 1 << 2;
const CONTENT_TYPE: u64 = 1 << 3;
const ORDER_KEY: u64 = 1 << 4;
const DEDUP_KEY: u64 = 1 << 5;
const FAIRNESS_KEY: u64 = 1 << 6;
const UNIQUE_KEY: u64 = 1 << 7;
const PRIORITY: u64 = 1 << 8;
const DUE: u64 = 1 << 9;
const EXPIRY: u64 = 1 << 10;
const EDITION: u64 = 1 << 11;
const VERSION: u64 = 1 << 12;
const KNOWN: u64 = (1 << 13) - 1;

fn flags(message: &Message) -> u64 {
    [
        (message.correlation_id.is_some(), CORRELATION),
        (message.causation_id.is_some(), CAUSATION),
        (!message.headers.is_empty(), HEADERS),
        (!message.data.is_json(), CONTENT_TYPE),
        (message.order_key.is_some(), ORDER_KEY),
        (message.dedup_key.is_some(), DEDUP_KEY),
        (message.fairness_key.is_some(), FAIRNESS_KEY),
        (message.unique_key.is_some(), UNIQUE_KEY),
        (message.priority != Priority::default(), PRIORITY),
        (message.due.is_some(), DUE),
        (message.expiry.is_some(), EXPIRY),
        (message.edition != 1, EDITION),
        (message.version != 1, VERSION),
    ]
    .iter()
    .filter(|(there, _)| *there)
    .fold(0, |all, (_, flag)| all | flag)
}

/// Everything of a message but its data, which follows in the record.
pub(crate) fn put_envelope(message: &Message, out: &mut Vec<u8>) {
    put_number(flags(message), out);
    message.id.put(out);
    message.kind.put(out);
    message.source.put(out);
    message.timestamp.put(out);
    let texts = [&message.correlation_id, &message.causation_id];
    texts.into_iter().flatten().for_each(|text| text.put(out));
    if !message.headers.is_empty() {
        put_headers(&message.headers, out);
    }
    if let Some(content_type) = content_type(&message.data) {
        content_type.put(out);
    }
    let keys = [&message.order_key, &message.dedup_key, &message.fairness_key, &message.unique_key];
    keys.into_iter().flatten().for_each(|key| key.put(out));
    if message.priority != Priority::default() {
        message.priority.get().put(out);
    }
    [message.due, message.expiry].iter().flatten().for_each(|time| time.put(out));
    [message.edition, message.version].iter().filter(|n| **n != 1).for_each(|n| n.put(out));
}

fn put_headers(headers: &BTreeMap<String, String>, out: &mut Vec<u8>) {
    put_number(headers.len() as u64, out);
    for (name, value) in headers {
        put_bytes(name.as_bytes(), out);
        put_bytes(value.as_bytes(), out);
    }
}

/// A message whose envelope begins at `input` and whose data is the rest of `record`; `input` reads `record`.
pub(crate) fn get_message(input: &mut Input<'_>, record: &Bytes) -> Decoded<Message> {
    let (mut message, content_type) = get_envelope(input)?;
    message.data = Payload::trusted(record.slice(input.at()..), content_type);
    Ok(message)
}

/// The same, with what many have in common out of what was read lately, and a copy of the data.
pub(super) fn get_message_with(
    texts: &mut super::reader::Texts,
    data: &mut super::reader::Shared,
    input: &mut Input<'_>,
    record: &[u8],
) -> Decoded<Message> {
    let (mut message, content_type) = get_envelope_with(|input| texts.get(input), input)?;
    message.data = Payload::trusted(data.copy(&record[input.at()..]), content_type);
    Ok(message)
}

fn get_envelope(input: &mut Input<'_>) -> Decoded<(Message, Option<std::sync::Arc<str>>)> {
    get_envelope_with(Wire::get, input)
}

/// The same with type, source and content type read by `text`.
#[inline]
fn get_envelope_with(
    mut text: impl FnMut(&mut Input<'_>) -> Decoded<std::sync::Arc<str>>,
    input: &mut Input<'_>,
) -> Decoded<(Message, Option<std::sync::Arc<str>>)> {
    let flags = input.number()?;
    if flags & !KNOWN != 0 {
        return Err(Malformed("a message has a field that this version does not know"));
    }
    let mut message = Message {
        id: Wire::get(input)?,
        kind: text(input)?,
        source: text(input)?,
        timestamp: Wire::get(input)?,
        correlation_id: when(flags, CORRELATION, input)?,
        causation_id: when(flags, CAUSATION, input)?,
        headers: if flags & HEADERS != 0 { get_headers(input)? } else { BTreeMap::new() },
        data: Payload::trusted(Bytes::new(), None),
        order_key: None,
        dedup_key: None,
        fairness_key: None,
        unique_key: None,
        priority: Priority::default(),
        due: None,
        expiry: None,
        edition: 1,
        version: 1,
    };
    let content_type = if flags & CONTENT_TYPE != 0 { Some(text(input)?) } else { None };
    message.order_key = when(flags, ORDER_KEY, input)?;
    message.dedup_key = when(flags, DEDUP_KEY, input)?;
    message.fairness_key = when(flags, FAIRNESS_KEY, input)?;
    message.unique_key = when(flags, UNIQUE_KEY, input)?;
    if let Some(priority) = when::<u8>(flags, PRIORITY, input)? {
        message.priority =
            Priority::try_from(priority).map_err(|_| Malformed("a priority is out of range"))?;
    }
    message.due = when(flags, DUE, input)?;
    message.expiry = when(flags, EXPIRY, input)?;
    message.edition = when(flags, EDITION, input)?.unwrap_or(1);
    message.version = when(flags, VERSION, input)?.unwrap_or(1);
    Ok((message, content_type))
}

fn when<T: Wire>(flags: u64, flag: u64, input: &mut Input<'_>) -> Decoded<Option<T>> {
    if flags & flag != 0 { T::get(input).map(Some) } else { Ok(None) }
}

fn get_headers(input: &mut Input<'_>) -> Decoded<BTreeMap<String, String>> {
    let count = input.count()?;
    if count > HEADERS_MAX {
        return Err(Malformed("a message has too many headers"));
    }
    (0..count).map(|_| Ok((String::get(input)?, String::get(input)?))).collect()
}

/// A message within something larger: its data has a length.
impl Wire for Message {
    fn put(&self, out: &mut Vec<u8>) {
        put_envelope(self, out);
        put_bytes(self.data.as_bytes(), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let (mut message, content_type) = get_envelope(input)?;
        message.data = Payload::trusted(Wire::get(input)?, content_type);
        Ok(message)
    }
}
