//! Handing out: lease with a bounded wait, extend, progress. A GET never claims work.

use super::token;
use crate::{
    app::App,
    auth::{Action, Caller},
    body,
    problem::{Answer, Problem, Refusal},
};
use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use onward::{
    core::{
        Cause, Delivery, Error, Holder, Inlet, LEASE_COUNT_MAX, LeaseRequest, LeaseToken, Op, Payload,
        ProcessId, RequestId, Timestamp, WeightedInlet,
    },
    envelope_json, payload_json,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};
use utoipa::ToSchema;

const COUNT_DEFAULT: u32 = 1;
const BYTES_DEFAULT: u64 = 8 * 1024 * 1024;

/// A request for work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Lease {
    /// Where from: names of queues and subscriptions (`TOPIC:NAME`).
    #[schema(value_type = Vec<String>)]
    inlets: Vec<Inlet>,
    /// Their shares when several have work, in the same order; equal by default.
    #[serde(default)]
    weights: Vec<u32>,
    /// At most so many deliveries.
    #[serde(default = "count_default")]
    count: u32,
    /// Stop adding deliveries once their payloads have so many bytes; the first always fits.
    #[serde(default = "bytes_default")]
    bytes_max: u64,
    /// How long to wait for the first, in milliseconds; at most 60000.
    #[serde(default)]
    wait_ms: u64,
    /// How long each lease lasts, in milliseconds; as the queue says by default.
    lease_ms: Option<u64>,
    /// The worker's name, for people.
    worker: String,
    /// One start of the worker's program; a random text made at its start.
    process: Option<String>,
    /// Message types to take; all by default.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    accepts: Vec<Arc<str>>,
    /// 32 hex digits: a repeat with the same gets the same deliveries and burns no attempt.
    request_id: Option<String>,
}

fn count_default() -> u32 {
    COUNT_DEFAULT
}

fn bytes_default() -> u64 {
    BYTES_DEFAULT
}

/// What was handed out.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Leased {
    /// The deliveries; none when there was nothing in time.
    pub(super) deliveries: Vec<Given>,
}

/// One message handed out for one attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Given {
    /// The right to settle it.
    token: String,
    /// Which attempt this is, from 1.
    attempt: u32,
    /// How long the lease lasts from now, in milliseconds.
    lease_ms: u64,
    /// When the message was accepted.
    #[schema(value_type = String, format = DateTime)]
    accepted_at: Timestamp,
    /// The failed attempts so far.
    #[schema(value_type = Vec<Object>)]
    causes: Vec<Cause>,
    /// What the last attempt left by progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    progress: Option<Box<RawValue>>,
    /// A suspect of a process's death: work on nothing else meanwhile.
    suspect: bool,
    /// The envelope and data.
    #[schema(value_type = Object)]
    message: Box<RawValue>,
}

impl TryFrom<Delivery> for Given {
    type Error = Error;

    fn try_from(delivery: Delivery) -> Result<Self, Error> {
        Ok(Self {
            token: token::to_text(&delivery.token)?,
            attempt: delivery.attempt,
            lease_ms: u64::try_from(delivery.lease.as_millis()).unwrap_or(u64::MAX),
            accepted_at: delivery.accepted_at,
            causes: delivery.causes,
            progress: delivery.progress.as_ref().map(payload_json),
            suspect: delivery.suspect,
            message: envelope_json(&delivery.message),
        })
    }
}

/// Leases to extend.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Extend {
    /// Their tokens.
    tokens: Vec<String>,
    /// To how long from now, in milliseconds.
    by_ms: u64,
}

/// One lease's extension, in the order of the tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum ExtendedBody {
    /// It lasts.
    Extended {
        /// From now, in milliseconds.
        lease_ms: u64,
        /// Somebody wants the work stopped.
        cancel_requested: bool,
    },
    /// It does not.
    Refused {
        /// Why.
        error: Problem,
    },
}

/// What became of the extensions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ExtendedAll {
    /// One for each token, in order.
    results: Vec<ExtendedBody>,
}

/// How far a running attempt has come.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    /// The lease.
    token: String,
    /// Any JSON; the next attempt gets it.
    #[schema(value_type = Object)]
    detail: Box<RawValue>,
}

/// Hands out work, waiting up to `wait_ms` for the first of it.
#[utoipa::path(post, path = "/v1/lease", tag = "work", request_body = Lease, responses(
    (status = 200, description = "What was handed out; perhaps nothing", body = Leased),
    (status = 404, body = Problem, description = "An inlet does not exist", content_type = "application/problem+json"),
))]
pub(super) async fn lease(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Leased>> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let asked: Lease = body::json(&headers, &held.bytes)?;
    drop(held);
    hand_out(&app, &caller, asked).await.map(Json)
}

