//! What a client asks of the engine, and what goes into the history for it.

use std::time::Duration;

use onward_core::{
    BulkId, Delivery, Engine, Error, EventRead, EventSlice, Extended, Inlet, LeaseRequest, LeaseToken, Page,
    Prepared, ProcessId, Receipt, Record, RecordKey, RecordQuery, Result, RetryHint, Stats,
};
use onward_sim::Random;
use onward_sim::history::{Answer, Delivered, What, content_mark};

use super::{parts::Part, streams};

/// One call.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Commit(Vec<Part>),
    Submit(Vec<Part>),
    Lease(Box<LeaseRequest>),
    Extend(Vec<LeaseToken>, Duration),
    Count(Inlet),
    Read(RecordKey),
    Events(Box<EventRead>),
}

/// Its answer.
#[derive(Debug)]
pub(crate) enum Reply {
    Commit(Result<Vec<Receipt>>),
    Submit(Result<Vec<Result<Vec<Receipt>>>>),
    Lease(Result<Vec<Delivery>>),
    Extend(Result<Vec<Result<Extended>>>),
    Count(Result<Vec<Stats>>),
    Read(Result<Page<Record>>),
    Events(Result<EventSlice>),
}

pub(crate) fn process_id(process: u32) -> ProcessId {
    ProcessId(format!("process-{process}").into())
}

/// What is written into a record, and how it is read back.
pub(crate) fn record_value(mark: u64) -> Vec<u8> {
    mark.to_le_bytes().to_vec()
}

fn record_mark(record: &Record) -> u64 {
    record.value.as_ref().try_into().map_or(0, u64::from_le_bytes)
}

/// Makes the call. The answer tells nothing that the engine did not say.
pub(crate) async fn make(engine: &dyn Engine, ask: Ask) -> Reply {
    match ask {
        Ask::Commit(parts) => Reply::Commit(commit(engine, &parts).await),
        Ask::Submit(parts) => Reply::Submit(submit(engine, &parts).await),
        Ask::Lease(request) => Reply::Lease(engine.lease(*request).await),
        Ask::Extend(tokens, by) => Reply::Extend(engine.extend(tokens, by).await),
        Ask::Count(inlet) => Reply::Count(engine.stats(vec![inlet]).await),
        Ask::Read(key) => Reply::Read(engine.get_records(RecordQuery::Keys(vec![key])).await),
        Ask::Events(read) => Reply::Events(engine.read_events(*read).await),
    }
}

async fn commit(engine: &dyn Engine, parts: &[Part]) -> Result<Vec<Receipt>> {
    let prepared = engine.prepare(parts.iter().map(Part::op).collect())?;
    engine.commit(prepared).await
}

async fn submit(engine: &dyn Engine, parts: &[Part]) -> Result<Vec<Result<Vec<Receipt>>>> {
    let prepared: Result<Vec<Prepared>> = parts.iter().map(|part| engine.prepare(vec![part.op()])).collect();
    engine.submit(prepared?).await
}

/// One line of the history: what became of it, and what.
pub(crate) type Line = (Answer, What);

fn answer_of(error: &Error) -> Answer {
    if error.retry_hint() == RetryHint::Unknown { Answer::Unknown } else { Answer::Refused }
}

