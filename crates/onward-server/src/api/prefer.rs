//! What a caller prefers (RFC 7240).

use axum::http::{HeaderMap, HeaderValue};
use onward::jobs::WAIT_MAX;
use std::time::Duration;

/// What the caller prefers; what is not known is passed over (RFC 7240).
#[derive(Debug, Default)]
pub(super) struct Prefer {
    pub(super) wait: Option<Duration>,
    asynchronous: bool,
}

impl Prefer {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut prefer = Self::default();
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        for preference in values.flat_map(|value| value.split(',')) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            match (name.trim().to_ascii_lowercase().as_str(), value.trim().trim_matches('"').parse::<u64>()) {
                ("wait", Ok(seconds)) => prefer.wait = Some(Duration::from_secs(seconds).min(WAIT_MAX)),
                ("respond-async", _) => prefer.asynchronous = true,
                _ => {}
            }
        }
        prefer
    }

    pub(super) fn applied(&self, ended: bool) -> Option<HeaderValue> {
        match self.wait {
            Some(wait) if ended || !self.asynchronous => {
                HeaderValue::try_from(format!("wait={}", wait.as_secs())).ok()
            }
            _ if self.asynchronous => Some(HeaderValue::from_static("respond-async")),
            _ => None,
        }
    }
}