/// Leases by a request; the wait ends early when the server stops or too many wait.
pub(super) async fn hand_out(app: &App, caller: &Caller, asked: Lease) -> Answer<Leased> {
    asked.inlets.iter().try_for_each(|inlet| caller.on(Action::Work, inlet))?;
    let (_permit, wait) = app.waiting(Duration::from_millis(asked.wait_ms));
    let request = LeaseRequest { wait, ..request_of(app, caller, asked)? };
    let leasing = app.onward.engine().lease(request.clone());
    let deliveries = tokio::select! {
        deliveries = leasing => deliveries?,
        // What was leased meanwhile must not be lost: the same request is asked once more, without waiting.
        () = app.stopped() => {
            app.onward.engine().lease(LeaseRequest { wait: Duration::ZERO, ..request }).await?
        }
    };
    let deliveries = deliveries.into_iter().map(Given::try_from).collect::<Result<_, _>>()?;
    Ok(Leased { deliveries })
}

fn request_of(app: &App, caller: &Caller, asked: Lease) -> Answer<LeaseRequest> {
    if asked.worker.is_empty() || asked.worker.len() > 255 {
        return Err(Error::invalid("is not 1 to 255 bytes").at("`worker`").into());
    }
    if !asked.weights.is_empty() && asked.weights.len() != asked.inlets.len() {
        return Err(Error::invalid("has another length than `inlets`").at("`weights`").into());
    }
    let weights = asked.weights.into_iter().chain(std::iter::repeat(1));
    let inlets = asked.inlets.into_iter().zip(weights).map(|(inlet, weight)| WeightedInlet { inlet, weight });
    let worker = asked.worker;
    let process = asked.process.unwrap_or_else(|| worker.clone());
    Ok(LeaseRequest {
        request_id: request_id(app, asked.request_id.as_deref())?,
        inlets: inlets.collect(),
        count_max: asked.count,
        bytes_max: asked.bytes_max,
        wait: Duration::ZERO,
        lease: asked.lease_ms.map(Duration::from_millis),
        // Processes of one caller are not those of another, whatever they are called.
        holder: Holder {
            worker: worker.into(),
            process: ProcessId(format!("{}/{process}", caller.name()).into()),
        },
        accepts: asked.accepts,
    })
}

fn request_id(app: &App, text: Option<&str>) -> Answer<RequestId> {
    let Some(text) = text else { return Ok(RequestId::generate(&**app.onward.env())) };
    let hex: String = text.chars().filter(|c| *c != '-').collect();
    let wrong = || Error::invalid("is not 32 hex digits").at("`request_id`").mend("use a UUID").into();
    if hex.len() != 32 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    u128::from_str_radix(&hex, 16).map(RequestId).map_err(|_| wrong())
}

/// Reads tokens and refuses those of queues where the caller may not work.
pub(super) fn tokens(caller: &Caller, texts: &[String]) -> Answer<Vec<LeaseToken>> {
    if texts.len() > LEASE_COUNT_MAX {
        let what = format!("{} tokens in one request, more than {LEASE_COUNT_MAX}", texts.len());
        return Err(Error::invalid(what).at("`tokens`").into());
    }
    let read = |text: &String| {
        let token = token::from_text(text)?;
        caller.on(Action::Work, &token.inlet)?;
        Ok(token)
    };
    texts.iter().map(read).collect()
}

/// Extends leases, each with its own result. One call is one write.
#[utoipa::path(post, path = "/v1/extend", tag = "work", request_body = Extend,
    responses((status = 200, description = "A result for each token", body = ExtendedAll)))]
pub(super) async fn extend(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<ExtendedAll>> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let asked: Extend = body::json(&headers, &held.bytes)?;
    let tokens = tokens(&caller, &asked.tokens)?;
    let results = app.onward.engine().extend(tokens, Duration::from_millis(asked.by_ms)).await?;
    let results = results.into_iter().map(|result| match result {
        Ok(extended) => ExtendedBody::Extended {
            lease_ms: u64::try_from(extended.lease.as_millis()).unwrap_or(u64::MAX),
            cancel_requested: extended.cancel_requested,
        },
        Err(error) => ExtendedBody::Refused { error: Refusal::from(error).problem() },
    });
    Ok(Json(ExtendedAll { results: results.collect() }))
}

/// Keeps what a running attempt has reached, for its successor and for whoever looks.
#[utoipa::path(post, path = "/v1/progress", tag = "work", request_body = Progress, responses(
    (status = 204, description = "It is kept"),
    (status = 409, body = Problem, description = "The lease has ended", content_type = "application/problem+json"),
))]
pub(super) async fn progress(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Answer<StatusCode> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let asked: Progress = body::json(&headers, &held.bytes)?;
    let token = tokens(&caller, &[asked.token])?.remove(0);
    let detail = Payload::json_text(asked.detail.get().as_bytes().to_vec())?;
    app.onward.commit(vec![Op::Progress { token, detail }]).await?;
    Ok(StatusCode::NO_CONTENT)
}
