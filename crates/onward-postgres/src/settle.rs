//! Settling and extending: leases as arrays, one call for many.

use crate::{
    core::{Core, call_on},
    error::{Effect, Readable},
    sql::Param,
};
use onward_core::{
    Error, Extended, Failure, LeaseToken, MessageState, Outcome, Result, RetryDelay, SettledAs, Timestamp,
};
use std::time::Duration;
use tokio_postgres::{GenericClient, Row, types::Type};
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

/// The engine's own mark of a lease: the message's number and the nonce of the hand-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    pub(crate) seq: i64,
    pub(crate) nonce: Uuid,
}

impl Handle {
    pub(crate) fn to_bytes(self) -> bytes::Bytes {
        [&self.seq.to_be_bytes()[..], self.nonce.as_bytes()].concat().into()
    }

    /// # Errors
    /// `LeaseLost` for what no engine of this kind ever gave.
    pub(crate) fn of(token: &LeaseToken) -> Result<Self> {
        let lost = || Error::lease_lost(format!("the lease of {} was never given here", token.id));
        let (seq, nonce) = token.handle.split_first_chunk::<8>().ok_or_else(lost)?;
        let nonce = Uuid::from_slice(nonce).map_err(|_| lost())?;
        Ok(Self { seq: i64::from_be_bytes(*seq), nonce })
    }
}

/// Settlements, column by column.
#[derive(Debug, Default)]
pub(crate) struct Settles {
    all: bool,
    acks: bool,
    ids: Vec<String>,
    seq: Vec<i64>,
    nonce: Vec<Uuid>,
    kind: Vec<i16>,
    delay: Vec<Option<i64>>,
    failure: Vec<Option<String>>,
    result: Vec<Option<Vec<u8>>>,
    result_type: Vec<Option<String>>,
    print: Vec<i64>,
}

impl Settles {
    /// All or nothing when `all`, otherwise each for itself.
    pub(crate) fn new(all: bool) -> Self {
        Self { all, acks: true, ..Self::default() }
    }

    pub(crate) fn add(&mut self, token: &LeaseToken, outcome: &Outcome) -> Result<()> {
        let handle = Handle::of(token)?;
        self.ids.push(token.id.as_str().into());
        self.seq.push(handle.seq);
        self.nonce.push(handle.nonce);
        let (kind, delay, failure, result) = match outcome {
            Outcome::Ack { result } => (0, None, None, result.as_ref()),
            Outcome::Retry { delay: RetryDelay::Policy, failure } => (1, None, Some(failure), None),
            Outcome::Retry { delay: RetryDelay::After(delay), failure } => {
                (1, Some(*delay), Some(failure), None)
            }
            Outcome::Release { delay } => (2, Some(*delay), None, None),
            Outcome::Reject { failure } => (3, None, Some(failure), None),
        };
        self.acks &= kind == 0;
        self.kind.push(kind);
        self.delay.push(delay.map(micros));
        self.failure.push(failure.map(failure_json));
        self.result.push(result.map(|r| r.as_bytes().to_vec()));
        self.result_type.push(result.filter(|r| !r.is_json()).map(|r| r.content_type().to_owned()));
        self.print.push(self.fingerprint());
        Ok(())
    }

    /// What tells one outcome from another, of the settlement added last.
    fn fingerprint(&self) -> i64 {
        let mut hash = Xxh3::new();
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        let at = self.kind.len() - 1;
        part(&self.kind[at].to_le_bytes());
        part(&self.delay[at].unwrap_or(-1).to_le_bytes());
        part(self.failure[at].as_deref().unwrap_or_default().as_bytes());
        part(self.result[at].as_deref().unwrap_or_default());
        part(self.result_type[at].as_deref().unwrap_or_default().as_bytes());
        i64::from_le_bytes(hash.digest().to_le_bytes())
    }

    fn params(&self) -> [Param<'_>; 10] {
        [
            (&self.all, Type::BOOL),
            (&self.seq, Type::INT8_ARRAY),
            (&self.nonce, Type::UUID_ARRAY),
            (&self.kind, Type::INT2_ARRAY),
            (&self.delay, Type::INT8_ARRAY),
            (&self.failure, Type::TEXT_ARRAY),
            (&self.result, Type::BYTEA_ARRAY),
            (&self.result_type, Type::TEXT_ARRAY),
            (&self.print, Type::INT8_ARRAY),
            (&self.acks, Type::BOOL),
        ]
    }

