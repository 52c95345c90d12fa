//! Liveness and readiness, apart: a process that lives may not be able to take work.

use crate::app::App;
use axum::{Json, extract::State, http::StatusCode, response::IntoResponse};
use onward_core::{Durability, Problem, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// How the engine is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Readiness {
    /// Reads are answered.
    readable: bool,
    /// Writes are accepted.
    writable: bool,
    /// What an acceptance means now.
    #[schema(value_type = String)]
    durability: Durability,
    /// What is wrong, and the mend.
    problems: Vec<Wrong>,
}

/// One thing that is wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Wrong {
    what: String,
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    mend: String,
}

impl From<Problem> for Wrong {
    fn from(problem: Problem) -> Self {
        Self { what: problem.what, since: problem.since, mend: problem.mend }
    }
}

/// The process lives. It says nothing of the disk or the engine.
#[utoipa::path(get, path = "/health/live", tag = "health", responses((status = 204, description = "It lives")))]
pub(super) async fn live() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Whether it can take work: 200, or 503 with what is wrong.
#[utoipa::path(get, path = "/health/ready", tag = "health", responses(
    (status = 200, description = "It takes work", body = Readiness),
    (status = 503, description = "It does not; what is wrong", body = Readiness),
))]
pub(super) async fn ready(State(app): State<App>) -> impl IntoResponse {
    let health = app.onward.engine().health();
    let well = health.readable && health.writable;
    let body = Readiness {
        readable: health.readable,
        writable: health.writable,
        durability: health.durability,
        problems: health.problems.into_iter().map(Wrong::from).collect(),
    };
    (if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(body))
}
