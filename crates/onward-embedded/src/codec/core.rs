//! The binary form of the message model's types.

use crate::StreamId;

use super::wire::{Decoded, Input, Malformed, Wire, put_bytes, put_number, wire_enum, wire_struct};
use bytes::Bytes;
use onward_core::{
    BulkId, Cause, CauseKind, Failure, Holder, Inlet, Key, MessageId, Name, Payload, Position, ProcessId,
    RecordKey, RequestId, StreamName, Tag, Timestamp,
};

wire_enum!(CauseKind {
    Transient = 0,
    Permanent = 1,
    Timeout = 2,
    Panicked = 3,
    Crashed = 4,
    LeaseExpired = 5,
    UnknownType = 6,
    Undecodable = 7,
    SchemaFailed = 8,
    BehindDeadHead = 9,
});
wire_struct!(Failure { kind, error, detail });
wire_struct!(Cause { failure, attempt, at, worker });
wire_struct!(Holder { worker, process });

/// Types that are a text which was checked: reading checks it again.
macro_rules! wire_text {
    ($($type:ty: $text:expr),* $(,)?) => { $(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let text: fn(&$type) -> &str = $text;
                put_bytes(text(self).as_bytes(), out);
            }

            fn get(input: &mut Input<'_>) -> Decoded<Self> {
                Self::try_from(input.text()?)
                    .map_err(|_| Malformed(concat!("not a valid ", stringify!($type))))
            }
        }
    )* };
}

wire_text!(MessageId: MessageId::as_str, Key: Key::as_str, RecordKey: RecordKey::as_str, Tag: Tag::as_str);

impl Wire for StreamName {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.to_string().as_bytes(), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.text()?.parse().map_err(|_| Malformed("not a valid StreamName"))
    }
}

impl Wire for StreamId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Wire::get(input).map(Self)
    }
}

impl Wire for Name {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.full().as_bytes(), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.text()?.parse().map_err(|_| Malformed("not a valid Name"))
    }
}

impl Wire for Inlet {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Queue(name) => (0u8, name.clone()).put(out),
            Self::Subscription { topic, name } => (1u8, (topic.clone(), name.clone())).put(out),
        }
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        match input.byte()? {
            0 => Name::get(input).map(Self::Queue),
            1 => Ok(Self::Subscription { topic: Wire::get(input)?, name: Wire::get(input)? }),
            _ => Err(Malformed("an unknown kind of inlet")),
        }
    }
}

impl Wire for Timestamp {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.as_micros().to_le_bytes());
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let bytes = input.take(8)?.try_into().map_err(|_| Malformed("it ends too early"))?;
        Ok(Self::from_micros(i64::from_le_bytes(bytes)))
    }
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self, out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.bytes().map(Bytes::copy_from_slice)
    }
}

impl Wire for Payload {
    fn put(&self, out: &mut Vec<u8>) {
        content_type(self).put(out);
        self.as_bytes().put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let content_type = Wire::get(input)?;
        Ok(Self::trusted(Wire::get(input)?, content_type))
    }
}

/// The content type as it is kept: none for JSON.
pub(crate) fn content_type(payload: &Payload) -> Option<std::sync::Arc<str>> {
    (!payload.is_json()).then(|| payload.content_type().into())
}

impl Wire for Position {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.0, out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.number().map(Self)
    }
}

impl Wire for ProcessId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Wire::get(input).map(Self)
    }
}

impl Wire for RequestId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Wire::get(input).map(Self)
    }
}

impl Wire for BulkId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Wire::get(input).map(Self)
    }
}
