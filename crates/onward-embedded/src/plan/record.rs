//! Records, and the audit that is kept as records.

use super::{Answer, Context, Draft, Planned};
use crate::{
    Fact, State,
    state::{Kept, record_size},
};
use bytes::Bytes;
use onward_core::{AUDIT_PREFIX, Error, Inlet, Receipt, RecordExpect, RecordKey, Result, RetryHint};
use std::time::Duration;

/// Most entries of the audit; the oldest go first.
pub const AUDIT_MAX: usize = 10_000;
/// How long an entry of the audit is kept, in days.
pub const AUDIT_DAYS: u64 = 90;

/// Checks what stands at a key, earlier operations of the commit included.
fn expect(
    state: &State,
    draft: &Draft,
    key: &RecordKey,
    expect: RecordExpect,
    ctx: &Context<'_>,
) -> Result<bool> {
    let stands = state.records.get(key, ctx.now).map(|record| record.revision);
    // What this commit wrote has no revision yet: nobody can expect it by number.
    let (there, revision) = match draft.records.get(key) {
        Some(written) => (*written, None),
        None => (stands.is_some(), stands),
    };
    let holds = match expect {
        RecordExpect::Any => true,
        RecordExpect::Absent => !there,
        RecordExpect::Present => there,
        RecordExpect::Revision(expected) => revision == Some(expected),
    };
    if holds {
        return Ok(there);
    }
    let found = match (there, revision) {
        (_, Some(revision)) => format!("revision {revision}"),
        (true, None) => "what this commit itself has written".to_owned(),
        (false, None) => "nothing".to_owned(),
    };
    Err(Error::conflict(format!("expected {expect:?}, found {found}"))
        .at(format!("record `{key}`"))
        .mend("read it again and decide anew"))
}

fn not_the_audit(key: &RecordKey) -> Result<()> {
    if key.as_str().starts_with(AUDIT_PREFIX) {
        return Err(Error::invalid("keys under `onward.audit/` are written by the engine alone")
            .at(format!("record `{key}`"))
            .mend("choose another key"));
    }
    Ok(())
}

pub(super) fn put(
    state: &State,
    draft: &mut Draft,
    key: &RecordKey,
    value: &Bytes,
    expected: RecordExpect,
    ttl: Option<Duration>,
    ctx: &mut Context<'_>,
) -> Planned {
    not_the_audit(key)?;
    expect(state, draft, key, expected, ctx)?;
    let expires = ttl.map(|ttl| ctx.now.plus(ttl));
    let kept = Kept { value: value.clone(), revision: 0, expires, written: ctx.now };
    draft.records_bytes += record_size(key, &kept);
    if state.records.bytes() + draft.records_bytes > ctx.records_bytes_max {
        return Err(Error::full(format!("records have {} bytes together", state.records.bytes()))
            .at(format!("record `{key}`"))
            .retry(RetryHint::After(Duration::from_secs(1)))
            .mend("give records a time to live, delete some, or raise `records_bytes_max`")
            .into());
    }
    draft.records.insert(key.clone(), true);
    let fact = draft.grow(Fact::RecordPut { key: key.clone(), value: value.clone(), expires });
    Ok(Answer::Recorded { fact })
}

pub(super) fn delete(
    state: &State,
    draft: &mut Draft,
    key: &RecordKey,
    expected: RecordExpect,
    ctx: &mut Context<'_>,
) -> Planned {
    not_the_audit(key)?;
    if expect(state, draft, key, expected, ctx)? {
        draft.records.insert(key.clone(), false);
        draft.drain(Fact::RecordDeleted { key: key.clone() });
    }
    Ok(Answer::Ready(Receipt::Done))
}

pub(super) fn guard(
    state: &State,
    draft: &mut Draft,
    key: &RecordKey,
    expected: RecordExpect,
    ctx: &mut Context<'_>,
) -> Planned {
    expect(state, draft, key, expected, ctx)?;
    Ok(Answer::Ready(Receipt::Done))
}

/// Adds an entry to the audit: who did what to which inlet.
pub(super) fn audit(
    state: &State,
    draft: &mut Draft,
    what: &str,
    inlet: &Inlet,
    detail: &str,
    ctx: &mut Context<'_>,
) {
    let place = draft.audits;
    draft.audits += 1;
    let key = format!("{AUDIT_PREFIX}{:020}-{:016x}-{place:04}", ctx.now.as_micros(), state.end());
    let Ok(key) = RecordKey::try_from(key) else { return };
    let entry = serde_json::json!({
        "at": ctx.now.to_string(),
        "actor": ctx.actor,
        "operation": what,
        "inlet": inlet.to_string(),
        "detail": detail,
    });
    let expires = Some(ctx.now.plus(Duration::from_secs(AUDIT_DAYS * 86_400)));
    draft.drain(Fact::RecordPut { key, value: entry.to_string().into(), expires });
    if state.records.audits() + place >= AUDIT_MAX {
        let oldest = state.records.range(AUDIT_PREFIX, None, ctx.now).nth(place);
        if let Some((key, _)) = oldest {
            draft.drain(Fact::RecordDeleted { key: key.clone() });
        }
    }
}
