//! Checked operations: what an engine may take as right.

use crate::{
    AtomicScope, COMMIT_BYTES_MAX, Capabilities, Capability, Error, Guarded, Inlet, Message, OPS_MAX, Op,
    Outcome, RECORD_VALUE_BYTES_MAX, Result, TAGS_MAX, TYPES_MAX, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Operations that passed every check; what [`crate::Engine::commit`] and [`crate::Engine::submit`] take.
///
/// Cheap to clone: a caller that is refused for backpressure still has its work in hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    ops: Arc<Vec<Op>>,
    actor: Option<Arc<str>>,
}

impl Prepared {
    /// Checks operations against the message model's limits and an engine's capabilities. Pure; `now` measures delays.
    ///
    /// # Errors
    /// `Invalid` with the operation's place and the mend; `Unsupported` where the engine does not do it. Nothing was
    /// changed in either case.
    pub fn check(ops: Vec<Op>, capabilities: &Capabilities, now: Timestamp) -> Result<Self> {
        let most = OPS_MAX.min(capabilities.limits.ops_max);
        if ops.is_empty() || ops.len() > most {
            return Err(Error::invalid(format!("{} operations in one commit", ops.len()))
                .mend(format!("give 1 to {most}; split the rest into further commits")));
        }
        let mut bytes = 0usize;
        for (index, op) in ops.iter().enumerate() {
            check_op(op, capabilities, now).map_err(|e| place(e, index, op))?;
            bytes += size_of(op);
        }
        if bytes > COMMIT_BYTES_MAX {
            return Err(Error::invalid(format!("{bytes} bytes in one commit, more than {COMMIT_BYTES_MAX}"))
                .mend("split it into several commits"));
        }
        check_scope(&ops, capabilities)?;
        Ok(Self { ops: Arc::new(ops), actor: None })
    }

    /// Says who does it, for the audit.
    pub fn by(mut self, actor: &str) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// The operations.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The operations, taken out; cloned only when somebody else holds them too.
    pub fn into_ops(self) -> Vec<Op> {
        Arc::try_unwrap(self.ops).unwrap_or_else(|shared| shared.as_ref().clone())
    }

    /// Who does it.
    pub fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }
}

fn place(error: Error, index: usize, op: &Op) -> Error {
    let inner = error.place().map(|p| format!(", {p}")).unwrap_or_default();
    error.at(format!("operation {} ({}{inner})", index + 1, op.name()))
}

fn size_of(op: &Op) -> usize {
    match op {
        Op::Enqueue { message, .. } | Op::Publish { message, .. } => message.size(),
        Op::PutSchedule { schedule: Some(schedule), .. } => schedule.template.size(),
        Op::Append { events, .. } => events.iter().map(|e| e.message.size()).sum(),
        Op::PutRecord { value, .. } => value.len(),
        Op::Progress { detail, .. } => detail.as_bytes().len(),
        Op::Settle { outcome: Outcome::Ack { result: Some(result) }, .. } => result.as_bytes().len(),
        _ => 0,
    }
}

fn check_op(op: &Op, capabilities: &Capabilities, now: Timestamp) -> Result<()> {
    let need = |capability| capabilities.require(capability, op.name());
    match op {
        Op::Enqueue { message, .. } => {
            need(Capability::Queues).and_then(|()| check_message(message, capabilities, now))
        }
        Op::Publish { message, .. } => {
            need(Capability::Topics).and_then(|()| check_message(message, capabilities, now))
        }
        Op::Settle { outcome, .. } => check_settle(outcome, capabilities),
        Op::Cancel { .. } => need(Capability::Cancel),
        Op::Reschedule { .. } => need(Capability::Reschedule),
        Op::Progress { detail, .. } => {
            need(Capability::Progress).and_then(|()| check_value(detail.as_bytes().len()))
        }
        Op::EndProcess { died, .. } => {
            need(if *died { Capability::CrashSuspects } else { Capability::Queues })
        }
        Op::Append { events, condition, .. } => {
            need(Capability::Streams)?;
            if condition.is_some() {
                need(Capability::TagConditions)?;
            }
            if events.is_empty() {
                return Err(Error::invalid("no events").mend("append at least one"));
            }
            if events.len() > OPS_MAX {
                return Err(Error::invalid(format!("{} events, more than {OPS_MAX}", events.len()))
                    .mend("append them in several operations, each with the revision of the one before"));
            }
            condition.as_ref().map_or(Ok(()), check_condition)?;
            events.iter().try_for_each(|event| check_event(event, capabilities, now))
        }
        Op::PutRecord { value, ttl, .. } => {
            need(Capability::Records)?;
            if ttl.is_some() {
                need(Capability::RecordTtl)?;
            }
            check_value(value.len())
        }
        Op::DeleteRecord { .. } | Op::Guard(Guarded::Record { .. }) => need(Capability::Records),
        Op::Guard(Guarded::Stream { .. }) | Op::Truncate { .. } => need(Capability::Streams),
        Op::Guard(Guarded::Lease { .. }) => need(Capability::Queues),
        Op::PutSchedule { name, schedule } => {
            need(Capability::Schedules)?;
            let Some(schedule) = schedule else { return Ok(()) };
            schedule.check(now)?;
            check_message(&schedule.message(name, now), capabilities, now)
        }
        Op::Pause { .. } | Op::Resume { .. } => need(Capability::Pause),
        Op::Seek { .. } => need(Capability::Seek),
        Op::EditDead { .. } | Op::Redrive { .. } => need(Capability::DeadLetters),
        Op::Purge { .. } => need(Capability::Purge),
    }
}

