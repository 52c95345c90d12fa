//! Queues and subscriptions: list, declare, pause, resume, purge, drop.

use super::{Asked, InPath, Paging, check_limit};
use crate::{
    app::App,
    auth::{Action, Caller},
    body,
    problem::{Answer, Problem},
};
use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use onward::core::{
    BulkId, BulkReport, Error, Inlet, InletConfig, Op, PurgeWhat, Receipt, Selection, Stats, TopologyChange,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A page of queues and subscriptions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Queues {
    /// Numbers of each, all of one moment.
    #[schema(value_type = Vec<Object>)]
    queues: Vec<Stats>,
    /// Where to go on; nothing when this was all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One queue or subscription.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Queue {
    /// Its rules and bounds.
    #[schema(value_type = Object)]
    config: InletConfig,
    /// Its numbers.
    #[schema(value_type = Object)]
    stats: Stats,
}

/// What a declaration did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Declared {
    /// It is new.
    created: bool,
    /// The fields that changed.
    changed: Vec<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct DeclareAsked {
    /// Change a queue that exists; without it, other rules than those that stand are refused.
    #[serde(default)]
    update: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct DropAsked {
    /// Drop it with what is in it; without it, one that is not empty is refused.
    #[serde(default)]
    force: bool,
}

/// Which messages to purge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Purge {
    /// `waiting` (and delayed) or `dead`.
    #[schema(value_type = String)]
    what: PurgeWhat,
    /// Which of them; all by default.
    #[serde(default)]
    #[schema(value_type = Object)]
    selection: Selection,
    /// Only count.
    #[serde(default)]
    dry_run: bool,
}

/// How far a bulk operation came.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Bulk {
    /// How many matched.
    matched: u64,
    /// How many were changed; 0 in a dry run.
    done: u64,
}

/// Lists queues and subscriptions with their numbers.
#[utoipa::path(get, path = "/v1/queues", tag = "queues", params(Paging), responses(
    (status = 200, description = "Those that the token may read, by name", body = Queues),
    (status = 400, body = Problem, description = "Wrong", content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Asked(paging): Asked<Paging>,
) -> Answer<Json<Queues>> {
    let limit = check_limit(paging.limit)?;
    let mut inlets: Vec<Inlet> =
        app.onward.engine().topology().await?.inlets.into_iter().map(|(inlet, _)| inlet).collect();
    inlets.retain(|inlet| caller.on(Action::Read, inlet).is_ok());
    inlets.sort_by_cached_key(ToString::to_string);
    if let Some(after) = paging.after {
        inlets.retain(|inlet| inlet.to_string() > after);
    }
    let more = inlets.len() > limit;
    inlets.truncate(limit);
    let next = inlets.last().filter(|_| more).map(ToString::to_string);
    // Nothing named would mean all of them.
    let queues = if inlets.is_empty() { Vec::new() } else { app.onward.engine().stats(inlets).await? };
    Ok(Json(Queues { queues, next }))
}

/// Rules and numbers of one queue or subscription (`TOPIC:NAME`).
#[utoipa::path(get, path = "/v1/queues/{queue}", tag = "queues", params(("queue" = String, Path)), responses(
    (status = 200, description = "Its rules and numbers", body = Queue),
    (status = 404, body = Problem, description = "There is none", content_type = "application/problem+json"),
))]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
) -> Answer<Json<Queue>> {
    caller.on(Action::Read, &inlet)?;
    let engine = app.onward.engine();
    let known = engine.topology().await?.inlets.into_iter().find(|(known, _)| *known == inlet);
    let (_, config) = known.ok_or_else(|| Error::not_found("there is no such queue").at(&inlet))?;
    let stats = engine.stats(vec![inlet.clone()]).await?.pop();
    let stats = stats.ok_or_else(|| Error::not_found("there is no such queue").at(inlet))?;
    Ok(Json(Queue { config, stats }))
}

