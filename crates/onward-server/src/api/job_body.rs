//! A job as its caller sees it, as JSON.

use onward::{
    core::{Cause, MessageId, Payload, Timestamp},
    jobs::{Job, JobState},
    payload_json,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// A job as its caller sees it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(super) struct JobBody {
    /// Its stable id.
    #[schema(value_type = String)]
    pub(super) job_id: MessageId,
    /// `pending`, `running`, `completed`, `failed`, `cancelled` or `expired`.
    #[schema(value_type = String)]
    pub(super) status: JobState,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    kind: Option<Arc<str>>,
    /// The same was submitted before; nothing was added.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) duplicate: bool,
    /// Attempts made so far.
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    submitted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// What its handler gave back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<Json_>,
    /// Where the result lies, where its handler gave back an object with a `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    progress: Option<Json_>,
    /// Its last failure, also while it will be tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    failure: Option<Cause>,
    /// Somebody asked to cancel it while it ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
}

/// JSON as it stands, that can be compared.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Json_(Box<RawValue>);

impl PartialEq for Json_ {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl From<Job> for JobBody {
    fn from(job: Job) -> Self {
        Self {
            url: job.result.as_ref().and_then(url_of),
            job_id: job.id,
            status: job.state,
            kind: Some(job.kind),
            duplicate: false,
            attempts: job.attempts,
            submitted_at: Some(job.submitted_at),
            due: job.due,
            ended_at: job.ended_at,
            result: job.result.as_ref().map(payload_json).map(Json_),
            progress: job.progress.as_ref().map(payload_json).map(Json_),
            failure: job.failure,
            cancel_requested: job.cancel_requested,
        }
    }
}

fn url_of(result: &Payload) -> Option<String> {
    #[derive(Deserialize)]
    struct Located {
        url: String,
    }
    result.parse::<Located>().ok().map(|located| located.url)
}

/// What is known right after the acceptance, where the queue does not tell more.
pub(super) fn accepted(id: &MessageId) -> JobBody {
    JobBody {
        job_id: id.clone(),
        status: JobState::Pending,
        kind: None,
        duplicate: false,
        attempts: 0,
        submitted_at: None,
        due: None,
        ended_at: None,
        result: None,
        url: None,
        progress: None,
        failure: None,
        cancel_requested: false,
    }
}
