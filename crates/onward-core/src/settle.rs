//! How an attempt ends, and what is kept of a failure.

use crate::{FAILURE_BYTES_MAX, Payload, Timestamp};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc, time::Duration};

/// How an attempt ends: the settlement of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done. The result is kept where the queue keeps results.
    Ack {
        /// What the handler gives back to the job's caller.
        result: Option<Payload>,
    },
    /// Failed; counts; comes again after a delay, or goes to the dead letters when attempts are used up.
    Retry {
        /// How long to wait.
        delay: RetryDelay,
        /// What happened.
        failure: Failure,
    },
    /// Put back; does not count as an attempt.
    Release {
        /// How long to wait before it is handed out again.
        delay: Duration,
    },
    /// To the dead letters now.
    Reject {
        /// Why.
        failure: Failure,
    },
}

/// How long a failed message waits. There is always a delay: no instant unlimited redelivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryDelay {
    /// As the queue's retry policy says for this attempt.
    Policy,
    /// This long, but no shorter than the policy's `delay_min_ms`.
    After(Duration),
}

/// Why an attempt failed, as its worker or the engine saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The handler answered with an error that may pass.
    Transient,
    /// The handler answered with an error that will not pass.
    Permanent,
    /// The handler took longer than its timeout.
    Timeout,
    /// The handler panicked.
    Panicked,
    /// The process died while this message was alone in it.
    Crashed,
    /// The lease ended without a word from its holder.
    LeaseExpired,
    /// No worker knows the type or version.
    UnknownType,
    /// The data can't be read as the handler's type.
    Undecodable,
    /// The data breaks its schema.
    SchemaFailed,
    /// Set aside behind a dead message of the same order key.
    BehindDeadHead,
}

impl fmt::Display for CauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Timeout => "timeout",
            Self::Panicked => "panicked",
            Self::Crashed => "crashed",
            Self::LeaseExpired => "lease expired",
            Self::UnknownType => "unknown type",
            Self::Undecodable => "undecodable",
            Self::SchemaFailed => "schema failed",
            Self::BehindDeadHead => "behind dead head",
        })
    }
}

/// What a worker says of a failed attempt. Texts longer than [`FAILURE_BYTES_MAX`] are cut at a character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind.
    pub kind: CauseKind,
    /// The error in one sentence.
    pub error: Arc<str>,
    /// Backtrace, output or other detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: CauseKind, error: impl AsRef<str>) -> Self {
        Self { kind, error: cut(error.as_ref()).into(), detail: None }
    }

    /// Adds detail.
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.detail = Some(cut(detail.as_ref()).into());
        self
    }

    /// The same within [`FAILURE_BYTES_MAX`]: engines call it, since the fields are public.
    pub fn bounded(self) -> Self {
        Self { kind: self.kind, error: cut(&self.error).into(), detail: self.detail.map(|d| cut(&d).into()) }
    }
}

fn cut(text: &str) -> &str {
    if text.len() <= FAILURE_BYTES_MAX {
        return text;
    }
    let end = (0..=FAILURE_BYTES_MAX).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    &text[..end]
}

/// One failed attempt in a message's history; a dead letter keeps them all, up to the queue's `causes_max`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What happened.
    #[serde(flatten)]
    pub failure: Failure,
    /// Which attempt, from 1; 0 where none was made.
    pub attempt: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The worker that held the lease.
    pub worker: Arc<str>,
}
