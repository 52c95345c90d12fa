//! One commit: its operations in their order, in as few calls as they allow.

use crate::{
    core::{Core, call_on},
    deliver::message,
    error::{Effect, from_driver, is_collision},
    put::{Puts, headers},
    settle::{Handle, Settles, micros, run_on},
    sql::Param,
};
use onward_core::{
    BulkReport, CancelOutcome, DeadEdit, Error, Guarded, Inlet, MessageId, Name, Op, Payload, PurgeWhat,
    Receipt, RecordExpect, RecordKey, Result, Selection, Timestamp,
};
use std::{collections::BTreeSet, time::Duration};
use tokio_postgres::{GenericClient, Row, types::Type};
use uuid::Uuid;

/// Most messages that one call of a bulk operation changes; a repeat of it goes on.
const BULK_STEP: i32 = 5_000;
const TRIES_MAX: u32 = 20;

/// Operations that one call of the server can take together.
pub(crate) enum Run<'a> {
    Puts(&'a Name, Vec<&'a Op>),
    Settles(Vec<&'a Op>),
    One(&'a Op),
}

/// The operations in runs, in their order.
pub(crate) fn runs(ops: &[Op]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut tokens = BTreeSet::new();
    for op in ops {
        match (op, runs.last_mut()) {
            (Op::Enqueue { queue, .. }, Some(Run::Puts(name, puts))) if queue == *name => puts.push(op),
            (Op::Enqueue { queue, .. }, _) => runs.push(Run::Puts(queue, vec![op])),
            (Op::Settle { token, .. }, last) => {
                // A repeat of a token must see what its first one did.
                let first = tokens.insert(token.handle.clone());
                match last {
                    Some(Run::Settles(settles)) if first => settles.push(op),
                    _ => runs.push(Run::Settles(vec![op])),
                }
            }
            (op, _) => runs.push(Run::One(op)),
        }
    }
    runs
}

impl Core {
    /// All of the operations or none, as a transaction of its own.
    pub(crate) async fn commit(&self, ops: &[Op]) -> Result<Vec<Receipt>> {
        match runs(ops).as_slice() {
            [Run::Puts(queue, puts)] => {
                let puts = self.puts(queue, puts, true);
                self.put(puts).await?.into_iter().map(|a| a.map(Receipt::Accepted)).collect()
            }
            [Run::Settles(settles)] => {
                let settles = gather(settles, true)?;
                self.settle(settles).await?.into_iter().map(|a| a.map(Receipt::Settled)).collect()
            }
            _ => self.transaction(ops).await,
        }
    }

    async fn transaction(&self, ops: &[Op]) -> Result<Vec<Receipt>> {
        for _ in 0..TRIES_MAX {
            let conn = self.pool.get().await?;
            self.timed(Effect::None, conn.client().batch_execute("begin"))
                .await?
                .map_err(|e| from_driver(&e, Effect::None))?;
            let applied =
                self.timed(Effect::None, async { Ok(self.apply(conn.client(), ops).await) }).await?;
            match applied {
                Ok(Ok(receipts)) => {
                    let committed = self.timed(Effect::Maybe, conn.client().batch_execute("commit")).await?;
                    match committed {
                        Ok(()) => {
                            conn.done();
                            self.said(ops);
                            return Ok(receipts);
                        }
                        Err(error) if is_collision(&error) => {}
                        Err(error) => return Err(from_driver(&error, Effect::Maybe)),
                    }
                }
                Ok(Err(error)) => {
                    // Before `commit` was sent nothing can have happened: the answer is never unknown.
                    let rolled_back = self.timed(Effect::None, conn.client().batch_execute("rollback")).await;
                    if matches!(rolled_back, Ok(Ok(()))) {
                        conn.done();
                    }
                    if error.retry_hint() != onward_core::RetryHint::Now {
                        return Err(nothing_done(error));
                    }
                }
                Err(error) => return Err(from_driver(&error, Effect::None)),
            }
        }
        Err(Error::unavailable(format!("{TRIES_MAX} tries gave way to other transactions")))
    }

    /// What may be waited for has come.
    pub(crate) fn said(&self, ops: &[Op]) {
        let queues: BTreeSet<&Name> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Enqueue { queue, .. } => Some(queue),
                _ => None,
            })
            .collect();
        queues.iter().for_each(|queue| self.hub.said(&queue.to_string()));
        if ops.iter().any(|op| !matches!(op, Op::Enqueue { .. } | Op::PutRecord { .. } | Op::Guard(_))) {
            self.hub.said_somewhere();
        }
    }

    /// The operations one after the other on a connection whose transaction somebody else ends.
    pub(crate) async fn apply<C: GenericClient + Sync>(&self, on: &C, ops: &[Op]) -> Result<Vec<Receipt>> {
        self.lock_records(on, ops).await?;
        let mut receipts = Vec::with_capacity(ops.len());
        for run in runs(ops) {
            let place = receipts.len();
            let got = self.apply_run(on, run).await;
            receipts.extend(got.map_err(|error| at(error, place, ops))?);
        }
        Ok(receipts)
    }

    async fn apply_run<C: GenericClient + Sync>(&self, on: &C, run: Run<'_>) -> Result<Vec<Receipt>> {
        match run {
            Run::Puts(queue, puts) => {
                let puts = self.puts(queue, &puts, true);
                self.put_on(on, puts).await?.into_iter().map(|a| a.map(Receipt::Accepted)).collect()
            }
            Run::Settles(settles) => {
                let settles = gather(&settles, true)?;
                self.settle_on(on, settles).await?.into_iter().map(|a| a.map(Receipt::Settled)).collect()
            }
            Run::One(op) => Ok(vec![self.apply_one(on, op).await?]),
        }
    }

    pub(crate) fn puts(&self, queue: &Name, ops: &[&Op], all: bool) -> Puts {
        let messages = ops.iter().filter_map(|op| match op {
            Op::Enqueue { message, .. } => Some(&**message),
            _ => None,
        });
        Puts::new(queue, messages, all, self.env.now())
    }

    /// Several records are locked in one order for everybody.
    async fn lock_records<C: GenericClient + Sync>(&self, on: &C, ops: &[Op]) -> Result<()> {
        let keys: Vec<&str> = ops
            .iter()
            .filter_map(|op| match op {
                Op::PutRecord { key, .. }
                | Op::DeleteRecord { key, .. }
                | Op::Guard(Guarded::Record { key, .. }) => Some(key.as_str()),
                _ => None,
            })
            .collect();
        if keys.len() < 2 {
            return Ok(());
        }
        run_on(on, self.schema(), "lock_keys", &[(&keys, Type::TEXT_ARRAY)]).await
    }

    async fn apply_one<C: GenericClient + Sync>(&self, on: &C, op: &Op) -> Result<Receipt> {
        let schema = self.schema();
        match op {
            Op::Cancel { inlet, id } => self.cancel(on, inlet, id).await,
            Op::Reschedule { inlet, id, due } => {
                let (inlet, id, delay) = (inlet.to_string(), id.as_str(), self.ahead(*due).max(0));
                let params: [Param<'_>; 3] = [(&inlet, Type::TEXT), (&id, Type::TEXT), (&delay, Type::INT8)];
                run_on(on, schema, "reschedule", &params).await.map(|()| Receipt::Done)
            }
            Op::Progress { token, detail } => {
                let handle = Handle::of(token)?;
                let (bytes, kind) = (detail.as_bytes().to_vec(), kind_of(detail));
                let params: [Param<'_>; 4] = [
                    (&handle.seq, Type::INT8),
                    (&handle.nonce, Type::UUID),
                    (&bytes, Type::BYTEA),
                    (&kind, Type::TEXT),
                ];
                run_on(on, schema, "progress", &params).await.map(|()| Receipt::Done)
            }
            Op::EndProcess { process, died } => {
                let process = &*process.0;
                let params: [Param<'_>; 2] = [(&process, Type::TEXT), (died, Type::BOOL)];
                let rows = call_on(on, schema, "end_process", &params).await?;
                let leases: i32 = one(&rows)?.get(0);
                Ok(Receipt::ProcessEnded { leases: leases.max(0) as u64 })
            }
            Op::PutRecord { .. } | Op::DeleteRecord { .. } | Op::Guard(_) => self.apply_record(on, op).await,
            Op::Pause { inlet } | Op::Resume { inlet } => {
                let (inlet, paused) = (inlet.to_string(), matches!(op, Op::Pause { .. }));
                let params: [Param<'_>; 2] = [(&inlet, Type::TEXT), (&paused, Type::BOOL)];
                run_on(on, schema, "pause", &params).await.map(|()| Receipt::Done)
            }
            Op::EditDead { inlet, id, edit } => self.edit(on, inlet, id, edit).await,
            Op::Redrive { .. } | Op::Purge { .. } => self.apply_bulk(on, op).await,
            other => Err(Error::unsupported(format!("the engine postgres has no {}", other.name()))),
        }
    }

    async fn cancel<C: GenericClient + Sync>(
        &self,
        on: &C,
        inlet: &Inlet,
        id: &MessageId,
    ) -> Result<Receipt> {
        let (inlet, id) = (inlet.to_string(), id.as_str());
        let rows = call_on(on, self.schema(), "cancel", &[(&inlet, Type::TEXT), (&id, Type::TEXT)]).await?;
        Ok(Receipt::Cancelled(match one(&rows)?.get::<_, i32>(0) {
            0 => CancelOutcome::Cancelled,
            1 => CancelOutcome::Requested,
            _ => CancelOutcome::AlreadyFinished,
        }))
    }

    async fn apply_record<C: GenericClient + Sync>(&self, on: &C, op: &Op) -> Result<Receipt> {
        let schema = self.schema();
        match op {
            Op::PutRecord { key, value, expect, ttl } => {
                let (key, value, ttl) = (key.as_str(), value.to_vec(), ttl.map(micros));
                let (kind, revision) = expected(*expect);
                let params: [Param<'_>; 5] = [
                    (&key, Type::TEXT),
                    (&value, Type::BYTEA),
                    (&kind, Type::INT4),
                    (&revision, Type::INT8),
                    (&ttl, Type::INT8),
                ];
                let rows = call_on(on, schema, "put_record", &params).await?;
                Ok(Receipt::Recorded { revision: one(&rows)?.get::<_, i64>(0).max(0) as u64 })
            }
            Op::DeleteRecord { key, expect } => {
                self.expect(on, key, *expect).await?;
                let text = format!("delete from \"{schema}\".record where key = $1");
                let deleted = on.execute_typed(&text, &[(&key.as_str(), Type::TEXT)]).await;
                deleted.map(|_| Receipt::Done).map_err(|e| from_driver(&e, Effect::Maybe))
            }
            Op::Guard(Guarded::Record { key, expect }) => {
                self.expect(on, key, *expect).await.map(|()| Receipt::Done)
            }
            Op::Guard(Guarded::Lease { token }) => {
                let handle = Handle::of(token)?;
                let params: [Param<'_>; 2] = [(&handle.seq, Type::INT8), (&handle.nonce, Type::UUID)];
                run_on(on, schema, "fence", &params).await.map(|()| Receipt::Done)
            }
            other => Err(Error::unsupported(format!("the engine postgres has no {}", other.name()))),
        }
    }

    async fn expect<C: GenericClient + Sync>(
        &self,
        on: &C,
        key: &RecordKey,
        expect: RecordExpect,
    ) -> Result<()> {
        let (key, (kind, revision)) = (key.as_str(), expected(expect));
        let params: [Param<'_>; 3] = [(&key, Type::TEXT), (&kind, Type::INT4), (&revision, Type::INT8)];
        run_on(on, self.schema(), "expect", &params).await
    }

    async fn edit<C: GenericClient + Sync>(
        &self,
        on: &C,
        inlet: &Inlet,
        id: &MessageId,
        edit: &DeadEdit,
    ) -> Result<Receipt> {
        let (name, text) = (inlet.to_string(), id.as_str());
        let found =
            call_on(on, self.schema(), "dead_letter", &[(&name, Type::TEXT), (&text, Type::TEXT)]).await?;
        let seq: i64 = one(&found)?.get(0);
        let text = format!("select * from \"{}\".message where seq = $1", self.schema());
        let rows =
            on.query_typed(&text, &[(&seq, Type::INT8)]).await.map_err(|e| from_driver(&e, Effect::Maybe))?;
        let before = message(one(&rows)?)?;
        let original = serde_json::to_vec(&before)
            .map_err(|e| Error::internal(format!("a message can't be written down: {e}")))?;
        let after = edited(before, edit)?;
        let (data, kind) = (after.data.as_bytes().to_vec(), kind_of(&after.data));
        let (headers, size) = (headers(&after), i32::try_from(after.size()).unwrap_or(i32::MAX));
        let (version, named) = (i64::from(after.version), &*after.kind);
        let params: [Param<'_>; 8] = [
            (&seq, Type::INT8),
            (&data, Type::BYTEA),
            (&kind, Type::TEXT),
            (&named, Type::TEXT),
            (&version, Type::INT8),
            (&headers, Type::BYTEA),
            (&size, Type::INT4),
            (&original, Type::BYTEA),
        ];
        let rows = call_on(on, self.schema(), "edit", &params).await?;
        Ok(Receipt::Edited { edition: u32::try_from(one(&rows)?.get::<_, i64>(0)).unwrap_or(u32::MAX) })
    }

    async fn apply_bulk<C: GenericClient + Sync>(&self, on: &C, op: &Op) -> Result<Receipt> {
        let (name, what, selection, spacing, bulk, dry) = match op {
            Op::Redrive { inlet, selection, spacing, bulk, dry_run } => {
                (inlet, None, selection, *spacing, bulk, *dry_run)
            }
            Op::Purge { inlet, what, selection, bulk, dry_run } => {
                (inlet, Some(*what), selection, Duration::ZERO, bulk, *dry_run)
            }
            other => return Err(Error::internal(format!("{} is no bulk operation", other.name()))),
        };
        let (name, select) = (name.to_string(), self.select(selection));
        let limit = selection.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(i64::MAX);
        let (spacing, bulk) = (micros(spacing), Uuid::from_u128(bulk.0));
        let schema = self.schema();
        let dead = what == Some(PurgeWhat::Dead);
        let (text, third): (String, Param<'_>) = match what {
            None => (
                format!("select * from \"{schema}\".redrive($1, $2::jsonb, $4, $3, $5, $6, $7)"),
                (&spacing, Type::INT8),
            ),
            Some(_) => (
                format!("select * from \"{schema}\".purge($1, $3, $2::jsonb, $4, $5, $6, $7)"),
                (&dead, Type::BOOL),
            ),
        };
        let params: [Param<'_>; 7] = [
            (&name, Type::TEXT),
            (&select, Type::TEXT),
            third,
            (&limit, Type::INT8),
            (&bulk, Type::UUID),
            (&dry, Type::BOOL),
            (&BULK_STEP, Type::INT4),
        ];
        let rows = on.query_typed(&text, &params).await.map_err(|e| from_driver(&e, Effect::Maybe))?;
        let row = one(&rows)?;
        let count = |name: &str| row.get::<_, i64>(name).max(0) as u64;
        Ok(Receipt::Bulk(BulkReport {
            matched: count("matched"),
            done: count("done"),
            finished: row.get("finished"),
        }))
    }

    /// A selection as the instance reads it; what is `None` is left out.
    fn select(&self, selection: &Selection) -> String {
        let mut parts = serde_json::Map::new();
        let mut put = |name: &str, value: serde_json::Value| parts.insert(name.into(), value);
        if !selection.ids.is_empty() {
            put("ids", selection.ids.iter().map(|id| id.as_str()).collect());
        }
        let texts = [
            ("kind", selection.kind.as_deref()),
            ("correlation", selection.correlation_id.as_deref()),
            ("okey", selection.order_key.as_ref().map(onward_core::Key::as_str)),
            ("error", selection.error_contains.as_deref()),
        ];
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text?))) {
            put(name, text.replace('\0', "\u{fffd}").into());
        }
        if let Some(cause) = selection.cause {
            put("cause", serde_json::to_value(cause).unwrap_or_default());
        }
        if let Some(before) = selection.before {
            put("before", self.ahead(before).into());
        }
        serde_json::Value::Object(parts).to_string()
    }

    /// How far a time of the caller's clock is ahead, in microseconds: the server counts from its own now.
    fn ahead(&self, time: Timestamp) -> i64 {
        time.as_micros().saturating_sub(self.env.now().as_micros())
    }
}

/// Settlements of a run.
pub(crate) fn gather(ops: &[&Op], all: bool) -> Result<Settles> {
    let mut settles = Settles::new(all);
    for op in ops {
        if let Op::Settle { token, outcome } = op {
            settles.add(token, outcome)?;
        }
    }
    Ok(settles)
}

fn edited(mut message: onward_core::Message, edit: &DeadEdit) -> Result<onward_core::Message> {
    if let Some(data) = &edit.data {
        message.data = data.clone();
    }
    if let Some(kind) = &edit.kind {
        message.kind = kind.clone();
    }
    message.version = edit.version.unwrap_or(message.version);
    for (name, value) in &edit.headers {
        match value {
            Some(value) => message.headers.insert(name.clone(), value.clone()),
            None => message.headers.remove(name),
        };
    }
    message.check().map(|()| message)
}

fn expected(expect: RecordExpect) -> (i32, Option<i64>) {
    match expect {
        RecordExpect::Any => (0, None),
        RecordExpect::Absent => (1, None),
        RecordExpect::Present => (2, None),
        RecordExpect::Revision(revision) => (3, Some(i64::try_from(revision).unwrap_or(i64::MAX))),
    }
}

fn kind_of(payload: &Payload) -> Option<String> {
    (!payload.is_json()).then(|| payload.content_type().to_owned())
}

pub(crate) fn one(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| Error::internal("the server answered nothing"))
}

/// Names the operation that failed, where there are several.
fn at(error: Error, place: usize, ops: &[Op]) -> Error {
    match ops.get(place) {
        Some(op) if ops.len() > 1 && error.place().is_none() => {
            error.at(format!("operation {} or one of its kind after it ({})", place + 1, op.name()))
        }
        _ => error,
    }
}

/// The same error, where it is certain that nothing was changed.
fn nothing_done(error: Error) -> Error {
    match error.retry_hint() {
        onward_core::RetryHint::Unknown => Error::unavailable(error.what()),
        _ => error,
    }
}
