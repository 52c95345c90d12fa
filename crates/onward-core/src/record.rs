//! Records: small values by key, with compare-and-set and time to live.

use crate::{Cursor, Error, Position, RECORD_KEY_BYTES_MAX, Result, Timestamp, id::check_text};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Keys with this beginning hold the audit and are written by the engine alone.
pub const AUDIT_PREFIX: &str = "onward.audit/";

/// The key of a record: free text, by convention `namespace/collection/key`, so that prefixes make sense.
///
/// Limits: 1 to [`RECORD_KEY_BYTES_MAX`] bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordKey(Arc<str>);

impl RecordKey {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for RecordKey {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        check_text("record key", text, RECORD_KEY_BYTES_MAX)?;
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for RecordKey {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::try_from(text.as_str())
    }
}

impl From<RecordKey> for String {
    fn from(key: RecordKey) -> String {
        key.0.as_ref().to_owned()
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What must stand at a key for a write to happen; otherwise it is `Conflict`, with the revision that stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordExpect {
    /// Anything.
    Any,
    /// Nothing.
    Absent,
    /// Something.
    Present,
    /// The record of this revision.
    Revision(u64),
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its key.
    pub key: RecordKey,
    /// Its value.
    pub value: Bytes,
    /// Rises with each write of this key, also over a deletion.
    pub revision: u64,
    /// When it is forgotten.
    pub expires: Option<Timestamp>,
    /// When it was written.
    pub written: Timestamp,
    /// The place of that write.
    pub position: Option<Position>,
}

/// A read of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordQuery {
    /// These keys; those that are not there are left out of the page.
    Keys(Vec<RecordKey>),
    /// Keys that begin with this text, in key order; empty for all.
    Prefix {
        /// The text.
        prefix: String,
        /// Where to go on.
        after: Option<Cursor>,
        /// At most so many; at most [`crate::PAGE_MAX`].
        limit: usize,
    },
}
