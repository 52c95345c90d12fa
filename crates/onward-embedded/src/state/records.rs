//! Records: small values by key.

use bytes::Bytes;
use onward_core::{RecordKey, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

/// One record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) value: Bytes,
    pub(crate) revision: u64,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) written: Timestamp,
}

impl Kept {
    pub(crate) fn lives(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

/// All records, in key order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Records {
    by_key: BTreeMap<RecordKey, Kept>,
    expiring: BTreeSet<(Timestamp, RecordKey)>,
    bytes: u64,
    audits: usize,
}

impl Records {
    pub(crate) fn put(&mut self, key: RecordKey, record: Kept) {
        self.remove(&key);
        self.bytes += size(&key, &record);
        self.audits += usize::from(is_audit(&key));
        if let Some(expires) = record.expires {
            self.expiring.insert((expires, key.clone()));
        }
        self.by_key.insert(key, record);
    }

    pub(crate) fn remove(&mut self, key: &RecordKey) {
        if let Some(record) = self.by_key.remove(key) {
            self.bytes -= size(key, &record);
            self.audits -= usize::from(is_audit(key));
            if let Some(expires) = record.expires {
                self.expiring.remove(&(expires, key.clone()));
            }
        }
    }

    /// The record, unless its time has run out.
    pub(crate) fn get(&self, key: &RecordKey, now: Timestamp) -> Option<&Kept> {
        self.by_key.get(key).filter(|record| record.lives(now))
    }

    /// Records whose keys begin with `prefix`, behind `after`, in key order.
    pub(crate) fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&RecordKey>,
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a RecordKey, &'a Kept)> {
        let first = RecordKey::try_from(prefix).ok();
        let from = match (after, first) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        self.by_key
            .range((from, Bound::Unbounded))
            .take_while(move |(key, _)| key.as_str().starts_with(prefix))
            .filter(move |(_, record)| record.lives(now))
    }

    /// Up to `most` keys whose time has run out.
    pub(crate) fn expired(&self, now: Timestamp, most: usize) -> Vec<RecordKey> {
        let gone = self.expiring.iter().take_while(|(expires, _)| *expires <= now).take(most);
        gone.map(|(_, key)| key.clone()).collect()
    }

    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiring.first().map(|(expires, _)| *expires)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many entries the audit has.
    pub(crate) fn audits(&self) -> usize {
        self.audits
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&RecordKey, &Kept)> {
        self.by_key.iter()
    }
}

fn is_audit(key: &RecordKey) -> bool {
    key.as_str().starts_with(onward_core::AUDIT_PREFIX)
}

/// What a record costs, in bytes.
pub(crate) fn size(key: &RecordKey, record: &Kept) -> u64 {
    (key.as_str().len() + record.value.len()) as u64 + 64
}
