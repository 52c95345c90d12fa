//! Messages of a queue: enqueue one or many, look, cancel.

use super::{Asked, InPath, InPathWithId, check_limit, ndjson, queues::queue_of};
use crate::{
    app::{App, defaults},
    auth::{Action, Caller},
    body,
    problem::{Answer, Problem, Refusal},
};
use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use onward::{
    core::{
        Accepted, CancelOutcome, Cursor, Durability, Error, FindBy, Message, MessageId, MessageQuery,
        MessageState, Position,
    },
    view_json,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

pub(super) const NDJSON: &str = "application/x-ndjson";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const KEY_MAX: usize = 255;

/// A message was accepted: durable, not done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedBody {
    /// The message's id; of a duplicate, the first one's.
    #[schema(value_type = String)]
    id: MessageId,
    /// It was accepted before; nothing was added.
    duplicate: bool,
    /// The queue did not exist and was declared with defaults.
    declared: bool,
    /// Its place, where the engine has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    position: Option<Position>,
    /// What holds now.
    #[schema(value_type = String)]
    durability: Durability,
}

impl From<Accepted> for AcceptedBody {
    fn from(accepted: Accepted) -> Self {
        let Accepted { id, duplicate, declared, position, durability } = accepted;
        Self { id, duplicate, declared, position, durability }
    }
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Messages {
    /// The messages with everything that is known of them.
    #[schema(value_type = Vec<Object>)]
    pub(super) messages: Vec<Box<RawValue>>,
    /// Where to go on; nothing when this was all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// What a cancellation did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// `cancelled`: gone. `requested`: its worker is asked to stop. `already_finished`.
    #[schema(value_type = String)]
    pub(super) outcome: CancelOutcome,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAsked {
    /// The state; `waiting` by default.
    #[param(value_type = Option<String>)]
    state: Option<MessageState>,
    /// In place of a state: what bears this correlation id.
    correlation_id: Option<String>,
    /// At most so many, 1 to 1000.
    #[serde(default = "super::page_default")]
    limit: usize,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Puts a message into a queue, or many, one a line; each is answered once it is durable, never when it is done.
///
/// A message needs an `id`, or the request an `Idempotency-Key`: a repeat of either answers the first receipt. Many are
/// sent as `application/x-ndjson`, each with its `id`, and answered by a line each, in order.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages", tag = "queues",
    params(("queue" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Object, description = "The envelope: `type` and `data` at least"), responses(
    (status = 202, description = "It is durable", body = AcceptedBody),
    (status = 200, description = "A result a line", content_type = "application/x-ndjson"),
    (status = 400, body = Problem, description = "Wrong", content_type = "application/problem+json"),
    (status = 409, body = Problem, description = "The id has other content", content_type = "application/problem+json"),
    (status = 422, body = Problem, description = "The key was used for another request", content_type = "application/problem+json"),
    (status = 429, body = Problem, description = "The queue is full; see `Retry-After`", content_type = "application/problem+json"),
))]
pub(super) async fn enqueue(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    caller.on(Action::Publish, &inlet)?;
    let queue = queue_of(&inlet)?;
    let media = body::require_media(&headers, &["application/json", NDJSON])?;
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    if media == NDJSON {
        return ndjson::enqueue(&app, &caller, &queue, &held.bytes).await;
    }
    let key = idempotency_key(&headers)?;
    let id = key.as_deref().map(|key| id_of_key(&caller, key)).transpose()?;
    let message = message_of(&app, &caller, &held.bytes, id)?;
    match app.onward.enqueue(&queue.to_string(), message).await {
        Ok(accepted) => Ok((StatusCode::ACCEPTED, Json(AcceptedBody::from(accepted))).into_response()),
        Err(error) => Err(refuse_with_key(error, key.is_some())),
    }
}

/// Messages of a queue by state or correlation id, without handing them out.
#[utoipa::path(get, path = "/v1/queues/{queue}/messages", tag = "queues",
    params(("queue" = String, Path), ListAsked), responses((status = 200, description = "A page", body = Messages)))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    InPath(inlet): InPath,
    Asked(asked): Asked<ListAsked>,
) -> Answer<Json<Messages>> {
    caller.on(Action::Read, &inlet)?;
    let by = match (asked.state, asked.correlation_id) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("both are given")
                .at("`state` and `correlation_id`")
                .mend("give one")
                .into());
        }
        (_, Some(id)) => FindBy::Correlation(id.into()),
        (state, None) => FindBy::State(state.unwrap_or(MessageState::Waiting)),
    };
    let query = MessageQuery { inlet, by, after: asked.after.map(Cursor), limit: check_limit(asked.limit)? };
    page(&app, query).await
}