/// Declares a queue. What the body leaves out has its default; the same declaration again changes nothing.
#[utoipa::path(put, path = "/v1/queues/{queue}", tag = "queues", params(("queue" = String, Path), DeclareAsked),
    request_body(content = Object, description = "Rules and bounds, as `GET` shows them under `config`"), responses(
    (status = 200, description = "It is there", body = Declared),
    (status = 409, body = Problem, description = "It has other rules", content_type = "application/problem+json"),
))]
pub(super) async fn declare(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    Asked(asked): Asked<DeclareAsked>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Declared>> {
    caller.on(Action::Admin, &inlet)?;
    let name = queue_of(&inlet)?;
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let config: InletConfig = body::json(&headers, if held.bytes.is_empty() { b"{}" } else { &held.bytes })?;
    config.check()?;
    let change = TopologyChange::Queue { name, config: Box::new(config), update: asked.update };
    let diff = app.onward.engine().declare(change).await?;
    Ok(Json(Declared { created: diff.created, changed: diff.changed }))
}

/// Drops a queue or subscription.
#[utoipa::path(delete, path = "/v1/queues/{queue}", tag = "queues", params(("queue" = String, Path), DropAsked), responses(
    (status = 204, description = "It is gone"),
    (status = 409, body = Problem, description = "It is not empty", content_type = "application/problem+json"),
))]
pub(super) async fn drop_queue(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    Asked(asked): Asked<DropAsked>,
) -> Answer<StatusCode> {
    caller.on(Action::Admin, &inlet)?;
    let change = TopologyChange::DropInlet { inlet, only_if_empty: !asked.force };
    app.onward.engine().declare(change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops handing out; accepting goes on.
#[utoipa::path(post, path = "/v1/queues/{queue}/pause", tag = "queues", params(("queue" = String, Path)),
    responses((status = 204, description = "It hands out nothing")))]
pub(super) async fn pause(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
) -> Answer<StatusCode> {
    operate(&app, &caller, &inlet.clone(), Op::Pause { inlet }).await.map(|_| StatusCode::NO_CONTENT)
}

/// Hands out again.
#[utoipa::path(post, path = "/v1/queues/{queue}/resume", tag = "queues", params(("queue" = String, Path)),
    responses((status = 204, description = "It hands out")))]
pub(super) async fn resume(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
) -> Answer<StatusCode> {
    operate(&app, &caller, &inlet.clone(), Op::Resume { inlet }).await.map(|_| StatusCode::NO_CONTENT)
}

/// Removes messages; they are counted as purged.
#[utoipa::path(post, path = "/v1/queues/{queue}/purge", tag = "queues", params(("queue" = String, Path)),
    request_body = Purge, responses((status = 200, description = "How many", body = Bulk)))]
pub(super) async fn purge(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Bulk>> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let Purge { what, selection, dry_run } = body::json(&headers, &held.bytes)?;
    let bulk = BulkId::generate(&**app.onward.env());
    let op = Op::Purge { inlet: inlet.clone(), what, selection, bulk, dry_run };
    bulk_to_end(&app, &caller, &inlet, &op).await
}

/// Repeats a bulk operation until nothing is left to do.
pub(super) async fn bulk_to_end(app: &App, caller: &Caller, inlet: &Inlet, op: &Op) -> Answer<Json<Bulk>> {
    loop {
        match operate(app, caller, inlet, op.clone()).await? {
            Some(Receipt::Bulk(BulkReport { matched, done, finished: true })) => {
                return Ok(Json(Bulk { matched, done }));
            }
            Some(Receipt::Bulk(_)) => {}
            _ => {
                return Err(
                    Error::internal("the engine answered a bulk operation with another receipt").into()
                );
            }
        }
    }
}

/// One operation by whoever may operate here; the audit gets the caller's name.
pub(super) async fn operate(app: &App, caller: &Caller, inlet: &Inlet, op: Op) -> Answer<Option<Receipt>> {
    caller.on(Action::Operate, inlet)?;
    let prepared = app.onward.engine().prepare(vec![op])?.by(caller.name());
    Ok(app.onward.engine().commit(prepared).await?.pop())
}

/// The name, where only a queue makes sense.
pub(super) fn queue_of(inlet: &Inlet) -> Answer<onward::core::Name> {
    match inlet {
        Inlet::Queue(name) => Ok(name.clone()),
        Inlet::Subscription { .. } => {
            Err(Error::invalid("is a subscription, not a queue").at(inlet).mend("name a queue").into())
        }
    }
}
