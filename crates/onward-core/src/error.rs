//! One error type with few kinds: what went wrong, where, and what to do about it.

use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it is; the kinds are few so that callers can decide by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request itself is wrong; repeating it unchanged never helps.
    Invalid,
    /// The engine does not do this; nothing was changed.
    Unsupported,
    /// What was named does not exist.
    NotFound,
    /// What was to be created exists already, with other content.
    AlreadyExists,
    /// A condition did not hold: an expected revision, a fingerprint, another outcome for the same lease.
    Conflict,
    /// The lease token is stale: the lease ended and nothing was settled.
    LeaseLost,
    /// A named bound is reached; nothing was accepted.
    Full,
    /// The engine can't be reached or can't answer now.
    Unavailable,
    /// The caller may not do this.
    Unauthorized,
    /// Stored bytes are damaged; nothing was deleted.
    Corrupt,
    /// A write or sync failed earlier; only reopening recovers.
    Poisoned,
    /// The engine was closed.
    Closed,
    /// A fault of this program.
    Internal,
}

/// Whether and when repeating the same call makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryHint {
    /// It will fail again.
    Never,
    /// At once.
    Now,
    /// Not before this time has passed.
    After(Duration),
    /// The answer was lost: it may have happened. Repeat with the same id.
    Unknown,
}

/// What went wrong, where, and the mend.
///
/// It is cloneable and goes over the wire, since one failed sync answers many waiters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    kind: ErrorKind,
    retry: RetryHint,
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident, $retry:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(what: impl Into<String>) -> Self { Self::new(ErrorKind::$kind, $retry, what) }
    )* };
}

impl Error {
    /// An error of the given kind.
    pub fn new(kind: ErrorKind, retry: RetryHint, what: impl Into<String>) -> Self {
        Self { kind, retry, what: what.into(), place: None, mend: None, revision: None }
    }

    constructors! {
        /// The request is wrong.
        invalid => Invalid, RetryHint::Never;
        /// The engine does not do this, and did nothing.
        unsupported => Unsupported, RetryHint::Never;
        /// What was named does not exist.
        not_found => NotFound, RetryHint::Never;
        /// It exists already, with other content.
        already_exists => AlreadyExists, RetryHint::Never;
        /// A condition did not hold.
        conflict => Conflict, RetryHint::Never;
        /// The lease token is stale.
        lease_lost => LeaseLost, RetryHint::Never;
        /// A bound is reached; try again in a second.
        full => Full, RetryHint::After(Duration::from_secs(1));
        /// Can't be reached; nothing was done.
        unavailable => Unavailable, RetryHint::After(Duration::from_millis(200));
        /// The answer was lost; it may have happened.
        unknown => Unavailable, RetryHint::Unknown;
        /// The caller may not do this.
        unauthorized => Unauthorized, RetryHint::Never;
        /// Stored bytes are damaged.
        corrupt => Corrupt, RetryHint::Never;
        /// An earlier write or sync failed.
        poisoned => Poisoned, RetryHint::Never;
        /// The engine was closed.
        closed => Closed, RetryHint::Never;
        /// A fault of this program.
        internal => Internal, RetryHint::Never;
    }

    /// Names the place: the field, the queue, the file and line.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = Some(place.to_string());
        self
    }

    /// Says what to do about it.
    pub fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }

    /// Replaces the hint on repeating.
    pub fn retry(mut self, retry: RetryHint) -> Self {
        self.retry = retry;
        self
    }

    /// Says what revision stands where another was expected.
    pub fn standing_at(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Of a `Conflict` over a stream's revision: the one that stands there; `None` where nothing stands.
    pub fn revision(&self) -> Option<u64> {
        self.revision
    }

    /// The kind, to decide by.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether repeating makes sense.
    pub fn retry_hint(&self) -> RetryHint {
        self.retry
    }

    /// What went wrong, in one sentence.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where it went wrong.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// What to do about it.
    pub fn mend_text(&self) -> Option<&str> {
        self.mend.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)?;
        match &self.mend {
            Some(mend) => write!(f, "; {mend}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
