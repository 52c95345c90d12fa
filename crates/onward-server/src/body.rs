//! Reading bodies within bounds: of one, of all together, and of time.

use crate::{
    ServerOptions,
    problem::{Answer, Refusal},
};
use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, header},
};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use onward_core::{Error, RetryHint};
use serde::de::DeserializeOwned;
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const UNIT: usize = 1024;
/// What a body of unknown length counts as until it is read.
const UNKNOWN_BYTES: usize = 1024 * 1024;

/// The room that bodies share.
#[derive(Debug)]
pub(crate) struct Bodies {
    room: Arc<Semaphore>,
    one_max: usize,
    timeout: Duration,
}

/// A body, and its share of the room for as long as it is held.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl Bodies {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        let units = (options.bodies_bytes_max / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            room: Arc::new(Semaphore::new(units)),
            one_max: options.body_bytes_max,
            timeout: options.body_timeout,
        }
    }

    /// Reads a body whole.
    ///
    /// # Errors
    /// 413 beyond the bound, before it is read where its length is told; 408 when it takes too long; 503 when bodies
    /// of others take all the room.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        env: &dyn onward_core::Env,
    ) -> Answer<Held> {
        let told = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if told.is_some_and(|length: usize| length > self.one_max) {
            return Err(self.too_large());
        }
        let mut room = self.take(told.unwrap_or(UNKNOWN_BYTES))?;
        let most = told.unwrap_or(self.one_max);
        let reading = Limited::new(body, most).collect();
        let collected = tokio::select! {
            collected = reading => collected,
            () = env.sleep(self.timeout) => return Err(too_slow()),
        };
        let bytes = match collected {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(self.too_large()),
            Err(error) => return Err(Error::invalid(format!("the body broke off: {error}")).into()),
        };
        if told.is_none() && bytes.len() > UNKNOWN_BYTES {
            room.merge(self.take(bytes.len() - UNKNOWN_BYTES)?);
        }
        Ok(Held { bytes, _room: room })
    }

    fn take(&self, bytes: usize) -> Answer<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        self.room.clone().try_acquire_many_owned(units).map_err(|_| {
            let error = Error::unavailable("the server has no room for this body now");
            error.retry(RetryHint::After(Duration::from_secs(1))).into()
        })
    }

    fn too_large(&self) -> Refusal {
        let error = Error::invalid(format!("the body has more than {} bytes", self.one_max));
        Refusal::with(
            StatusCode::PAYLOAD_TOO_LARGE,
            error.mend("split it, or put large data into object storage and its address into the message"),
        )
    }
}

fn too_slow() -> Refusal {
    Refusal::with(StatusCode::REQUEST_TIMEOUT, Error::invalid("the body did not arrive in time"))
}

/// A JSON body; unknown fields are refused by the types themselves.
///
/// # Errors
/// 415 for another media type than JSON, 400 with line and column.
pub(crate) fn json<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Answer<T> {
    require_media(headers, &["application/json"])?;
    if bytes.is_empty() {
        return Err(Error::invalid("the body is empty").mend("send a JSON object").into());
    }
    serde_json::from_slice(bytes).map_err(|e| Error::invalid(e.to_string()).at("the body").into())
}

/// The media type without its parameters; `application/json` where none is given.
pub(crate) fn media(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence =
        value.and_then(|value| value.split(';').next()).map(str::trim).filter(|text| !text.is_empty());
    essence.unwrap_or("application/json").to_ascii_lowercase()
}

/// Refuses another media type than these.
///
/// # Errors
/// 415, naming those that are taken.
pub(crate) fn require_media(headers: &HeaderMap, taken: &[&str]) -> Answer<String> {
    let media = media(headers);
    if taken.contains(&media.as_str()) {
        return Ok(media);
    }
    let error = Error::invalid(format!("`{media}` is not taken here"));
    Err(Refusal::with(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        error.at("`Content-Type`").mend(format!("send {}", taken.join(" or "))),
    ))
}
