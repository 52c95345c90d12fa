//! The record of a job: where it is, and what it was asked.

use crate::Onward;
use onward_core::{Error, Message, MessageId, Name, Op, RecordExpect, RecordKey, RecordQuery, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;

const PREFIX: &str = "onward.jobs/";

/// What is kept of a job beside its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) queue: Name,
    pub(super) fingerprint: String,
}

impl Entry {
    pub(super) async fn read(onward: &Onward, id: &MessageId) -> Result<Option<Self>> {
        let page = onward.engine().get_records(RecordQuery::Keys(vec![key(id)?])).await?;
        let parse = |record: onward_core::Record| {
            serde_json::from_slice(&record.value).map_err(|e| {
                Error::new(onward_core::ErrorKind::Corrupt, onward_core::RetryHint::Never, e.to_string())
                    .at(record.key)
            })
        };
        page.items.into_iter().next().map(parse).transpose()
    }

    pub(super) fn put(&self, id: &MessageId, expect: RecordExpect, ttl: Duration) -> Result<Op> {
        let value = serde_json::to_vec(self).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Op::PutRecord { key: key(id)?, value: value.into(), expect, ttl: Some(ttl) })
    }
}

fn key(id: &MessageId) -> Result<RecordKey> {
    RecordKey::try_from(format!("{PREFIX}{id}"))
}

/// What tells one request from another: type, version and data.
pub(super) fn fingerprint(message: &Message) -> String {
    let mut hash = Sha256::new();
    hash.update((message.kind.len() as u64).to_le_bytes());
    hash.update(message.kind.as_bytes());
    hash.update(message.version.to_le_bytes());
    hash.update(message.data.content_type().as_bytes());
    hash.update([0]);
    hash.update(message.data.as_bytes());
    hex::encode(hash.finalize())
}