/// The lines for a call; `None` when it was never answered.
pub(crate) fn lines(ask: &Ask, reply: Option<&Reply>) -> Vec<Line> {
    match (ask, reply) {
        (Ask::Commit(parts), Some(Reply::Commit(result))) => of_commit(parts, result.as_ref()),
        (Ask::Submit(parts), Some(Reply::Submit(Ok(results)))) => {
            let each = parts.iter().zip(results);
            each.flat_map(|(part, result)| of_commit(std::slice::from_ref(part), result.as_ref())).collect()
        }
        (Ask::Submit(parts), Some(Reply::Submit(Err(error)))) => of_commit(parts, Err(error)),
        (Ask::Commit(parts) | Ask::Submit(parts), _) => {
            parts.iter().filter_map(|part| Some((Answer::Unknown, part.what(None)?))).collect()
        }
        (Ask::Lease(request), reply) => of_lease(request, reply),
        (Ask::Extend(tokens, by), reply) => of_extend(tokens, *by, reply),
        (Ask::Count(inlet), Some(Reply::Count(Ok(stats)))) => {
            let books = |stats: &Stats| What::Count { inlet: inlet.clone(), books: stats.books };
            stats.iter().map(|stats| (Answer::Ok, books(stats))).collect()
        }
        (Ask::Read(key), Some(Reply::Read(Ok(page)))) => {
            let found = page.items.first().map(|record| (record_mark(record), record.revision));
            vec![(Answer::Ok, What::GetRecord { key: key.clone(), found })]
        }
        (Ask::Events(read), Some(Reply::Events(Ok(slice)))) => {
            streams::what_was_read(read, slice).into_iter().map(|what| (Answer::Ok, what)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_commit(parts: &[Part], result: std::result::Result<&Vec<Receipt>, &Error>) -> Vec<Line> {
    match result {
        Ok(receipts) => {
            let each = parts.iter().zip(receipts);
            each.filter_map(|(part, receipt)| Some((Answer::Ok, part.what(Some(receipt))?))).collect()
        }
        Err(error) => parts.iter().filter_map(|part| Some((answer_of(error), part.what(None)?))).collect(),
    }
}

fn of_lease(request: &LeaseRequest, reply: Option<&Reply>) -> Vec<Line> {
    let inlets = || request.inlets.iter().map(|weighted| weighted.inlet.clone()).collect();
    match reply {
        Some(Reply::Lease(Ok(deliveries))) => deliveries.iter().map(of_delivery).collect(),
        Some(Reply::Lease(Err(error))) if answer_of(error) == Answer::Refused => Vec::new(),
        _ => vec![(Answer::Unknown, What::Lease { inlets: inlets() })],
    }
}

fn of_delivery(delivery: &Delivery) -> Line {
    let delivered = Delivered {
        token: delivery.token.clone(),
        attempt: delivery.attempt,
        lease: delivery.lease,
        content: content_mark(&delivery.message),
        replay: delivery.replay,
        suspect: delivery.suspect,
    };
    (Answer::Ok, What::Deliver(delivered))
}

fn of_extend(tokens: &[LeaseToken], by: Duration, reply: Option<&Reply>) -> Vec<Line> {
    let line = |token: &LeaseToken, answer, lease| (answer, What::Extend { token: token.clone(), lease });
    match reply {
        Some(Reply::Extend(Ok(results))) => {
            let each = tokens.iter().zip(results);
            let each = each.map(|(token, result)| match result {
                Ok(extended) => line(token, Answer::Ok, extended.lease),
                Err(error) => line(token, answer_of(error), by),
            });
            each.collect()
        }
        Some(Reply::Extend(Err(error))) => {
            tokens.iter().map(|token| line(token, answer_of(error), by)).collect()
        }
        _ => tokens.iter().map(|token| line(token, Answer::Unknown, by)).collect(),
    }
}

/// The errors in a reply, for those that no fault explains.
pub(crate) fn errors(reply: &Reply) -> Vec<&Error> {
    fn one<T>(result: &Result<T>) -> Vec<&Error> {
        result.as_ref().err().into_iter().collect()
    }
    fn each<T>(result: &Result<Vec<Result<T>>>) -> Vec<&Error> {
        match result {
            Ok(results) => results.iter().filter_map(|result| result.as_ref().err()).collect(),
            Err(error) => vec![error],
        }
    }
    match reply {
        Reply::Commit(result) => one(result),
        Reply::Submit(result) => each(result),
        Reply::Lease(result) => one(result),
        Reply::Extend(result) => each(result),
        Reply::Count(result) => one(result),
        Reply::Read(result) => one(result),
        Reply::Events(result) => one(result),
    }
}

/// A random id for bulk operations.
pub(crate) fn bulk(random: &mut Random) -> BulkId {
    BulkId(u128::from(random.number()) << 64 | u128::from(random.number()))
}
