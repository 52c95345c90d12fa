//! Negative twins: where an engine refuses, it must answer `Unsupported` before any effect.

use crate::bench::{ack, enqueue, rules};
use crate::check::{ensure, ensure_eq};
use crate::{Bench, Done, Need, Stop};
use onward_core::{
    AppendCondition, BulkId, Capability, DeadEdit, DeliveryGuarantee, Durability, Error, ErrorKind, Event,
    EventQuery, Expected, Filter, Inlet, InletConfig, LeaseRequest, LeaseToken, MessageBuilder, Name, Op,
    OrderPolicy, Outcome, Payload, ProcessId, PurgeWhat, RateLimit, RecordExpect, RecordKey, Result,
    Schedule, ScheduleWhen, SeekMode, SeekTo, Selection, StartFrom, StuckHead, TopologyChange,
};
use std::time::Duration;

/// Proves that what is refused is refused, and changes nothing.
pub(crate) async fn refuses(bench: &Bench, need: Need) -> Done {
    match need {
        Need::Has(capability) => refuses_capability(bench, capability).await,
        Need::Durable => says_memory(bench).await,
        // Nothing can be asked for: what is not there can't restart.
        Need::Server => Ok(()),
        Need::Atomic(_) => refuses_wide_commit(bench).await,
    }
}

/// A memory engine says so in its receipts: nobody takes them for more.
async fn says_memory(bench: &Bench) -> Done {
    let queue = bench.queue(rules()).await?;
    let accepted = bench.enqueue(&queue, bench.message("m").build(bench.env())?).await?;
    ensure_eq!(accepted.durability, Durability::Memory, "the receipt's durability");
    Ok(())
}

async fn refuses_wide_commit(bench: &Bench) -> Done {
    let queue = bench.queue(rules()).await?;
    let value = Op::PutRecord {
        key: RecordKey::try_from("check/wide")?,
        value: "v".into(),
        expect: RecordExpect::Any,
        ttl: None,
    };
    let message = bench.message("wide").build(bench.env())?;
    must_be_unsupported("a wider commit", bench.engine().prepare(vec![enqueue(&queue, message), value]))
}

async fn refuses_capability(bench: &Bench, capability: Capability) -> Done {
    use Capability as C;
    let what = capability.name();
    match capability {
        // Nothing can be asked for by a call: what is refused is a quality of every answer.
        C::Fifo | C::SharedAttempts | C::Watch | C::Fairness => Ok(()),
        C::Browse => {
            let query = onward_core::MessageQuery::id("check-none".parse()?, bench.id("none"));
            must_be_unsupported(what, bench.engine().find(query).await)
        }
        C::AcceptsTypes => refuses_types(bench).await,
        C::AtMostOnce
        | C::Bounds
        | C::ConcurrencyLimit
        | C::RateLimit
        | C::OrderByKey
        | C::Results
        | C::Filters => refuses_declare(bench, capability).await,
        _ => refuses_op(bench, capability).await,
    }
}

async fn refuses_types(bench: &Bench) -> Done {
    let queue = bench.queue(rules()).await?;
    bench.put(&queue, "m").await?;
    let request = LeaseRequest { accepts: vec!["check".into()], ..bench.request(&queue) };
    must_be_unsupported("leasing by type", bench.engine().lease(request).await)?;
    ensure_eq!(bench.must_take(&queue).await?.attempt, 1, "the attempt after a refused request");
    Ok(())
}

async fn refuses_declare(bench: &Bench, capability: Capability) -> Done {
    let name: Name = "check-refused".parse()?;
    let rate = Some(RateLimit { count: 1, per_ms: 1_000, burst: 1 });
    let config = match capability {
        Capability::AtMostOnce => InletConfig { guarantee: DeliveryGuarantee::AtMostOnce, ..rules() },
        Capability::Bounds => InletConfig { depth_max: 2, ..rules() },
        Capability::ConcurrencyLimit => InletConfig { concurrency_max: Some(1), ..rules() },
        Capability::RateLimit => InletConfig { rate, ..rules() },
        Capability::Results => InletConfig { result_retention_ms: 1_000, ..rules() },
        _ => InletConfig { order: OrderPolicy::ByKey { stuck_head: StuckHead::Wait }, ..rules() },
    };
    let change = match capability {
        Capability::Filters => TopologyChange::Subscription {
            topic: "check-topic".parse()?,
            name: "filtered".into(),
            config: Box::new(config),
            filter: Filter { types: vec!["a".into()], ..Filter::default() },
            start: StartFrom::Now,
            update: false,
        },
        _ => TopologyChange::Queue { name: name.clone(), config: Box::new(config), update: false },
    };
    let before = bench.engine().topology().await?;
    must_be_unsupported(capability.name(), bench.engine().declare(change).await)?;
    ensure_eq!(bench.engine().topology().await?, before, "what exists after a refused declaration");
    Ok(())
}

