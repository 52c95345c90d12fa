//! Jobs: submit, look up, wait, cancel, follow. Accepted is never completed.

use super::{
    Asked,
    job_body::{JobBody, accepted},
    messages::{Cancelled, id_of_key, idempotency_key, refuse_with_key},
    prefer::Prefer,
};
use crate::{
    app::{App, defaults},
    auth::{Action, Caller},
    body,
    problem::{Answer, Problem},
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, stream};
use onward::{
    core::{Error, Inlet, Key, MessageId, Name, Payload},
    jobs::{Job, WAIT_MAX},
};
use serde::Deserialize;
use std::{convert::Infallible, time::Duration};
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmitAsked {
    /// The job's id, in place of an `Idempotency-Key`.
    id: Option<String>,
    /// The version of the job's type, 1 by default.
    version: Option<u32>,
    /// Not before so many milliseconds have passed.
    delay_ms: Option<u64>,
    /// Not handed out any more after so many milliseconds.
    ttl_ms: Option<u64>,
    /// 0 (lowest) to 9.
    priority: Option<u8>,
    /// Jobs of one key run one after the other, where the queue keeps order.
    order_key: Option<String>,
    /// What it belongs to.
    correlation_id: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowAsked {
    /// Wait so long for the job to end, in milliseconds; at most 60000.
    #[serde(default)]
    wait_ms: u64,
}

/// Submits a job: its type is the queue, the body its data. 202 once it is durable; it is found by its id then.
///
/// It needs an `Idempotency-Key` or an `id`: a repeat finds the same job, whatever has become of it. With
/// `Prefer: wait=N` the answer comes with the result if that is there within N seconds; otherwise it is 202 with the id,
/// and the outcome is unknown, not failed. The id is found for 24 hours.
#[utoipa::path(post, path = "/v1/jobs/{job}", tag = "jobs",
    params(("job" = String, Path, description = "The type of the job: its queue"), ("Idempotency-Key" = Option<String>, Header), ("Prefer" = Option<String>, Header), SubmitAsked),
    request_body(content = Object, description = "The job's data; JSON, or any media type"), responses(
    (status = 202, description = "It is durable; not done", body = JobBody),
    (status = 200, description = "It ended within the wait", body = JobBody),
    (status = 400, body = Problem, description = "Wrong, or without id and key", content_type = "application/problem+json"),
    (status = 409, body = Problem, description = "The id has other content", content_type = "application/problem+json"),
    (status = 422, body = Problem, description = "The key was used for another request", content_type = "application/problem+json"),
    (status = 429, body = Problem, description = "The queue is full; see `Retry-After`", content_type = "application/problem+json"),
))]
pub(super) async fn submit(
    State(app): State<App>,
    caller: Caller,
    Path(kind): Path<String>,
    Asked(asked): Asked<SubmitAsked>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    let queue: Name = kind.parse()?;
    caller.on(Action::Publish, &Inlet::Queue(queue.clone()))?;
    let key = idempotency_key(&headers)?;
    let id = id_of(&caller, key.as_deref(), asked.id.clone())?;
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let message = message_of(&caller, queue.local(), id, asked, data_of(&headers, held.bytes.clone())?)?;
    drop(held);
    let prefer = Prefer::of(&headers);
    let jobs = app.onward.jobs();
    let submitted = jobs.submit(&queue.to_string(), message).await;
    let submitted = submitted.map_err(|error| refuse_with_key(error, key.is_some()))?;
    let (_permit, wait) = app.waiting(prefer.wait.unwrap_or_default());
    let found = tokio::select! {
        found = jobs.wait(&submitted.id, wait) => found?,
        () = app.stopped(), if !wait.is_zero() => jobs.find(&submitted.id).await?,
    };
    let mut job = found.map_or_else(|| accepted(&submitted.id), JobBody::from);
    job.duplicate = submitted.duplicate;
    let ended = prefer.wait.is_some() && job.status.is_final();
    let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut response = (status, Json(job)).into_response();
    let location = HeaderValue::try_from(format!("/v1/jobs/{}", escaped(submitted.id.as_str())));
    response.headers_mut().insert(header::LOCATION, location.map_err(|e| Error::internal(e.to_string()))?);
    if let Some(applied) = prefer.applied(ended) {
        response.headers_mut().insert("preference-applied", applied);
    }
    Ok(response)
}

fn id_of(caller: &Caller, key: Option<&str>, id: Option<String>) -> Answer<MessageId> {
    match (key, id) {
        (Some(key), None) => id_of_key(caller, key),
        (None, Some(id)) => Ok(id.try_into()?),
        (None, None) => Err(Error::invalid("the request has neither an `Idempotency-Key` nor an `id`")
            .mend("give one of them, so that a repeat finds the same job")
            .into()),
        (Some(_), Some(_)) => {
            Err(Error::invalid("both `Idempotency-Key` and `id` are given").mend("give one").into())
        }
    }
}

fn data_of(headers: &HeaderMap, bytes: bytes::Bytes) -> Answer<Payload> {
    let media = body::media(headers);
    match media.as_str() {
        "application/json" if bytes.is_empty() => Ok(Payload::json_text("null")?),
        "application/json" => Ok(Payload::json_text(bytes)?),
        media => Ok(Payload::bytes(bytes, media)?),
    }
}

