//! The inbox: which keys were processed, kept as records beside the work.
//!
//! A key goes from nothing to *claimed* (by a lease, which fences it) to *processed*; a failed attempt removes its
//! claim. Where the engine's commits reach over the whole store, *processed* and the acknowledgement are one commit.

use super::settle::{answered, settle_op, write};
use crate::Onward;
use onward_core::{
    AtomicScope, Delivery, Error, ErrorKind, Failure, Guarded, Key, LeaseToken, Message, Op, Outcome,
    Payload, Receipt, Record, RecordExpect, RecordKey, RecordQuery, Result,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::{fmt, sync::Arc, time::Duration};

pub use onward_patterns::inbox::REMEMBER_DEFAULT;
pub(crate) use onward_patterns::inbox::fits;
use onward_patterns::inbox::record_key;
/// The largest result that is kept for duplicates, in bytes; a duplicate of a larger one is acknowledged without.
pub const INBOX_RESULT_BYTES_MAX: usize = 64 * 1024;
const CLAIM_TRIES: u32 = 4;

/// By what a handler is idempotent, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct Idempotency {
    pub(crate) key: KeyOf,
    pub(crate) ttl: Duration,
    /// The key counts whatever the data is.
    pub(crate) key_alone: bool,
}

impl Idempotency {
    pub(crate) fn new(key: KeyOf) -> Self {
        Self { key, ttl: REMEMBER_DEFAULT, key_alone: false }
    }
}

/// Makes a key of a message's data, or says why it can't.
pub(crate) type KeyOfData = dyn Fn(&Message) -> Result<Key, Failure> + Send + Sync;

/// What makes the key.
#[derive(Clone)]
pub(crate) enum KeyOf {
    Id,
    Data(Arc<KeyOfData>),
}

impl fmt::Debug for KeyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "by id",
            Self::Data(_) => "by a key from the data",
        })
    }
}

/// The value of a record: claimed while a lease stands in it, processed when none does.
#[derive(Serialize, Deserialize)]
struct Entry {
    claimed_by: Option<LeaseToken>,
    result: Option<Box<RawValue>>,
    /// Of the message that has the key; entries of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Box<str>>,
}

impl Entry {
    /// Whether this very message claimed it in an earlier attempt.
    fn is_mine(&self, mine: &LeaseToken) -> bool {
        self.claimed_by.as_ref().is_some_and(|by| by.inlet == mine.inlet && by.id == mine.id)
    }

    /// Whether another message has the key.
    fn is_of_another(&self, fingerprint: Option<&str>) -> bool {
        self.fingerprint.as_deref().zip(fingerprint).is_some_and(|(had, new)| had != new)
    }
}

