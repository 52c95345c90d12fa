//! The end of a part: counted in the commit that ends its message, or found by whoever sweeps.

use super::{
    GATHER_HEADER, GATHER_KEPT, GatherState, Joined, PART_HEADER, PREFIX, PartState,
    plan::{Plan, ended_as},
    record_key,
};
use crate::Onward;
use onward_core::{
    Cursor, Error, ErrorKind, Inlet, Message, MessageQuery, Op, Outcome, Payload, Record, RecordExpect,
    RecordKey, RecordQuery, Result,
};

/// Records that one sweep looks at, at most; the next one goes on behind them.
const SWEEP_MAX: usize = 200;

/// What a message's end means for its gather.
pub(crate) struct Ending {
    key: RecordKey,
    place: (usize, usize),
    state: PartState,
    result: Option<Payload>,
}

impl Ending {
    /// Of a message that ends so; `None` for one that is a part of no gather, or comes again.
    pub(crate) fn of(message: &Message, outcome: &Outcome) -> Option<Self> {
        let (state, result) = match outcome {
            Outcome::Ack { result } => (PartState::Done, result.clone()),
            Outcome::Reject { .. } => (PartState::Dead, None),
            Outcome::Retry { .. } | Outcome::Release { .. } => return None,
        };
        let key = record_key(message.headers.get(GATHER_HEADER)?).ok()?;
        let (step, index) = message.headers.get(PART_HEADER)?.split_once('.')?;
        let place = (step.parse().ok()?, index.parse().ok()?);
        Some(Self { key, place, state, result })
    }

    /// What joins the commit, and the revision of the record that it was made of.
    ///
    /// # Errors
    /// What the engine answers.
    pub(crate) async fn join(&self, onward: &Onward) -> Result<(Option<u64>, Joined)> {
        let query = RecordQuery::Keys(vec![self.key.clone()]);
        let asked = onward.engine().get_records(query);
        let found = crate::work::answered(onward, "reading a gather", asked).await?.items.pop();
        // One that ended long ago is forgotten; its parts go on by themselves.
        let Some(record) = found else { return Ok((None, Vec::new())) };
        let ops = advance(&record, self.place, self.state, self.result.as_ref())?;
        Ok((Some(record.revision), ops))
    }
}

/// Counts the end of a part: the record's new content, fenced by its revision, and what is released.
fn advance(
    record: &Record,
    place: (usize, usize),
    state: PartState,
    result: Option<&Payload>,
) -> Result<Joined> {
    let mut plan = read(record)?;
    let Some(released) = plan.end(place, state, result)? else { return Ok(Vec::new()) };
    let put = put(&record.key, &plan, RecordExpect::Revision(record.revision))?;
    Ok([put].into_iter().chain(released).collect())
}

pub(super) fn read(record: &Record) -> Result<Plan> {
    serde_json::from_slice(&record.value)
        .map_err(|e| Error::corrupt(format!("a gather's record can't be read: {e}")).at(&record.key))
}

pub(super) fn put(key: &RecordKey, plan: &Plan, expect: RecordExpect) -> Result<Op> {
    let value = serde_json::to_vec(plan).map_err(|e| Error::internal(format!("a gather's record: {e}")))?;
    let ttl = (plan.state != GatherState::Running).then_some(GATHER_KEPT);
    Ok(Op::PutRecord { key: key.clone(), value: value.into(), expect, ttl })
}

/// Counts parts that ended without their handler: dead after the last attempt, cancelled, expired, purged.
///
/// Looks at a bounded number of gathers, beginning behind `after`; answers where the next sweep begins.
///
/// # Errors
/// What the engine answers.
pub(crate) async fn sweep(onward: &Onward, after: Option<Cursor>) -> Result<Option<Cursor>> {
    let query = RecordQuery::Prefix { prefix: PREFIX.into(), after, limit: SWEEP_MAX };
    let asked = onward.engine().get_records(query);
    let page = crate::work::answered(onward, "reading gathers", asked).await?;
    for record in &page.items {
        if let Err(error) = sweep_one(onward, record).await {
            tracing::warn!(gather = %record.key, %error, "a gather could not be looked at; looking again later");
        }
    }
    Ok(page.next)
}

async fn sweep_one(onward: &Onward, record: &Record) -> Result<()> {
    let mut record = record.clone();
    for (place, queue, id) in read(&record)?.pending() {
        let query = MessageQuery::id(Inlet::Queue(queue), id);
        let found = crate::work::answered(onward, "looking for a part", onward.engine().find(query)).await?;
        let Some(state) = ended_as(found.items.first().map(|view| view.state)) else { continue };
        let ops = advance(&record, place, state, None)?;
        if ops.is_empty() {
            continue;
        }
        match onward.commit(ops).await {
            Ok(_) => {}
            // It went on meanwhile: the next sweep looks again.
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(()),
            Err(error) => return Err(error),
        }
        let query = RecordQuery::Keys(vec![record.key.clone()]);
        match onward.engine().get_records(query).await?.items.pop() {
            Some(newer) => record = newer,
            None => return Ok(()),
        }
    }
    Ok(())
}