fn message_of(
    caller: &Caller,
    kind: &str,
    id: MessageId,
    asked: SubmitAsked,
    data: Payload,
) -> Answer<onward::core::MessageBuilder> {
    let mut builder = defaults(kind, caller).id(id).data(data);
    if let Some(version) = asked.version {
        builder = builder.version(version);
    }
    if let Some(delay) = asked.delay_ms {
        builder = builder.delay(Duration::from_millis(delay));
    }
    if let Some(ttl) = asked.ttl_ms {
        builder = builder.ttl(Duration::from_millis(ttl));
    }
    if let Some(priority) = asked.priority {
        builder = builder.priority(priority);
    }
    if let Some(key) = asked.order_key {
        builder = builder.order_key(Key::try_from(key)?.as_str());
    }
    if let Some(id) = asked.correlation_id {
        builder = builder.correlation_id(&id);
    }
    Ok(builder)
}

/// A job by its id, waiting up to `wait_ms` for it to end.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "The id of the job"), ShowAsked), responses(
    (status = 200, description = "How it stands now", body = JobBody),
    (status = 404, body = Problem, description = "It is not known", content_type = "application/problem+json"),
))]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(asked): Asked<ShowAsked>,
) -> Answer<Json<JobBody>> {
    let id = readable(&app, &caller, id).await?;
    let (_permit, wait) = app.waiting(Duration::from_millis(asked.wait_ms));
    let jobs = app.onward.jobs();
    let found = tokio::select! {
        found = jobs.wait(&id, wait) => found?,
        () = app.stopped(), if !wait.is_zero() => jobs.find(&id).await?,
    };
    found.map(|job| Json(JobBody::from(job))).ok_or_else(|| unknown(&id).into())
}

/// Cancels a job: a pending one is gone, a running one is asked to stop.
#[utoipa::path(post, path = "/v1/jobs/{job}/cancel", tag = "jobs", params(("job" = String, Path, description = "The id of the job")), responses(
    (status = 200, description = "What it did", body = Cancelled),
    (status = 404, body = Problem, description = "It is not known", content_type = "application/problem+json"),
))]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Answer<Json<Cancelled>> {
    let id = MessageId::try_from(id)?;
    let queue = app.onward.jobs().queue_of(&id).await?.ok_or_else(|| unknown(&id))?;
    caller.on(Action::Publish, &Inlet::Queue(queue))?;
    let outcome = app.onward.jobs().cancel(&id).await?;
    Ok(Json(Cancelled { outcome }))
}

/// Follows a job as server-sent events, one at each change, until it has ended.
///
/// An event only prompts: what `GET` answers is the truth.
#[utoipa::path(get, path = "/v1/jobs/{job}/events", tag = "jobs", params(("job" = String, Path, description = "The id of the job")), responses(
    (status = 200, description = "`event: status` with the job as data", content_type = "text/event-stream"),
    (status = 404, body = Problem, description = "It is not known", content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Answer<Response> {
    let id = readable(&app, &caller, id).await?;
    let (permit, _) = app.waiting(WAIT_MAX);
    let permit = permit.ok_or_else(|| Error::unavailable("too many follow already"))?;
    let following = follow(app, id);
    let held = stream::StreamExt::map(following, move |event| {
        let _permit = &permit;
        event
    });
    Ok(Sse::new(held).keep_alive(KeepAlive::default()).into_response())
}

fn follow(app: App, id: MessageId) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    stream::unfold(Some((app, id, None::<JobBody>)), |state| async {
        let (app, id, last) = state?;
        loop {
            let jobs = app.onward.jobs();
            let unchanged = |job: &Job| last.as_ref() == Some(&JobBody::from(job.clone()));
            let found = tokio::select! {
                found = jobs.wait_while(&id, WAIT_MAX, unchanged) => found,
                () = app.stopped() => return None,
            };
            // An engine that can't answer, or a job that is gone, ends the stream: its reader looks for itself.
            let body = JobBody::from(found.ok()??);
            if last.as_ref() == Some(&body) {
                continue;
            }
            let event = Event::default().event("status").json_data(&body).ok()?;
            let next = (!body.status.is_final()).then(|| (app.clone(), id.clone(), Some(body)));
            return Some((Ok(event), next));
        }
    })
}

/// The id of a job that the caller may see.
async fn readable(app: &App, caller: &Caller, id: String) -> Answer<MessageId> {
    let id = MessageId::try_from(id)?;
    let queue = app.onward.jobs().queue_of(&id).await?.ok_or_else(|| unknown(&id))?;
    let inlet = Inlet::Queue(queue);
    match caller.on(Action::Read, &inlet).or_else(|_| caller.on(Action::Publish, &inlet)) {
        Ok(()) => Ok(id),
        // Whether a job exists is told to nobody who may not see it.
        Err(_) => Err(unknown(&id).into()),
    }
}

fn unknown(id: &MessageId) -> Error {
    Error::not_found("there is no such job, or it is kept no longer").at(id)
}

/// An id as one part of an address.
fn escaped(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let escape = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    id.bytes().map(escape).collect()
}
