//! The HTTP API: one file for each kind of thing, and what they share.

mod dead;
mod health;
mod job_body;
mod jobs;
mod leases;
mod messages;
mod ndjson;
mod prefer;
mod queues;
mod settle;
mod token;

use crate::{
    app::App,
    openapi,
    problem::{Answer, Refusal},
};
use axum::{
    Router,
    extract::{FromRequestParts, rejection::QueryRejection},
    http::{StatusCode, request::Parts},
    routing::get,
};
use onward_core::{Error, Inlet, PAGE_MAX};
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The whole API with its description.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::head())
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(queues::list))
        .routes(routes!(queues::show, queues::declare, queues::drop_queue))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(queues::purge))
        .routes(routes!(messages::enqueue, messages::list))
        .routes(routes!(messages::find, messages::cancel))
        .routes(routes!(leases::lease))
        .routes(routes!(leases::extend))
        .routes(routes!(leases::progress))
        .routes(routes!(settle::settle))
        .routes(routes!(dead::list))
        .routes(routes!(dead::edit))
        .routes(routes!(dead::redrive))
        .routes(routes!(jobs::submit))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::events))
}

/// What is served: the API, its description, the metrics, and one form of refusal for everything else.
pub(crate) fn router(app: App) -> Router {
    let (api, description) = routes().split_for_parts();
    let text = serde_json::to_string(&description).unwrap_or_default();
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    api.route("/openapi.json", get(move || async move { (json, text) }))
        .route("/metrics", get(crate::metrics::show))
        .fallback(|| async {
            Refusal::from(Error::not_found("there is nothing at this address").mend("see /openapi.json"))
        })
        .method_not_allowed_fallback(|| async {
            Refusal::with(
                StatusCode::METHOD_NOT_ALLOWED,
                Error::invalid("this address does not take this method").mend("see /openapi.json"),
            )
        })
        .with_state(app)
}

/// The name of a queue or subscription in the address.
#[derive(Debug, Clone)]
pub(crate) struct InPath(pub(crate) Inlet);

/// Two parts of an address: a queue or subscription, and an id.
#[derive(Debug, Clone)]
pub(crate) struct InPathWithId(pub(crate) Inlet, pub(crate) onward_core::MessageId);

impl<S: Send + Sync> FromRequestParts<S> for InPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let axum::extract::Path(name) = path::<String, S>(parts, state).await?;
        Ok(Self(name.parse()?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InPathWithId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let axum::extract::Path((name, id)) = path::<(String, String), S>(parts, state).await?;
        Ok(Self(name.parse()?, id.try_into()?))
    }
}

async fn path<T: DeserializeOwned + Send, S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Answer<axum::extract::Path<T>> {
    let found = axum::extract::Path::from_request_parts(parts, state).await;
    found.map_err(|e| Error::invalid(e.body_text()).at("the address").into())
}

/// The part of the address behind `?`; unknown names are refused by the types themselves.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let asked = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let refuse = |e: QueryRejection| Error::invalid(e.body_text()).at("the address behind `?`").into();
        asked.map(|axum::extract::Query(asked)| Self(asked)).map_err(refuse)
    }
}

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    /// At most so many, 1 to 1000.
    #[serde(default = "page_default")]
    limit: usize,
    /// The `next` of the page before.
    after: Option<String>,
}

fn page_default() -> usize {
    100
}

/// Refuses a page size out of range.
pub(crate) fn check_limit(limit: usize) -> Answer<usize> {
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(Error::invalid(format!("{limit} is out of range"))
        .at("`limit`")
        .mend(format!("use 1 to {PAGE_MAX}"))
        .into())
}
