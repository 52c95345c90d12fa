//! Records: values by key, conditions, time to live, and pages.

use crate::bench::millis;
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use bytes::Bytes;
use onward_core::{
    Capability::{RecordTtl, Records},
    ErrorKind, Op, Receipt, Record, RecordExpect, RecordKey, RecordQuery, Result,
};
use std::{collections::BTreeSet, time::Duration};

checks! { group "records";
    put_get_delete,
        "A record is read as it was written, byte for byte, until it is removed; revisions rise over that.",
        [Has(Records)], [];
    compare_and_set,
        "A write happens only when what was expected stands there; otherwise it is a conflict and changes nothing.",
        [Has(Records)], [];
    one_winner_of_many,
        "Of many concurrent writers that expect the same revision one wins, and the others are told.",
        [Has(Records)], [];
    ttl,
        "A record with a time to live is there until then and gone after; a write without one keeps it for good.",
        [Has(Records), Has(RecordTtl)], [];
    prefix_pages,
        "A prefix is read in key order, page by page, each key once.",
        [Has(Records)], [];
    records_survive_crash,
        "Records, revisions and removals are there after a crash.",
        [Has(Records), Durable], [];
}

pub(super) fn put(key: &str, value: &str, expect: RecordExpect) -> Result<Op> {
    put_for(key, value, expect, None)
}

fn put_for(key: &str, value: &str, expect: RecordExpect, ttl: Option<Duration>) -> Result<Op> {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Ok(Op::PutRecord { key: RecordKey::try_from(key)?, value, expect, ttl })
}

fn delete(key: &str, expect: RecordExpect) -> Result<Op> {
    Ok(Op::DeleteRecord { key: RecordKey::try_from(key)?, expect })
}

pub(super) async fn get(b: &Bench, key: &str) -> Result<Option<Record>> {
    let query = RecordQuery::Keys(vec![RecordKey::try_from(key)?]);
    Ok(b.engine().get_records(query).await?.items.into_iter().next())
}

async fn revision(b: &Bench, op: Op) -> Result<u64, Stop> {
    match b.op(op).await? {
        Receipt::Recorded { revision } => Ok(revision),
        other => Err(Stop::Failed(format!("a write answered {other:?}"))),
    }
}

async fn conflicts(b: &Bench, op: Op, what: &str) -> Done {
    match b.op(op).await {
        Err(error) => ensure_eq!(error.kind(), ErrorKind::Conflict, "{what}"),
        Ok(receipt) => return Err(Stop::Failed(format!("{what} was accepted: {receipt:?}"))),
    }
    Ok(())
}

async fn put_get_delete(b: &mut Bench) -> Done {
    ensure!(get(b, "check/none").await?.is_none(), "a key that was never written is there");
    let raw = Bytes::from_static(&[0, 255, 0xC3, 0x28]);
    let key = RecordKey::try_from("check/ключ a")?;
    let op = Op::PutRecord { key: key.clone(), value: raw.clone(), expect: RecordExpect::Any, ttl: None };
    let first = revision(b, op.clone()).await?;
    let record = get(b, key.as_str()).await?;
    ensure_eq!(record.as_ref().map(|r| (&r.value, r.revision)), Some((&raw, first)), "value and revision");
    let second = revision(b, op.clone()).await?;
    ensure!(second > first, "the revision went from {first} to {second}");
    b.op(delete(key.as_str(), RecordExpect::Any)?).await?;
    ensure!(get(b, key.as_str()).await?.is_none(), "a removed record is there");
    b.op(delete(key.as_str(), RecordExpect::Any)?).await?;
    let third = revision(b, op).await?;
    ensure!(third > second, "the revision over a removal went from {second} to {third}");
    Ok(())
}

async fn compare_and_set(b: &mut Bench) -> Done {
    conflicts(b, put("check/a", "x", RecordExpect::Present)?, "a write that expects something").await?;
    let first = revision(b, put("check/a", "one", RecordExpect::Absent)?).await?;
    conflicts(b, put("check/a", "x", RecordExpect::Absent)?, "a write that expects nothing").await?;
    let second = revision(b, put("check/a", "two", RecordExpect::Revision(first))?).await?;
    conflicts(b, put("check/a", "x", RecordExpect::Revision(first))?, "a write on an old revision").await?;
    conflicts(b, delete("check/a", RecordExpect::Revision(first))?, "a removal of an old revision").await?;
    let record = get(b, "check/a").await?;
    let expected = Some((Bytes::from_static(b"two"), second));
    ensure_eq!(record.map(|r| (r.value, r.revision)), expected, "the record after the conflicts");
    b.op(delete("check/a", RecordExpect::Revision(second))?).await?;
    revision(b, put("check/a", "new", RecordExpect::Absent)?).await?;
    Ok(())
}

