//! Looking: messages, records, numbers. Nothing is handed out.

use crate::{
    core::Core,
    deliver::{causes, message, number, payload},
    error::{Effect, Readable},
    ops::one,
    settle::state,
    sql::Param,
};
use bytes::Bytes;
use onward_core::{
    Books, Cursor, Error, FindBy, Holder, Inlet, LeaseView, MessageId, MessageQuery, MessageState,
    MessageView, PAGE_MAX, Page, ProcessId, Record, RecordKey, RecordQuery, Result, Stats, Timestamp,
};
use tokio_postgres::{Row, types::Type};

impl Core {
    /// The page of messages that a query asks for.
    pub(crate) async fn find(&self, query: MessageQuery) -> Result<Page<MessageView>> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let after = match &query.after {
            Some(cursor) => {
                cursor.0.parse().map_err(|_| Error::invalid("is no cursor of this query").at("`after`"))?
            }
            None => 0i64,
        };
        let name = query.inlet.to_string();
        self.call(Effect::None, "tick_all", &[(&vec![&name], Type::TEXT_ARRAY)]).await?;
        let inlet = self.call(Effect::None, "must_inlet", &[(&name, Type::TEXT)]).await?;
        let inlet: i32 = one(&inlet)?.get("id");
        let (seqs, more) = self.found(inlet, &query.by, after, limit).await?;
        let items = self.views(&query.inlet, &seqs).await?;
        let next = seqs.last().filter(|_| more).map(|seq| Cursor(seq.to_string()));
        Ok(Page { items, next })
    }

    async fn found(&self, inlet: i32, by: &FindBy, after: i64, limit: usize) -> Result<(Vec<i64>, bool)> {
        let most = i32::try_from(limit + 1).unwrap_or(i32::MAX);
        let rows = match by {
            FindBy::Id(id) => {
                let id = id.as_str();
                self.call(Effect::None, "find_id", &[(&inlet, Type::INT4), (&id, Type::TEXT)]).await?
            }
            FindBy::State(state) => {
                let number = MessageState::ALL.iter().position(|s| s == state).unwrap_or_default();
                let number = i32::try_from(number).unwrap_or_default();
                let params: [Param<'_>; 4] =
                    [(&inlet, Type::INT4), (&number, Type::INT4), (&after, Type::INT8), (&most, Type::INT4)];
                self.call(Effect::None, "in_state", &params).await?
            }
            FindBy::Correlation(_) | FindBy::OrderKey(_) => {
                let (correlation, key) = match by {
                    FindBy::Correlation(id) => (Some(&**id), None),
                    FindBy::OrderKey(key) => (None, Some(key.as_str())),
                    _ => (None, None),
                };
                let params: [Param<'_>; 5] = [
                    (&inlet, Type::INT4),
                    (&correlation, Type::TEXT),
                    (&key, Type::TEXT),
                    (&after, Type::INT8),
                    (&most, Type::INT4),
                ];
                self.call(Effect::None, "find_open", &params).await?
            }
        };
        let mut seqs: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let more = seqs.len() > limit && !matches!(by, FindBy::Id(_));
        seqs.truncate(limit);
        Ok((seqs, more))
    }

    async fn views(&self, inlet: &Inlet, seqs: &[i64]) -> Result<Vec<MessageView>> {
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        let text = format!(
            "select (v.delivery).*, v.original, v.state, v.attempts, v.crashes, v.blocked, v.suspect as is_suspect, \
             v.cancel, v.due as comes, v.ended, v.worker, v.process, v.lease_attempt, v.since, v.until, v.result, \
             v.result_type from \"{}\".views($1) v",
            self.schema()
        );
        let rows = self.statement(Effect::None, &text, &[(&seqs, Type::INT8_ARRAY)]).await?;
        rows.iter().map(|row| view(inlet, row)).collect()
    }

    /// Numbers of inlets, all of one moment.
    pub(crate) async fn stats(&self, inlets: Vec<Inlet>) -> Result<Vec<Stats>> {
        let names: Vec<String> = inlets.iter().map(Inlet::to_string).collect();
        self.call(Effect::None, "tick_all", &[(&names, Type::TEXT_ARRAY)]).await?;
        let rows = self.call(Effect::None, "stats", &[(&names, Type::TEXT_ARRAY)]).await?;
        let mut all = rows.iter().map(stats).collect::<Result<Vec<_>>>()?;
        for stats in all.iter_mut().filter(|stats| stats.books.leased > 0) {
            stats.leases = self.leases(&stats.inlet).await?;
        }
        if inlets.is_empty() {
            return Ok(all);
        }
        let of = |inlet: &Inlet| {
            let found = all.iter().find(|stats| stats.inlet == *inlet).cloned();
            found.ok_or_else(|| Error::not_found(format!("{inlet} does not exist")).mend("declare it"))
        };
        inlets.iter().map(of).collect()
    }

    async fn leases(&self, inlet: &Inlet) -> Result<Vec<LeaseView>> {
        let (name, most) = (inlet.to_string(), i32::try_from(PAGE_MAX).unwrap_or(i32::MAX));
        let params: [Param<'_>; 2] = [(&name, Type::TEXT), (&most, Type::INT4)];
        let rows = self.call(Effect::None, "lease_views", &params).await?;
        let view = |row: &Row| {
            Ok(LeaseView {
                id: MessageId::try_from(row.get::<_, &str>("id"))?,
                holder: holder(row),
                attempt: number(row, "attempt")?,
                since: Timestamp::from_micros(row.get("since")),
                until: Timestamp::from_micros(row.get("until")),
            })
        };
        rows.iter().map(view).collect()
    }

    /// The page of records that a query asks for.
    pub(crate) async fn records(&self, query: RecordQuery) -> Result<Page<Record>> {
        let (keys, prefix, after, limit) = match query {
            RecordQuery::Keys(keys) => (
                Some(keys.iter().map(|k| k.as_str().to_owned()).collect::<Vec<_>>()),
                String::new(),
                None,
                PAGE_MAX,
            ),
            RecordQuery::Prefix { prefix, after, limit } => {
                (None, prefix, after.map(|c| c.0), limit.clamp(1, PAGE_MAX))
            }
        };
        let most = i32::try_from(limit + 1).unwrap_or(i32::MAX);
        let params: [Param<'_>; 4] =
            [(&keys, Type::TEXT_ARRAY), (&prefix, Type::TEXT), (&after, Type::TEXT), (&most, Type::INT4)];
        let rows = self.call(Effect::None, "records", &params).await?;
        let mut items = rows.iter().map(record).collect::<Result<Vec<_>>>()?;
        let more = keys.is_none() && items.len() > limit;
        if more {
            items.truncate(limit);
        }
        let next = items.last().filter(|_| more).map(|r| Cursor(r.key.as_str().to_owned()));
        Ok(Page { items, next })
    }
}

fn holder(row: &Row) -> Holder {
    Holder {
        worker: row.get::<_, &str>("worker").into(),
        process: ProcessId(row.get::<_, &str>("process").into()),
    }
}

fn record(row: &Row) -> Result<Record> {
    Ok(Record {
        key: RecordKey::try_from(row.get::<_, &str>("key"))?,
        value: Bytes::copy_from_slice(row.get("value")),
        revision: row.get::<_, i64>("revision").max(0) as u64,
        expires: row.get::<_, Option<i64>>("expires").map(Timestamp::from_micros),
        written: Timestamp::from_micros(row.get("written")),
        position: None,
    })
}

fn view(inlet: &Inlet, row: &Row) -> Result<MessageView> {
    let message = message(row)?;
    let time = |name: &str| row.get::<_, Option<i64>>(name).map(Timestamp::from_micros);
    let original = match row.get::<_, Option<&[u8]>>("original") {
        Some(bytes) => Some(serde_json::from_slice(bytes).readable("a message's first edition")?),
        None => None,
    };
    let lease = match row.get::<_, Option<&str>>("worker") {
        Some(_) => Some(LeaseView {
            id: message.id.clone(),
            holder: holder(row),
            attempt: number(row, "lease_attempt")?,
            since: Timestamp::from_micros(row.get("since")),
            until: Timestamp::from_micros(row.get("until")),
        }),
        None => None,
    };
    Ok(MessageView {
        inlet: inlet.clone(),
        message,
        original,
        state: state(row.get("state"))?,
        attempts: number(row, "attempts")?,
        crashes: number(row, "crashes")?,
        blocked: row.get("blocked"),
        suspect: row.get("is_suspect"),
        cancel_requested: row.get("cancel"),
        accepted_at: Timestamp::from_micros(row.get("accepted")),
        due: time("comes"),
        ended_at: time("ended"),
        lease,
        causes: causes(row)?,
        progress: payload(row, "progress", "progress_type"),
        result: payload(row, "result", "result_type"),
        position: None,
    })
}

fn stats(row: &Row) -> Result<Stats> {
    let count = |name: &str| row.get::<_, i64>(name).max(0) as u64;
    let time = |name: &str| row.get::<_, Option<i64>>(name).map(Timestamp::from_micros);
    Ok(Stats {
        inlet: row.get::<_, &str>("name").parse()?,
        books: Books {
            accepted: count("accepted"),
            done: count("done"),
            dead: count("dead"),
            waiting: count("waiting"),
            leased: count("leased"),
            delayed: count("delayed"),
            expired: count("expired"),
            cancelled: count("cancelled"),
            purged: count("purged"),
            shed: count("shed"),
        },
        approximate: false,
        blocked: count("blocked"),
        bytes: count("bytes"),
        oldest_waiting: time("oldest"),
        next_due: time("next_due"),
        deliveries: count("deliveries"),
        failures: count("failures"),
        lost_at_most_once: count("lost"),
        duplicates: count("duplicates"),
        dedup_entries: count("dedup_entries"),
        dedup_window_ms: count("dedup_window") / 1_000,
        paused: row.get("paused"),
        stopped_dead_full: row.get("dead_full"),
        leases: Vec::new(),
        lag: None,
    })
}
