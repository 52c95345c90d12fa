//! A job as its caller sees it.

use onward_core::{Cause, MessageId, MessageState, MessageView, Payload, Timestamp};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Where a job is in its life. `Pending` never means done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Accepted; it waits for a worker, for its time, or for its next attempt.
    Pending,
    /// A worker has it.
    Running,
    /// Done; its result is there, where the handler gave one.
    Completed,
    /// It failed for good and is a dead letter; a redrive makes it pending again.
    Failed,
    /// Cancelled.
    Cancelled,
    /// Its time ran out before it was done.
    Expired,
}

impl JobState {
    /// Whether it stays so, unless somebody redrives it.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        })
    }
}

impl From<MessageState> for JobState {
    fn from(state: MessageState) -> Self {
        match state {
            MessageState::Waiting | MessageState::Delayed => Self::Pending,
            MessageState::Leased => Self::Running,
            MessageState::Done => Self::Completed,
            MessageState::Dead => Self::Failed,
            MessageState::Expired => Self::Expired,
            MessageState::Cancelled => Self::Cancelled,
        }
    }
}

/// A job, all of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its stable id.
    pub id: MessageId,
    /// Its type.
    pub kind: Arc<str>,
    /// Where it is.
    pub state: JobState,
    /// Attempts made so far.
    pub attempts: u32,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// When it will be tried at the earliest, where that is later.
    pub due: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What its handler gave back.
    pub result: Option<Payload>,
    /// How far the running attempt, or the last one, has come.
    pub progress: Option<Payload>,
    /// Its last failure, also while it will be tried again.
    pub failure: Option<Cause>,
    /// Somebody asked to cancel it while it ran.
    pub cancel_requested: bool,
}

impl From<MessageView> for Job {
    fn from(mut view: MessageView) -> Self {
        Self {
            id: view.message.id,
            kind: view.message.kind,
            state: view.state.into(),
            attempts: view.attempts,
            submitted_at: view.accepted_at,
            due: view.due,
            ended_at: view.ended_at,
            result: view.result,
            progress: view.progress,
            failure: view.causes.pop(),
            cancel_requested: view.cancel_requested,
        }
    }
}
