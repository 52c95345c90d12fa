//! Which messages a command is about: the same filters wherever there are any.

use super::values::{Moment, moment};
use crate::exit::{Failure, Outcome};
use clap::{Args, ValueEnum};
use onward_core::{CauseKind, Key, MessageId, MessageView, Selection, Timestamp};

/// Filters; every one given must hold.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters (every one given must hold)")]
pub(crate) struct Filters {
    /// Of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Of this correlation id
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Of this order key
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    order_key: Option<Key>,
    /// Whose last failure is of this kind
    #[arg(long, value_name = "KIND")]
    cause: Option<CauseArg>,
    /// Whose last error contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Set aside before: RFC 3339, or how long ago as in 2h
    #[arg(long, value_name = "TIME", value_parser = moment)]
    before: Option<Moment>,
    /// At most so many, oldest first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

impl Filters {
    /// Whether none was given.
    fn is_empty(&self) -> bool {
        let Self { kind, correlation_id, order_key, cause, error, before, limit } = self;
        kind.is_none()
            && correlation_id.is_none()
            && order_key.is_none()
            && cause.is_none()
            && error.is_none()
            && before.is_none()
            && limit.is_none()
    }

    /// The selection of these ids and filters.
    pub(crate) fn selection(&self, ids: &[MessageId], now: Timestamp) -> Selection {
        Selection {
            ids: ids.to_vec(),
            kind: self.kind.as_deref().map(Into::into),
            correlation_id: self.correlation_id.as_deref().map(Into::into),
            order_key: self.order_key.clone(),
            cause: self.cause.map(Into::into),
            error_contains: self.error.as_deref().map(Into::into),
            before: self.before.map(|moment| moment.at(now)),
            limit: self.limit,
        }
    }

    /// The selection of a command that changes something: all of them only where that is said.
    pub(crate) fn chosen(&self, ids: &[MessageId], all: bool, now: Timestamp) -> Outcome<Selection> {
        if ids.is_empty() && self.is_empty() && !all {
            return Err(Failure::usage("which ones?", "name ids, give a filter as --type, or say --all"));
        }
        Ok(self.selection(ids, now))
    }
}

/// Whether a dead letter is of the selection; `limit` is not looked at.
pub(crate) fn matches(selection: &Selection, view: &MessageView) -> bool {
    let message = &view.message;
    let last = view.causes.last().map(|cause| &cause.failure);
    let since = view.ended_at.unwrap_or(view.accepted_at);
    (selection.ids.is_empty() || selection.ids.contains(&message.id))
        && selection.kind.as_ref().is_none_or(|kind| *kind == message.kind)
        && selection.correlation_id.as_ref().is_none_or(|id| **id == *message.correlation())
        && selection.order_key.as_ref().is_none_or(|key| message.order_key.as_ref() == Some(key))
        && selection.cause.is_none_or(|kind| last.is_some_and(|f| f.kind == kind))
        && selection.error_contains.as_ref().is_none_or(|t| last.is_some_and(|f| f.error.contains(&**t)))
        && selection.before.is_none_or(|before| since < before)
}

/// A [`CauseKind`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CauseArg {
    Transient,
    Permanent,
    Timeout,
    Panicked,
    Crashed,
    LeaseExpired,
    UnknownType,
    Undecodable,
    SchemaFailed,
    BehindDeadHead,
}

impl From<CauseArg> for CauseKind {
    fn from(cause: CauseArg) -> Self {
        match cause {
            CauseArg::Transient => Self::Transient,
            CauseArg::Permanent => Self::Permanent,
            CauseArg::Timeout => Self::Timeout,
            CauseArg::Panicked => Self::Panicked,
            CauseArg::Crashed => Self::Crashed,
            CauseArg::LeaseExpired => Self::LeaseExpired,
            CauseArg::UnknownType => Self::UnknownType,
            CauseArg::Undecodable => Self::Undecodable,
            CauseArg::SchemaFailed => Self::SchemaFailed,
            CauseArg::BehindDeadHead => Self::BehindDeadHead,
        }
    }
}