pub(super) async fn page(app: &App, query: MessageQuery) -> Answer<Json<Messages>> {
    let page = app.onward.engine().find(query).await?;
    let messages = page.items.iter().map(view).collect::<Answer<_>>()?;
    Ok(Json(Messages { messages, next: page.next.map(|Cursor(text)| text) }))
}

/// One message with everything that is known of it.
#[utoipa::path(get, path = "/v1/queues/{queue}/messages/{id}", tag = "queues",
    params(("queue" = String, Path), ("id" = String, Path)), responses(
    (status = 200, description = "The message", body = Object),
    (status = 404, body = Problem, description = "There is none", content_type = "application/problem+json"),
))]
pub(super) async fn find(
    State(app): State<App>,
    caller: Caller,
    InPathWithId(inlet, id): InPathWithId,
) -> Answer<Json<Box<RawValue>>> {
    caller.on(Action::Read, &inlet)?;
    let found = app.onward.engine().find(MessageQuery::id(inlet, id.clone())).await?.items.pop();
    let found = found.ok_or_else(|| Error::not_found("there is no such message").at(id))?;
    view(&found).map(Json)
}

/// Cancels a message: a waiting one is gone, a leased one is asked to stop.
#[utoipa::path(delete, path = "/v1/queues/{queue}/messages/{id}", tag = "queues",
    params(("queue" = String, Path), ("id" = String, Path)), responses(
    (status = 200, description = "What it did", body = Cancelled),
    (status = 404, body = Problem, description = "There is none", content_type = "application/problem+json"),
))]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    InPathWithId(inlet, id): InPathWithId,
) -> Answer<Json<Cancelled>> {
    caller.on(Action::Operate, &inlet)?;
    let outcome = app.onward.cancel(&inlet.to_string(), &id).await?;
    Ok(Json(Cancelled { outcome }))
}

fn view(view: &onward::core::MessageView) -> Answer<Box<RawValue>> {
    let json = serde_json::value::to_raw_value(&view_json(view));
    json.map_err(|e| Error::internal(format!("a message can't be shown: {e}")).into())
}

/// A message of a request: with an id of its own, or the one that the request's key stands for.
pub(super) fn message_of(app: &App, caller: &Caller, text: &[u8], id: Option<MessageId>) -> Answer<Message> {
    let env = &**app.onward.env();
    if id.is_none() && !has_id(text) {
        let error = Error::invalid("the message has no `id`, and the request no `Idempotency-Key`");
        return Err(error.mend("give one of them, so that a repeat is recognised").into());
    }
    let by_key = id.is_some();
    let mut builder = defaults("message", caller);
    if let Some(id) = id {
        builder = builder.id(id);
    }
    let message = Message::from_json_with(text, builder, env)?;
    if by_key && has_id(text) {
        let error = Error::invalid("the message has an `id` and the request an `Idempotency-Key`");
        return Err(error.mend("give one of them").into());
    }
    Ok(message)
}

fn has_id(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Id {
        id: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Id>(text).is_ok_and(|found| found.id.is_some())
}

/// The request's key, if it has one.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Answer<Option<String>> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let wrong = || Error::invalid("is not 1 to 255 visible characters").at("`Idempotency-Key`");
    let text = value.to_str().map_err(|_| wrong())?.trim().trim_matches('"');
    if text.is_empty() || text.len() > KEY_MAX {
        return Err(wrong().into());
    }
    Ok(Some(text.to_owned()))
}

/// The id that a key stands for: the same for the same caller, another for every other.
pub(super) fn id_of_key(caller: &Caller, key: &str) -> Answer<MessageId> {
    let mut hash = Sha256::new();
    hash.update((caller.name().len() as u64).to_le_bytes());
    hash.update(caller.name().as_bytes());
    hash.update(key.as_bytes());
    Ok(MessageId::try_from(format!("key-{}", hex::encode(&hash.finalize()[..16])))?)
}

/// A conflict of a request with a key means that the key was used for something else.
pub(super) fn refuse_with_key(error: Error, by_key: bool) -> Refusal {
    if by_key && error.kind() == onward::ErrorKind::Conflict {
        let error = Error::conflict("the key was used for another request").at("`Idempotency-Key`");
        return Refusal::with(
            StatusCode::UNPROCESSABLE_ENTITY,
            error.mend("use a new key for a new request"),
        );
    }
    error.into()
}