    fn answers(&self, rows: &[Row]) -> Result<Vec<Result<SettledAs>>> {
        let done = || Ok(SettledAs { state: MessageState::Done, due: None, already: false });
        let mut answers: Vec<Result<SettledAs>> = self.ids.iter().map(|_| done()).collect();
        for row in rows {
            let (place, status): (i32, i32) = (row.get("n"), row.get("status"));
            let at = usize::try_from(place - 1).unwrap_or(usize::MAX);
            let (Some(answer), Some(id)) = (answers.get_mut(at), self.ids.get(at)) else {
                return Err(Error::internal(format!("the server answered for settlement {place}")));
            };
            *answer = match status {
                0 | 1 => Ok(SettledAs {
                    state: state(row.get::<_, i16>("state").into())?,
                    due: row.get::<_, Option<i64>>("due").map(Timestamp::from_micros),
                    already: status == 1,
                }),
                6 => Err(Error::conflict(format!("the lease of {id} was settled otherwise"))),
                _ => Err(Error::lease_lost(format!("the lease of {id} has ended"))),
            };
        }
        Ok(answers)
    }
}

/// A state as the instance numbers it.
pub(crate) fn state(number: i32) -> Result<MessageState> {
    let at = usize::try_from(number).ok().and_then(|at| MessageState::ALL.get(at));
    at.copied().ok_or(format!("there is no state {number}")).readable("a message's state")
}

/// A span in microseconds, within what the server takes.
pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX).min(315_000_000_000_000_000)
}

/// A failure as a cause keeps it. The server's text has no NUL: where there is one, it shows as a replacement character.
fn failure_json(failure: &Failure) -> String {
    let clean = |text: &str| text.replace('\0', "\u{fffd}");
    let mut failure = failure.clone().bounded();
    failure.error = clean(&failure.error).into();
    failure.detail = failure.detail.map(|detail| clean(&detail).into());
    serde_json::to_string(&failure).expect("texts always serialise")
}

impl Core {
    /// Settles as a transaction of its own.
    pub(crate) async fn settle(&self, settles: Settles) -> Result<Vec<Result<SettledAs>>> {
        let text = settle_text(self.schema());
        let rows = self.statement(Effect::Maybe, &text, &settles.params()).await?;
        if !settles.acks {
            self.hub.said_somewhere();
        }
        settles.answers(&rows)
    }

    /// Settles on a connection whose transaction somebody else ends.
    pub(crate) async fn settle_on<C: GenericClient + Sync>(
        &self,
        on: &C,
        settles: Settles,
    ) -> Result<Vec<Result<SettledAs>>> {
        let rows = on.query_typed(&settle_text(self.schema()), &settles.params()).await;
        let rows = rows.map_err(|error| crate::error::from_driver(&error, Effect::Maybe))?;
        settles.answers(&rows)
    }

    /// Extends leases: one write for all of them.
    pub(crate) async fn extend(&self, leases: &[LeaseToken], by: Duration) -> Result<Vec<Result<Extended>>> {
        crate::lease::check_term(by)?;
        let handles: Vec<Result<Handle>> = leases.iter().map(Handle::of).collect();
        let given = || handles.iter().enumerate().filter_map(|(at, h)| h.as_ref().ok().map(|h| (at, h)));
        let seq: Vec<i64> = given().map(|(_, h)| h.seq).collect();
        let nonce: Vec<Uuid> = given().map(|(_, h)| h.nonce).collect();
        let places: Vec<usize> = given().map(|(at, _)| at).collect();
        let span = micros(by);
        let params: [Param<'_>; 3] =
            [(&seq, Type::INT8_ARRAY), (&nonce, Type::UUID_ARRAY), (&span, Type::INT8)];
        let rows = match seq.is_empty() {
            true => Vec::new(),
            false => self.call(Effect::Maybe, "extend", &params).await?,
        };
        let lost =
            |token: &LeaseToken| Err(Error::lease_lost(format!("the lease of {} has ended", token.id)));
        let mut answers: Vec<Result<Extended>> = leases.iter().map(lost).collect();
        for row in rows {
            let (place, status): (i32, i32) = (row.get("n"), row.get("status"));
            let at = usize::try_from(place - 1).ok().and_then(|at| places.get(at));
            if let Some(answer) = at.and_then(|at| answers.get_mut(*at)) {
                *answer = match status {
                    0 => Ok(Extended { lease: by, cancel_requested: row.get("cancel") }),
                    _ => Err(Error::invalid("is beyond the queue's `lease_total_max_ms`")
                        .at("the lease")
                        .mend("end the attempt, or raise the bound")),
                };
            }
        }
        Ok(answers)
    }
}

fn settle_text(schema: &str) -> String {
    format!("select * from \"{schema}\".settle($1, $2, $3, $4, $5, $6::jsonb[], $7, $8, $9, $10)")
}

/// Calls the function `name`, whose only answer is that nothing was wrong.
pub(crate) async fn run_on<C: GenericClient + Sync>(
    on: &C,
    schema: &str,
    name: &str,
    params: &[Param<'_>],
) -> Result<()> {
    call_on(on, schema, name, params).await.map(drop)
}
