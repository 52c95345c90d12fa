//! What of two answers must agree.

use crate::Bench;
use crate::model::Now;
use onward_core::{Op, Receipt, Result};

pub(super) fn now(b: &Bench) -> Now {
    Now { wall: b.env().now(), monotonic: b.env().monotonic() }
}

/// What two answers must have in common: the kind of an error, or what happened without places and times.
pub(super) fn answer(answer: &Result<Receipt>) -> String {
    match answer {
        Err(error) => format!("{:?}", error.kind()),
        Ok(Receipt::Accepted(a)) => format!("accepted {} duplicate {}", a.id, a.duplicate),
        Ok(Receipt::Settled(s)) => {
            format!("settled {} already {} due {}", s.state, s.already, s.due.is_some())
        }
        Ok(other) => format!("{other:?}"),
    }
}

pub(super) fn brief(op: &Op) -> String {
    match op {
        Op::Enqueue { message, .. } => {
            let key = message.order_key.as_ref().map(ToString::to_string).unwrap_or_default();
            format!(
                "enqueue {} {key} priority {} due {:?} expiry {:?}",
                message.id,
                message.priority.get(),
                message.due,
                message.expiry
            )
        }
        Op::Settle { token, outcome } => format!("settle {} {outcome:?}", token.id),
        Op::Cancel { id, .. } => format!("cancel {id}"),
        Op::Redrive { selection, dry_run, .. } => format!("redrive {:?} dry {dry_run}", selection.ids),
        Op::Purge { what, selection, dry_run, .. } => {
            format!("purge {what:?} {:?} dry {dry_run}", selection.ids)
        }
        other => other.name().to_owned(),
    }
}
