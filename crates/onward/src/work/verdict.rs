//! How a handler ends: what it may return, and what its errors mean.

use onward_core::{CauseKind, ErrorKind, Failure, Payload, RetryHint, RetryPolicy};
use serde::Serialize;
use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

/// Any error that can be sent between threads; what every error here is made from.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What a handler returns: `work::Result` alone is `Result<(), work::Error>`.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// How a handler ended.
#[derive(Debug)]
pub enum Verdict {
    /// Done; acknowledged, with a result for queues that keep results.
    Done(Option<Payload>),
    /// Failed; what follows is decided by the error's kind.
    Failed(Error),
}

/// What a handler may return: nothing, [`Json`](super::Json) as a result, a [`Verdict`], or a `Result` of these.
pub trait Answer {
    /// The verdict that it is.
    fn into_verdict(self) -> Verdict;
}

impl Answer for () {
    fn into_verdict(self) -> Verdict {
        Verdict::Done(None)
    }
}

impl Answer for Verdict {
    fn into_verdict(self) -> Verdict {
        self
    }
}

impl<T: Serialize> Answer for super::Json<T> {
    fn into_verdict(self) -> Verdict {
        match Payload::json(&self.0) {
            Ok(result) => Verdict::Done(Some(result)),
            Err(problem) => Verdict::Failed(Permanent(problem).into()),
        }
    }
}

impl<T: Answer, E: Into<Error>> Answer for std::result::Result<T, E> {
    fn into_verdict(self) -> Verdict {
        match self {
            Ok(answer) => answer.into_verdict(),
            Err(error) => Verdict::Failed(error.into()),
        }
    }
}

/// What is to become of a message whose handler failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// It may pass: again after the queue's delay, until its attempts are used up.
    Transient,
    /// It may pass: again by this policy; the queue's own bound on attempts holds as well.
    Retry(RetryPolicy),
    /// It may pass, but not before this long (`Retry-After`).
    After(Duration),
    /// It will not pass: to the dead letters now.
    Permanent,
    /// Not now: put back for this long; it does not count as an attempt.
    Release(Duration),
    /// Not wanted any more: cancelled.
    Cancel,
}

/// Why a handler did not get its work done. `?` makes one of any error; it is then taken to be transient.
///
/// Wrap an error to say more: [`Permanent`], [`RetryAfter`], [`Transient`]. Say [`Release`] to try later without
/// counting an attempt, [`Cancel`] to drop the work.
///
/// An [`onward_core::Error`] knows itself whether repeating helps: one that is `Invalid` or `Unsupported` is
/// permanent.
#[derive(Debug, Clone)]
pub struct Error {
    class: Option<Class>,
    source: Arc<dyn StdError + Send + Sync>,
}

impl Error {
    fn classed(class: Class, source: impl Into<BoxError>) -> Self {
        Self { class: Some(class), source: source.into().into() }
    }

    /// The error that it was made from.
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// One that nobody sorted yet.
    pub(crate) fn unsorted(source: BoxError) -> Self {
        Self { class: None, source: source.into() }
    }

    /// What the handler said is to become of the message, if it said so.
    pub fn class(&self) -> Option<&Class> {
        self.class.as_ref()
    }

    /// The error with everything that caused it, in one sentence.
    pub(crate) fn failure(&self, kind: CauseKind) -> Failure {
        if let Some(Failed(failure)) = self.source.downcast_ref() {
            return failure.clone();
        }
        let mut text = self.source.to_string();
        let mut cause = self.source.source();
        while let Some(error) = cause.filter(|_| text.len() < onward_core::FAILURE_BYTES_MAX) {
            let more = error.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        Failure::new(kind, text)
    }

    /// What an error means when neither its handler nor a policy says so.
    pub(crate) fn default_class(&self) -> Class {
        let Some(error) = self.source.downcast_ref::<onward_core::Error>() else { return Class::Transient };
        match (error.kind(), error.retry_hint()) {
            (ErrorKind::Invalid | ErrorKind::Unsupported, _) => Class::Permanent,
            (_, RetryHint::After(span)) => Class::After(span),
            _ => Class::Transient,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self { class: None, source: Arc::new(error) }
    }
}

/// This error may pass: `call().await.map_err(Transient)?`. For errors that are not of `std::error::Error`.
#[derive(Debug)]
pub struct Transient<E>(pub E);

/// This error will not pass, so the message is rejected: `parse(text).map_err(Permanent)?`, or
/// `Err(Permanent("no such user"))?`.
#[derive(Debug)]
pub struct Permanent<E>(pub E);

/// This error may pass, but not before this long: `Err(RetryAfter(error, wait))?`.
#[derive(Debug)]
pub struct RetryAfter<E>(pub E, pub Duration);

/// This failure as it stands, with its own kind and detail: for handlers that know more than an error's text, as one
/// that runs other programs. It may pass; `Permanent(Failed(failure))` will not.
#[derive(Debug, Clone)]
pub struct Failed(pub Failure);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.error)?;
        self.0.detail.iter().try_for_each(|detail| write!(f, "\n{detail}"))
    }
}

impl StdError for Failed {}

/// Not now: put the message back for this long, without counting an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Release(pub Duration);

/// The work is not wanted any more: the message is cancelled.
#[derive(Debug, Clone, Copy)]
pub struct Cancel;

impl<E: Into<BoxError>> From<Transient<E>> for Error {
    fn from(error: Transient<E>) -> Self {
        Self::classed(Class::Transient, error.0)
    }
}

impl<E: Into<BoxError>> From<Permanent<E>> for Error {
    fn from(error: Permanent<E>) -> Self {
        Self::classed(Class::Permanent, error.0)
    }
}

impl<E: Into<BoxError>> From<RetryAfter<E>> for Error {
    fn from(error: RetryAfter<E>) -> Self {
        Self::classed(Class::After(error.1), error.0)
    }
}

impl From<Release> for Error {
    fn from(release: Release) -> Self {
        Self::classed(Class::Release(release.0), "put back by the handler")
    }
}

impl From<Cancel> for Error {
    fn from(_: Cancel) -> Self {
        Self::classed(Class::Cancel, "cancelled by the handler")
    }
}
