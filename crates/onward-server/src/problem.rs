//! Errors as problem details (RFC 9457): one form for every refusal, with the mend.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use onward_core::{Error, ErrorKind, RetryHint};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// What every error is answered with, as `application/problem+json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Names the kind of error; the same for every error of the kind.
    #[serde(rename = "type")]
    kind: String,
    /// The kind in words; the same for every error of the kind.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// What went wrong this time.
    detail: String,
    /// Where: the field, the queue, the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
    /// The answer of the engine was lost: it may have happened. Repeat with the same id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outcome_unknown: bool,
}

/// A refusal: an error with its status.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Error,
    challenge: bool,
}

pub(crate) type Answer<T> = Result<T, Refusal>;

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { status: status_of(error.kind()), error, challenge: false }
    }
}

impl Refusal {
    /// The same error under another status than its kind's.
    pub(crate) fn with(status: StatusCode, error: Error) -> Self {
        Self { status, error, challenge: false }
    }

    /// No token, or none that is known.
    pub(crate) fn unauthenticated(error: Error) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, error, challenge: true }
    }

    /// The error as one object of a list of results.
    pub(crate) fn problem(&self) -> Problem {
        let (name, title) = kind_of(self.status, self.error.kind());
        Problem {
            kind: format!("urn:onward:problem:{name}"),
            title,
            status: self.status.as_u16(),
            detail: self.error.what().to_owned(),
            place: self.error.place().map(str::to_owned),
            mend: self.error.mend_text().map(str::to_owned),
            outcome_unknown: self.error.retry_hint() == RetryHint::Unknown,
        }
    }

    fn retry_after(&self) -> Option<u64> {
        let waits = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        waits.then(|| match self.error.retry_hint() {
            RetryHint::After(span) => span.max(Duration::from_secs(1)).as_secs(),
            _ => 1,
        })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        if self.status.is_server_error() {
            tracing::warn!(status = self.status.as_u16(), error = %self.error, "refused");
        }
        let body = serde_json::to_vec(&self.problem()).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"onward\""));
        }
        response
    }
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::LeaseLost => StatusCode::CONFLICT,
        ErrorKind::Full => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable | ErrorKind::Closed | ErrorKind::Poisoned => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Unauthorized => StatusCode::FORBIDDEN,
        ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn kind_of(status: StatusCode, kind: ErrorKind) -> (&'static str, &'static str) {
    match (status, kind) {
        (StatusCode::UNAUTHORIZED, _) => ("unauthenticated", "A token is needed"),
        (StatusCode::PAYLOAD_TOO_LARGE, _) => ("too-large", "The request is too large"),
        (StatusCode::REQUEST_TIMEOUT, _) => ("too-slow", "The request took too long to arrive"),
        (StatusCode::UNPROCESSABLE_ENTITY, _) => ("key-reused", "The key was used for another request"),
        (StatusCode::METHOD_NOT_ALLOWED, _) => {
            ("method-not-allowed", "The address does not take this method")
        }
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, _) => ("media-type", "The media type is not understood"),
        (_, ErrorKind::Invalid) => ("invalid", "The request is wrong"),
        (_, ErrorKind::Unsupported) => ("unsupported", "The engine does not do this"),
        (_, ErrorKind::NotFound) => ("not-found", "There is no such thing"),
        (_, ErrorKind::AlreadyExists) => ("already-exists", "It exists with other content"),
        (_, ErrorKind::Conflict) => ("conflict", "A condition did not hold"),
        (_, ErrorKind::LeaseLost) => ("lease-lost", "The lease has ended"),
        (_, ErrorKind::Full) => ("full", "A bound is reached"),
        (_, ErrorKind::Unavailable) => ("unavailable", "It can't be done now"),
        (_, ErrorKind::Closed) => ("closed", "The server is going down"),
        (_, ErrorKind::Poisoned) => ("poisoned", "The disk failed; writing is refused"),
        (_, ErrorKind::Unauthorized) => ("forbidden", "The token does not allow this"),
        (_, ErrorKind::Corrupt) => ("corrupt", "Stored data is damaged"),
        (_, ErrorKind::Internal) => ("internal", "A fault of the server"),
    }
}