/// What tells the work of one message from that of another: type, version and data.
pub(crate) fn fingerprint(message: &Message) -> Box<str> {
    let mut hash = Sha256::new();
    for part in [message.kind.as_bytes(), &message.version.to_be_bytes(), message.data.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    // 128 bits are plenty against chance.
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Where one delivery stands towards the inbox.
pub(crate) enum Standing {
    /// This delivery may run the handler.
    Mine(Claim),
    /// It was processed; this was the result.
    Processed(Option<Payload>),
    /// Another delivery of the same key runs now.
    Busy,
    /// The key is that of a message with other data.
    OfAnother,
}

/// The right of one delivery to process one key.
pub(crate) struct Claim {
    key: RecordKey,
    revision: u64,
    ttl: Duration,
    fingerprint: Option<Box<str>>,
}

impl Idempotency {
    /// Claims the key of a delivery, or says who has it.
    ///
    /// # Errors
    /// A [`Failure`] (inner) where no key can be made of the data; else what the engine answers.
    pub(crate) async fn claim(
        &self,
        onward: &Onward,
        delivery: &Delivery,
        fingerprint: Option<&str>,
        fence: Duration,
    ) -> Result<Result<Standing, Failure>> {
        let key = match &self.key {
            KeyOf::Id => delivery.message.id.as_str().to_owned(),
            KeyOf::Data(of) => match of(&delivery.message) {
                Ok(key) => key.as_str().to_owned(),
                Err(failure) => return Ok(Err(failure)),
            },
        };
        let key = record_key(&delivery.token.inlet, delivery.replay, &key)?;
        let fingerprint = fingerprint.filter(|_| !self.key_alone);
        for _ in 0..CLAIM_TRIES {
            if let Some(standing) = self.try_claim(onward, &key, &delivery.token, fingerprint, fence).await? {
                return Ok(Ok(standing));
            }
        }
        Ok(Ok(Standing::Busy))
    }

    /// One try; `None` when the record changed meanwhile.
    async fn try_claim(
        &self,
        onward: &Onward,
        key: &RecordKey,
        mine: &LeaseToken,
        fingerprint: Option<&str>,
        fence: Duration,
    ) -> Result<Option<Standing>> {
        let asked = onward.engine().get_records(RecordQuery::Keys(vec![key.clone()]));
        let found = answered(onward, "reading the inbox", asked).await?.items.pop();
        let claim = |revision| Claim {
            key: key.clone(),
            revision,
            ttl: self.ttl,
            fingerprint: fingerprint.map(Into::into),
        };
        let expect = match found {
            None => RecordExpect::Absent,
            Some(record) => match read(&record)? {
                entry if entry.is_of_another(fingerprint) && !entry.is_mine(mine) => {
                    return Ok(Some(Standing::OfAnother));
                }
                Entry { claimed_by: None, result, .. } => {
                    return Ok(Some(Standing::Processed(payload(result))));
                }
                // The answer to an earlier try was lost.
                Entry { claimed_by: Some(by), .. } if by == *mine => {
                    return Ok(Some(Standing::Mine(claim(record.revision))));
                }
                // An earlier attempt at this very message is over, since this one holds its lease.
                Entry { claimed_by: Some(by), .. } if by.inlet == mine.inlet && by.id == mine.id => {
                    RecordExpect::Revision(record.revision)
                }
                Entry { claimed_by: Some(by), .. } if lives(onward, by.clone(), fence).await? => {
                    return Ok(Some(Standing::Busy));
                }
                Entry { .. } => RecordExpect::Revision(record.revision),
            },
        };
        let entry =
            Entry { claimed_by: Some(mine.clone()), result: None, fingerprint: fingerprint.map(Into::into) };
        let mut ops = vec![put(key, &entry, expect, self.ttl)?];
        if atomic(onward) {
            ops.insert(0, Op::Guard(Guarded::Lease { token: mine.clone() }));
        }
        match write(onward, ops, fence).await {
            Ok(receipts) => Ok(revision(&receipts).map(|revision| Standing::Mine(claim(revision)))),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Claim {
    /// The commits that end a delivery under this claim, in order; the last one settles.
    ///
    /// # Errors
    /// `Internal` only.
    pub(crate) fn end(
        &self,
        onward: &Onward,
        token: &LeaseToken,
        outcome: Outcome,
        mut staged: Vec<Op>,
    ) -> Result<Vec<Vec<Op>>> {
        let expect = RecordExpect::Revision(self.revision);
        let record = match &outcome {
            Outcome::Ack { result } => {
                let result = result.as_ref().and_then(kept);
                let entry = Entry { claimed_by: None, result, fingerprint: self.fingerprint.clone() };
                put(&self.key, &entry, expect, self.ttl)?
            }
            _ => Op::DeleteRecord { key: self.key.clone(), expect },
        };
        let settle = settle_op(token, outcome);
        if atomic(onward) {
            // The guard stands first, so that a stale lease is told as one and not as a changed record.
            staged.insert(0, Op::Guard(Guarded::Lease { token: token.clone() }));
            staged.extend([record, settle]);
            return Ok(vec![staged]);
        }
        // Record first: a death between the two makes a redelivery that is skipped, never a second effect.
        staged.push(settle);
        Ok(vec![vec![record], staged])
    }
}

fn atomic(onward: &Onward) -> bool {
    onward.engine().capabilities().atomic == AtomicScope::Store
}

/// Whether a lease lives, asked without writing.
async fn lives(onward: &Onward, token: LeaseToken, fence: Duration) -> Result<bool> {
    match write(onward, vec![Op::Guard(Guarded::Lease { token })], fence).await {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.kind(), ErrorKind::LeaseLost | ErrorKind::Conflict | ErrorKind::NotFound) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn put(key: &RecordKey, entry: &Entry, expect: RecordExpect, ttl: Duration) -> Result<Op> {
    let value = serde_json::to_vec(entry).map_err(|e| Error::internal(format!("an inbox entry: {e}")))?;
    Ok(Op::PutRecord { key: key.clone(), value: value.into(), expect, ttl: Some(ttl) })
}

fn read(record: &Record) -> Result<Entry> {
    serde_json::from_slice(&record.value).map_err(|e| {
        Error::corrupt(format!("an inbox entry can't be read: {e}"))
            .at(&record.key)
            .mend("remove the record if something else wrote it")
    })
}

fn revision(receipts: &[Receipt]) -> Option<u64> {
    receipts.iter().find_map(|receipt| match receipt {
        Receipt::Recorded { revision } => Some(*revision),
        _ => None,
    })
}

fn kept(result: &Payload) -> Option<Box<RawValue>> {
    let fits = result.is_json() && result.as_bytes().len() <= INBOX_RESULT_BYTES_MAX;
    fits.then(|| serde_json::from_slice(result.as_bytes()).ok()).flatten()
}

fn payload(result: Option<Box<RawValue>>) -> Option<Payload> {
    result.map(|raw| Payload::trusted(raw.get().to_owned().into(), None))
}