async fn one_winner_of_many(b: &mut Bench) -> Done {
    let first = revision(b, put("check/race", "0", RecordExpect::Any)?).await?;
    let mut tasks = Vec::new();
    for index in 0..40 {
        let (engine, op) =
            (b.engine(), put("check/race", &index.to_string(), RecordExpect::Revision(first))?);
        tasks.push(tokio::spawn(async move { crate::bench::commit(&*engine, vec![op]).await }));
    }
    let mut winners = Vec::new();
    for (index, task) in tasks.into_iter().enumerate() {
        match task.await.map_err(|e| Stop::Failed(e.to_string()))? {
            Ok(_) => winners.push(index),
            Err(error) => ensure_eq!(error.kind(), ErrorKind::Conflict, "what a loser is told"),
        }
    }
    ensure_eq!(winners.len(), 1, "writers that won");
    let value = get(b, "check/race").await?.map(|r| r.value);
    ensure_eq!(value, Some(Bytes::from(winners[0].to_string())), "the value after the race");
    Ok(())
}

async fn ttl(b: &mut Bench) -> Done {
    let life = b.brief() * 4;
    let start = b.monotonic();
    for key in ["check/short", "check/kept"] {
        revision(b, put_for(key, "v", RecordExpect::Any, Some(life))?).await?;
    }
    let short = get(b, "check/short").await?;
    if b.monotonic() - start < life {
        ensure!(
            short.as_ref().is_some_and(|r| r.expires.is_some()),
            "the record before its end is {short:?}"
        );
    }
    revision(b, put("check/kept", "v", RecordExpect::Any)?).await?;
    b.pass(life + millis(10)).await;
    ensure!(get(b, "check/short").await?.is_none(), "a record is there after its time to live");
    ensure!(get(b, "check/kept").await?.is_some(), "a record written without a time to live is gone");
    let page = b.engine().get_records(prefix("check/short", None)).await?;
    ensure!(page.items.is_empty(), "a record is found by prefix after its time to live");
    revision(b, put("check/short", "again", RecordExpect::Absent)?).await?;
    Ok(())
}

fn prefix(text: &str, after: Option<onward_core::Cursor>) -> RecordQuery {
    RecordQuery::Prefix { prefix: text.into(), after, limit: 7 }
}

async fn prefix_pages(b: &mut Bench) -> Done {
    let mut expected = BTreeSet::new();
    for index in (0..25).rev() {
        let key = format!("check/page/{index:02}");
        b.op(put(&key, "v", RecordExpect::Any)?).await?;
        expected.insert(key);
    }
    b.op(put("check/pagf", "v", RecordExpect::Any)?).await?;
    b.op(put("check/pag", "v", RecordExpect::Any)?).await?;
    let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = b.engine().get_records(prefix("check/page/", after)).await?;
        ensure!(page.items.len() <= 7, "a page of at most 7 has {}", page.items.len());
        seen.extend(page.items.into_iter().map(|r| r.key.as_str().to_owned()));
        pages += 1;
        after = page.next;
        if after.is_none() || pages > 10 {
            break;
        }
    }
    ensure_eq!(seen, expected.into_iter().collect::<Vec<_>>(), "the keys read, page by page");
    Ok(())
}

async fn records_survive_crash(b: &mut Bench) -> Done {
    let kept = revision(b, put("check/kept", "v", RecordExpect::Any)?).await?;
    let removed = revision(b, put("check/removed", "v", RecordExpect::Any)?).await?;
    b.op(delete("check/removed", RecordExpect::Any)?).await?;
    b.subject.crash().await?;
    ensure_eq!(get(b, "check/kept").await?.map(|r| r.revision), Some(kept), "the revision after a crash");
    ensure!(get(b, "check/removed").await?.is_none(), "a removed record is there after a crash");
    let next = revision(b, put("check/removed", "v", RecordExpect::Absent)?).await?;
    ensure!(next > removed, "the revision over removal and crash went from {removed} to {next}");
    Ok(())
}