fn check_settle(outcome: &Outcome, capabilities: &Capabilities) -> Result<()> {
    capabilities.require(Capability::Queues, "settle")?;
    match outcome {
        Outcome::Release { .. } => capabilities.require(Capability::Release, "release"),
        Outcome::Ack { result: Some(result) } => {
            capabilities.require(Capability::Results, "a result")?;
            check_value(result.as_bytes().len())
        }
        _ => Ok(()),
    }
}

fn check_value(bytes: usize) -> Result<()> {
    if bytes <= RECORD_VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!("has {bytes} bytes, more than {RECORD_VALUE_BYTES_MAX}"))
        .at("the value")
        .mend("put it into object storage and keep a reference"))
}

fn check_condition(condition: &crate::AppendCondition) -> Result<()> {
    let (types, tags) = (condition.query.types.len(), condition.query.tags.len());
    if types <= TYPES_MAX && tags <= TAGS_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!("asks for {types} types and {tags} tags"))
        .at("`condition`")
        .mend(format!("use at most {TYPES_MAX} types and {TAGS_MAX} tags")))
}

fn check_event(event: &crate::Event, capabilities: &Capabilities, now: Timestamp) -> Result<()> {
    if event.tags.len() > TAGS_MAX {
        return Err(
            Error::invalid(format!("has {} tags, more than {TAGS_MAX}", event.tags.len())).at("`tags`")
        );
    }
    check_message(&event.message, capabilities, now)
}

fn check_message(message: &Message, capabilities: &Capabilities, now: Timestamp) -> Result<()> {
    message.check()?;
    let bytes = message.size() as u64;
    if bytes > capabilities.limits.payload_bytes_max {
        let most = capabilities.limits.payload_bytes_max;
        return Err(Error::invalid(format!("has {bytes} bytes, more than the engine's {most}"))
            .at("`data`")
            .mend("put it into object storage and send a reference (claim check)"));
    }
    let asked = [
        (message.due.is_some(), Capability::Delay),
        (message.expiry.is_some(), Capability::Expiry),
        (message.order_key.is_some(), Capability::OrderByKey),
        (message.unique_key.is_some(), Capability::Unique),
        (message.dedup_key.is_some(), Capability::Dedup),
        (message.fairness_key.is_some(), Capability::Fairness),
        (message.priority != crate::Priority::default(), Capability::Priority),
    ];
    asked.iter().filter(|(used, _)| *used).try_for_each(|(_, c)| capabilities.require(*c, "this message"))?;
    let delay = message.due.map(|due| due.since(now));
    match (delay, capabilities.limits.delay_max) {
        (Some(delay), Some(most)) if delay > most => {
            Err(Error::unsupported(format!("a delay of {delay:?} is longer than the engine's {most:?}"))
                .at("`due`")
                .mend("give the engine a store, which bridges longer delays"))
        }
        _ => Ok(()),
    }
}

/// A commit that reaches wider than the engine's declared scope is refused before any effect.
fn check_scope(ops: &[Op], capabilities: &Capabilities) -> Result<()> {
    let fits = match capabilities.atomic {
        AtomicScope::Store => true,
        AtomicScope::Messages => ops.iter().all(is_about_messages),
        AtomicScope::Inlet => {
            let first = ops.first().and_then(inlet_of);
            first.is_some() && ops.iter().all(|op| inlet_of(op) == first)
        }
        AtomicScope::Operation => ops.len() == 1,
    };
    if fits {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the engine {} can't make these {} operations all-or-nothing",
        capabilities.engine,
        ops.len()
    ))
    .mend("send them one by one with `submit`, or give the engine a store"))
}

fn inlet_of(op: &Op) -> Option<Inlet> {
    match op {
        Op::Enqueue { queue, .. } => Some(Inlet::Queue(queue.clone())),
        Op::Settle { token, .. } | Op::Progress { token, .. } | Op::Guard(Guarded::Lease { token }) => {
            Some(token.inlet.clone())
        }
        Op::Cancel { inlet, .. }
        | Op::Reschedule { inlet, .. }
        | Op::Pause { inlet }
        | Op::Resume { inlet }
        | Op::Seek { inlet, .. }
        | Op::EditDead { inlet, .. }
        | Op::Redrive { inlet, .. }
        | Op::Purge { inlet, .. } => Some(inlet.clone()),
        _ => None,
    }
}

/// Publishes and settlements, as opposed to records, events and schedules.
fn is_about_messages(op: &Op) -> bool {
    matches!(
        op,
        Op::Enqueue { .. } | Op::Publish { .. } | Op::Settle { .. } | Op::Guard(Guarded::Lease { .. })
    )
}
