//! What the server says, as errors of the seam.

use onward_core::{Error, ErrorKind, Result, RetryHint};
use std::time::Duration;
use tokio_postgres::error::{DbError, SqlState};

/// Whether an answer that was lost may have done something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It reads: nothing can have happened.
    None,
    /// It writes: it may have happened.
    Maybe,
}

/// An error of the driver, as its caller is to see it.
pub(crate) fn from_driver(error: &tokio_postgres::Error, effect: Effect) -> Error {
    match error.as_db_error() {
        Some(said) => from_server(said, effect),
        None if effect == Effect::Maybe => {
            Error::unknown(format!("the connection was lost: {}", chain(error)))
                .mend("repeat the call with the same ids")
        }
        None => Error::unavailable(format!("the server can't be reached: {}", chain(error))),
    }
}

/// Whether the server gave up this transaction for another's sake, so that it can simply be tried again.
pub(crate) fn is_collision(error: &tokio_postgres::Error) -> bool {
    let codes = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.code().is_some_and(|code| codes.contains(code))
}

/// Whether connecting may succeed a moment later.
pub(crate) fn may_pass(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        None => true,
        Some(code) => {
            *code == SqlState::CANNOT_CONNECT_NOW
                || *code == SqlState::TOO_MANY_CONNECTIONS
                || *code == SqlState::ADMIN_SHUTDOWN
                || *code == SqlState::CRASH_SHUTDOWN
        }
    }
}

fn from_server(said: &DbError, effect: Effect) -> Error {
    let text = said.message().to_owned();
    match said.code().code() {
        "OW001" => Error::not_found(text).mend("declare it, or look for its name"),
        "OW002" => Error::conflict(text),
        "OW003" => Error::full(text).mend("wait until something is done, or raise its bounds"),
        "OW004" => Error::invalid(text)
            .at("`data`")
            .mend("put it into object storage and send a reference (claim check)"),
        "OW005" => Error::lease_lost(text),
        "40P01" | "40001" | "55P03" => {
            Error::unavailable(format!("another transaction stood in the way: {text}")).retry(RetryHint::Now)
        }
        "57P01" | "57P02" if effect == Effect::Maybe => {
            Error::unknown(format!("the server ended the connection: {text}"))
                .mend("repeat the call with the same ids")
        }
        "57P01" | "57P02" | "57P03" => {
            Error::unavailable(format!("the server is going down or coming up: {text}"))
        }
        "53300" => Error::unavailable(format!("the server has no free connection: {text}"))
            .mend("lower `pool` in the URL, or raise max_connections"),
        "53100" | "53200" => Error::full(format!("the server has no room: {text}"))
            .retry(RetryHint::After(Duration::from_secs(5))),
        "25006" => {
            Error::unavailable(format!("the server is read-only: {text}")).mend("connect to the primary")
        }
        "3D000" => Error::not_found(text).mend("create the database, or correct its name in the URL"),
        "42501" => Error::unauthorized(text).mend("grant the role what it needs in the instance's schema"),
        code if code.starts_with("28") => {
            Error::unauthorized(text).mend("correct user and password in the URL")
        }
        code if code.starts_with("08") => lost(&text, effect),
        code => Error::internal(format!("the server said {code}: {text}")),
    }
}

fn lost(text: &str, effect: Effect) -> Error {
    match effect {
        Effect::Maybe => Error::unknown(format!("the connection was lost: {text}")),
        Effect::None => Error::unavailable(format!("the server can't be reached: {text}")),
    }
}

/// The error with what caused it.
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// A value that the server holds and that this version can't read.
pub(crate) fn unreadable(what: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, RetryHint::Never, format!("{what} in the database can't be read: {why}"))
}

/// The same for conversions in a chain.
pub(crate) trait Readable<T> {
    fn readable(self, what: &str) -> Result<T>;
}

impl<T, E: std::fmt::Display> Readable<T> for std::result::Result<T, E> {
    fn readable(self, what: &str) -> Result<T> {
        self.map_err(|why| unreadable(what, why))
    }
}
