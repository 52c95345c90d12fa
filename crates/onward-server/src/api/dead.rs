//! Dead letters: list, edit, redrive.

use super::{
    Asked, InPath, InPathWithId, Paging, check_limit,
    messages::{Messages, page},
    queues::{Bulk, bulk_to_end, operate},
};
use crate::{
    app::App,
    auth::{Action, Caller},
    body,
    problem::{Answer, Problem},
};
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use onward::core::{
    BulkId, Cursor, DeadEdit, Error, FindBy, MessageQuery, MessageState, Op, Payload, Receipt, Selection,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use utoipa::ToSchema;

/// Which dead letters are worked on again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Redrive {
    /// Which; all by default.
    #[serde(default)]
    #[schema(value_type = Object)]
    selection: Selection,
    /// This long between one and the next, in milliseconds; 0 for all at once.
    #[serde(default)]
    spacing_ms: u64,
    /// Only count.
    #[serde(default)]
    dry_run: bool,
}

/// What changes in a dead letter; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// New data, as JSON.
    #[schema(value_type = Option<Object>)]
    data: Option<Box<RawValue>>,
    /// New type.
    #[serde(rename = "type")]
    #[schema(value_type = Option<String>)]
    kind: Option<Arc<str>>,
    /// New version of the type.
    version: Option<u32>,
    /// Headers to set; `null` removes one.
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
}

/// A dead letter was edited.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Edited {
    /// The edition that is worked on when redriven; the original is kept.
    edition: u32,
}

/// Dead letters with all their causes, oldest first.
#[utoipa::path(get, path = "/v1/queues/{queue}/dead", tag = "dead letters",
    params(("queue" = String, Path), Paging), responses((status = 200, description = "A page", body = Messages)))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    Asked(paging): Asked<Paging>,
) -> Answer<Json<Messages>> {
    caller.on(Action::Read, &inlet)?;
    let limit = check_limit(paging.limit)?;
    let by = FindBy::State(MessageState::Dead);
    page(&app, MessageQuery { inlet, by, after: paging.after.map(Cursor), limit }).await
}

/// Makes a new edition of a dead letter; the original and the difference are kept.
#[utoipa::path(patch, path = "/v1/queues/{queue}/dead/{id}", tag = "dead letters",
    params(("queue" = String, Path), ("id" = String, Path)), request_body = Edit, responses(
    (status = 200, description = "The new edition", body = Edited),
    (status = 404, body = Problem, description = "There is none", content_type = "application/problem+json"),
))]
pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller,
    InPathWithId(inlet, id): InPathWithId,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Edited>> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let asked: Edit = body::json(&headers, &held.bytes)?;
    let data = asked.data.map(|json| Payload::json_text(json.get().as_bytes().to_vec())).transpose()?;
    let edit = DeadEdit { data, kind: asked.kind, version: asked.version, headers: asked.headers };
    match operate(&app, &caller, &inlet, Op::EditDead { inlet: inlet.clone(), id, edit }).await? {
        Some(Receipt::Edited { edition }) => Ok(Json(Edited { edition })),
        _ => Err(Error::internal("the engine answered an edit with another receipt").into()),
    }
}

/// Moves dead letters back to work, keeping id, history and correlation.
#[utoipa::path(post, path = "/v1/queues/{queue}/dead/redrive", tag = "dead letters", params(("queue" = String, Path)),
    request_body = Redrive, responses((status = 200, description = "How many", body = Bulk)))]
pub(super) async fn redrive(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Bulk>> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let asked: Redrive = body::json(&headers, &held.bytes)?;
    let op = Op::Redrive {
        inlet: inlet.clone(),
        selection: asked.selection,
        spacing: Duration::from_millis(asked.spacing_ms),
        bulk: BulkId::generate(&**app.onward.env()),
        dry_run: asked.dry_run,
    };
    bulk_to_end(&app, &caller, &inlet, &op).await
}
