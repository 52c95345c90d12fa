//! The model's records.

use super::{Model, Now};
use bytes::Bytes;
use onward_core::{Cursor, Error, Page, Record, RecordExpect, RecordKey, RecordQuery, Result, Timestamp};
use std::time::Duration;

/// A key and what stands there; a removed one stays, since revisions rise over it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    key: RecordKey,
    value: Option<Bytes>,
    revision: u64,
    expires: Option<Duration>,
    written: Timestamp,
}

impl Stored {
    pub(crate) fn tick(&mut self, now: Now) {
        if self.expires.is_some_and(|at| at <= now.monotonic) {
            (self.value, self.expires) = (None, None);
        }
    }

    fn record(&self, now: Now) -> Option<Record> {
        Some(Record {
            key: self.key.clone(),
            value: self.value.clone()?,
            revision: self.revision,
            expires: self.expires.map(|at| now.stamp(at)),
            written: self.written,
            position: None,
        })
    }
}

impl Model {
    pub(crate) fn put(
        &mut self,
        key: &RecordKey,
        value: Option<Bytes>,
        ttl: Option<Duration>,
        now: Now,
    ) -> u64 {
        let expires = ttl.map(|ttl| now.monotonic + ttl);
        let revision = self.revision(key) + 1;
        self.records.retain(|r| r.key != *key);
        self.records.push(Stored { key: key.clone(), value, revision, expires, written: now.wall });
        revision
    }

    fn revision(&self, key: &RecordKey) -> u64 {
        self.records.iter().find(|r| r.key == *key).map_or(0, |r| r.revision)
    }

    pub(crate) fn expect(&self, key: &RecordKey, expect: RecordExpect) -> Result<()> {
        let there = self.records.iter().find(|r| r.key == *key && r.value.is_some());
        let holds = match expect {
            RecordExpect::Any => true,
            RecordExpect::Absent => there.is_none(),
            RecordExpect::Present => there.is_some(),
            RecordExpect::Revision(revision) => there.is_some_and(|r| r.revision == revision),
        };
        if holds {
            return Ok(());
        }
        Err(Error::conflict(format!("{key} stands at {:?}", there.map(|r| r.revision))))
    }

    pub(crate) fn read(&self, query: &RecordQuery, now: Now) -> Page<Record> {
        let all = self.records.iter().filter_map(|r| r.record(now));
        let (prefix, after, limit) = match query {
            RecordQuery::Keys(keys) => {
                let find = |key: &RecordKey| all.clone().find(|r: &Record| r.key == *key);
                return Page::whole(keys.iter().filter_map(find).collect());
            }
            RecordQuery::Prefix { prefix, after, limit } => (prefix, after, *limit),
        };
        let mut found: Vec<Record> = all.filter(|r| r.key.as_str().starts_with(prefix)).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.retain(|r| after.as_ref().is_none_or(|after| r.key.as_str() > after.0.as_str()));
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|r| Cursor(r.key.as_str().to_owned()));
        Page { items: found, next }
    }
}