async fn refuses_op(bench: &Bench, capability: Capability) -> Done {
    let has_queues = bench.engine().capabilities().has(Capability::Queues);
    let queue = if has_queues { bench.queue(rules()).await? } else { "check-none".parse()? };
    let op = probe(bench, &queue, capability)?;
    let before = bench.engine().topology().await?;
    must_be_unsupported(capability.name(), bench.engine().prepare(vec![op]))?;
    ensure_eq!(bench.engine().topology().await?, before, "what exists after a refused operation");
    if has_queues {
        ensure!(bench.take(&queue).await?.is_none(), "a refused operation left a message");
    }
    Ok(())
}

fn must_be_unsupported<T>(what: &str, answer: Result<T>) -> Done {
    match answer {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(error) => Err(Stop::Failed(format!("{what} is refused as {:?}: {error}", error.kind()))),
        Ok(_) => Err(Stop::Failed(format!("{what} is declared as refused and was accepted"))),
    }
}

/// An operation that needs the capability.
fn probe(bench: &Bench, queue: &Name, capability: Capability) -> Result<Op> {
    use Capability as C;
    let inlet = Inlet::Queue(queue.clone());
    let id = bench.id("none");
    let token = || LeaseToken {
        inlet: inlet.clone(),
        id: id.clone(),
        handle: bytes::Bytes::from_static(b"no lease"),
    };
    let minute = Duration::from_secs(60);
    let message = |change: fn(MessageBuilder) -> MessageBuilder| {
        change(bench.message("probe")).build(bench.env()).map(|message| enqueue(queue, message))
    };
    Ok(match capability {
        C::Delay => message(|m| m.delay(Duration::from_secs(60)))?,
        C::Priority => message(|m| m.priority(9))?,
        C::Dedup => message(|m| m.dedup_key("k"))?,
        C::Unique => message(|m| m.unique_key("k"))?,
        C::Expiry => message(|m| m.ttl(Duration::from_secs(60)))?,
        C::Release => Op::Settle { token: token(), outcome: Outcome::Release { delay: Duration::ZERO } },
        C::CrashSuspects => Op::EndProcess { process: ProcessId("p".into()), died: true },
        C::DeadLetters => Op::EditDead { inlet, id, edit: DeadEdit::default() },
        C::Cancel => Op::Cancel { inlet, id },
        C::Reschedule => Op::Reschedule { inlet, id, due: bench.env().now().plus(minute) },
        C::Progress => Op::Progress { token: token(), detail: Payload::json("half")? },
        C::Pause => Op::Pause { inlet },
        C::Purge => Op::Purge {
            inlet,
            what: PurgeWhat::Waiting,
            selection: Selection::default(),
            bulk: BulkId::generate(bench.env()),
            dry_run: false,
        },
        C::Topics => Op::Publish {
            topic: "check-topic".parse()?,
            message: Box::new(bench.message("probe").build(bench.env())?),
        },
        C::Seek => Op::Seek { inlet, to: SeekTo::Beginning, mode: SeekMode::Reprocess },
        C::Streams | C::TagConditions => append(bench, capability)?,
        C::Records | C::RecordTtl => Op::PutRecord {
            key: RecordKey::try_from("check/probe")?,
            value: "v".into(),
            expect: RecordExpect::Any,
            ttl: (capability == C::RecordTtl).then_some(minute),
        },
        C::Schedules => schedule(bench, queue)?,
        C::Queues => Op::Settle { token: token(), outcome: ack() },
        other => return Err(Error::internal(format!("{other} has no probe"))),
    })
}

fn append(bench: &Bench, capability: Capability) -> Result<Op> {
    let event = Event { message: bench.message("probe").build(bench.env())?, tags: Vec::new() };
    let condition = (capability == Capability::TagConditions)
        .then(|| AppendCondition { query: EventQuery::default(), after: None });
    Ok(Op::Append { stream: "check-1".parse()?, events: vec![event], expected: Expected::Any, condition })
}

fn schedule(bench: &Bench, queue: &Name) -> Result<Op> {
    let schedule = Schedule {
        queue: queue.clone(),
        template: bench.message("tick").build(bench.env())?,
        when: ScheduleWhen::Every { every_ms: 60_000, first: bench.env().now() },
        catch_up: onward_core::CatchUp::Skip,
        overlap: onward_core::Overlap::Allow,
        until: None,
    };
    Ok(Op::PutSchedule { name: "check-schedule".parse()?, schedule: Some(Box::new(schedule)) })
}
