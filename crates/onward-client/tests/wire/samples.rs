//! One of everything that goes over the wire, with every field set.
#![allow(clippy::unwrap_used, reason = "samples are right")]

use bytes::Bytes;
use onward_client::wire::*;
use onward_core::*;
use onward_env::SystemEnv;
use std::time::Duration;

pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// A message with every field set, numbers that no float holds, and an envelope in several scripts.
pub(crate) fn message() -> Message {
    Message::builder("order.placed")
        .id("id-ü-漢".try_into().unwrap())
        .version(7)
        .timestamp(at(-1))
        .source("shop")
        .correlation_id("c")
        .causation_id("d")
        .header("träce", "00-\u{1F600}")
        .data(
            Payload::json_text("{\"n\":123456789012345678901234567890.10, \"big\":9007199254740993}")
                .unwrap(),
        )
        .order_key("o")
        .dedup_key("p")
        .fairness_key("f")
        .unique_key("u")
        .priority(9)
        .due(at(i64::MAX - 1))
        .expiry(at(i64::MAX))
        .build(&SystemEnv)
        .unwrap()
}

pub(crate) fn raw() -> Payload {
    Payload::bytes(Bytes::from_static(b"\0\xff\xfe\xc1 not UTF-8 \0"), "application/octet-stream").unwrap()
}

pub(crate) fn queue() -> Inlet {
    "shop/emails".parse().unwrap()
}

pub(crate) fn subscription() -> Inlet {
    "shop/orders:analytics".parse().unwrap()
}

pub(crate) fn token() -> LeaseToken {
    LeaseToken { inlet: subscription(), id: message().id, handle: Bytes::from_static(b"\0\x01\xff") }
}

fn failure() -> Failure {
    Failure::new(CauseKind::BehindDeadHead, "why").with_detail("backtrace")
}

fn outcomes() -> Vec<Outcome> {
    vec![
        Outcome::Ack { result: Some(raw()) },
        Outcome::Ack { result: None },
        Outcome::Retry { delay: RetryDelay::Policy, failure: failure() },
        Outcome::Retry {
            delay: RetryDelay::After(Duration::MAX),
            failure: Failure::new(CauseKind::Timeout, ""),
        },
        Outcome::Release { delay: Duration::from_nanos(1) },
        Outcome::Reject { failure: failure() },
    ]
}

fn selection() -> Selection {
    Selection {
        ids: vec![message().id],
        kind: Some("k".into()),
        correlation_id: Some("c".into()),
        order_key: Some("o".try_into().unwrap()),
        cause: Some(CauseKind::Crashed),
        error_contains: Some("text".into()),
        before: Some(at(5)),
        limit: Some(u64::MAX),
    }
}

pub(crate) fn event() -> Event {
    Event { message: message(), tags: vec!["course:42".to_owned().try_into().unwrap()] }
}

/// Schedules are checked against a time at which they still have ticks.
fn schedules() -> Vec<Op> {
    let name: Name = "shop/nightly".parse().unwrap();
    let template = Message { dedup_key: None, unique_key: None, due: None, expiry: None, ..message() };
    let put = |when, until| {
        let (catch_up, overlap) = (CatchUp::Backfill(3), Overlap::Skip);
        let (queue, template) = (name.clone(), template.clone());
        let schedule = Some(Box::new(Schedule { queue, template, when, catch_up, overlap, until }));
        Op::PutSchedule { name: name.clone(), schedule }
    };
    vec![
        put(ScheduleWhen::Cron { line: "0 3 * * *".into(), zone: "Europe/Zurich".into() }, None),
        put(ScheduleWhen::Every { every_ms: 5_000, first: at(1) }, Some(at(9_000_000))),
    ]
}

fn ops() -> Vec<Op> {
    let (inlet, id, stream): (_, _, StreamName) = (queue(), message().id, "shop/account-1".parse().unwrap());
    let key: RecordKey = "shop/x/1".try_into().unwrap();
    let (bulk, name): (_, Name) = (BulkId(u128::MAX - 1), "shop/nightly".parse().unwrap());
    let condition = AppendCondition {
        query: EventQuery { types: vec!["t".into()], tags: event().tags },
        after: Some(Position(u64::MAX)),
    };
    let mut ops = vec![
        Op::Enqueue { queue: name.clone(), message: Box::new(message()) },
        Op::Publish { topic: name.clone(), message: Box::new(Message { data: raw(), ..message() }) },
        Op::Cancel { inlet: inlet.clone(), id: id.clone() },
        Op::Reschedule { inlet: inlet.clone(), id: id.clone(), due: at(3) },
        Op::Progress { token: token(), detail: raw() },
        Op::EndProcess { process: ProcessId("h/1/2/3".into()), died: true },
        Op::Append {
            stream: stream.clone(),
            events: vec![event()],
            expected: Expected::Revision(u64::MAX),
            condition: Some(condition),
        },
        Op::PutRecord {
            key: key.clone(),
            value: Bytes::from_static(b"\0\xff"),
            expect: RecordExpect::Revision(4),
            ttl: Some(Duration::from_millis(1500)),
        },
        Op::DeleteRecord { key: key.clone(), expect: RecordExpect::Present },
        Op::Guard(Guarded::Record { key, expect: RecordExpect::Absent }),
        Op::Guard(Guarded::Stream { stream: stream.clone(), expected: Expected::NoStream }),
        Op::Guard(Guarded::Lease { token: token() }),
        Op::PutSchedule { name: name.clone(), schedule: None },
        Op::Pause { inlet: inlet.clone() },
        Op::Resume { inlet: inlet.clone() },
        Op::Seek { inlet: subscription(), to: SeekTo::Time(at(7)), mode: SeekMode::FillGaps },
        Op::Seek { inlet: subscription(), to: SeekTo::Position(Position(8)), mode: SeekMode::Reprocess },
        Op::EditDead {
            inlet: inlet.clone(),
            id,
            edit: DeadEdit {
                data: Some(raw()),
                kind: Some("k".into()),
                version: Some(2),
                headers: [("gone".to_owned(), None), ("new".to_owned(), Some("v".to_owned()))].into(),
            },
        },
        Op::Redrive {
            inlet: inlet.clone(),
            selection: selection(),
            spacing: Duration::from_micros(1),
            bulk,
            dry_run: true,
        },
        Op::Purge { inlet, what: PurgeWhat::Dead, selection: Selection::default(), bulk, dry_run: false },
        Op::Truncate { stream, before: 3 },
    ];
    ops.extend(outcomes().into_iter().map(|outcome| Op::Settle { token: token(), outcome }));
    ops
}

pub(crate) fn config() -> InletConfig {
    let rate = RateLimit { count: 1, per_ms: u64::MAX, burst: 3 };
    InletConfig {
        guarantee: DeliveryGuarantee::AtMostOnce,
        lease_total_max_ms: Some(1),
        retry: RetryPolicy {
            curve: Curve::Steps { waits_ms: vec![1, 2] },
            jitter: Jitter::None,
            ..RetryPolicy::default()
        },
        order: OrderPolicy::ByKey { stuck_head: StuckHead::SetAside },
        overflow: Overflow::ShedLowest,
        dead_retention_ms: Some(2),
        concurrency_max: Some(3),
        concurrency_per_key_max: Some(2),
        rate: Some(rate),
        rate_per_key: Some(rate),
        ..InletConfig::default()
    }
}

pub(crate) fn filter() -> Filter {
    Filter {
        types: vec!["a.*".into()],
        sources: vec!["s".into()],
        headers: [("h".into(), "v".into())].into(),
    }
}

fn changes() -> Vec<TopologyChange> {
    let name: Name = "shop/x".parse().unwrap();
    vec![
        TopologyChange::Queue { name: name.clone(), config: Box::new(config()), update: true },
        TopologyChange::Topic {
            name: name.clone(),
            config: TopicConfig { retention_ms: Some(1), ..TopicConfig::default() },
            update: false,
        },
        TopologyChange::Subscription {
            topic: name.clone(),
            name: "s".into(),
            config: Box::new(InletConfig::default()),
            filter: filter(),
            start: StartFrom::Position(Position(1)),
            update: false,
        },
        TopologyChange::DropInlet { inlet: subscription(), only_if_empty: true },
        TopologyChange::DropTopic { name },
    ]
}

fn holder() -> Holder {
    Holder { worker: "w".into(), process: ProcessId("p".into()) }
}

pub(crate) fn cause() -> Cause {
    Cause { failure: failure(), attempt: 2, at: at(6), worker: "w".into() }
}

pub(crate) fn view() -> MessageView {
    let lease = LeaseView { id: message().id, holder: holder(), attempt: 1, since: at(1), until: at(2) };
    MessageView {
        inlet: queue(),
        message: message(),
        original: Some(Box::new(message())),
        state: MessageState::Leased,
        attempts: 1,
        crashes: 2,
        blocked: true,
        suspect: true,
        cancel_requested: true,
        accepted_at: at(3),
        due: Some(at(4)),
        ended_at: Some(at(5)),
        lease: Some(lease),
        causes: vec![cause()],
        progress: Some(raw()),
        result: Some(raw()),
        position: Some(Position(6)),
    }
}

pub(crate) fn calls() -> Vec<Call> {
    let request = LeaseRequest {
        request_id: RequestId(u128::MAX),
        inlets: vec![WeightedInlet { inlet: subscription(), weight: 3 }],
        count_max: 4,
        bytes_max: u64::MAX,
        wait: Duration::from_millis(1),
        lease: Some(Duration::from_secs(1)),
        holder: holder(),
        accepts: vec!["t".into()],
    };
    let find = |by| MessageQuery { inlet: queue(), by, after: Some(Cursor("c".into())), limit: 9 };
    let read =
        |scope, from, direction| EventRead { scope, from, direction, limit: 1, bytes_max: 2, as_of: None };
    let category = EventScope::Category { namespace: "n".into(), category: "c".into() };
    let mut calls = vec![
        Call::Topology,
        Call::Lease(request),
        Call::Extend { leases: vec![token()], by: Duration::from_secs(5) },
        Call::Find(find(FindBy::Id(message().id))),
        Call::Find(find(FindBy::State(MessageState::Dead))),
        Call::Find(find(FindBy::Correlation("c".into()))),
        Call::Find(find(FindBy::OrderKey("o".try_into().unwrap()))),
        Call::ReadEvents(read(
            EventScope::Stream("a-1".parse().unwrap()),
            ReadFrom::Revision(3),
            Direction::Forward,
        )),
        Call::ReadEvents(read(category, ReadFrom::Time(at(1)), Direction::Backward)),
        Call::ReadEvents(read(EventScope::Topic("t".parse().unwrap()), ReadFrom::Start, Direction::Forward)),
        Call::ReadEvents(read(EventScope::All, ReadFrom::Position(Position(1)), Direction::Forward)),
        Call::GetRecords(RecordQuery::Keys(vec!["k".try_into().unwrap()])),
        Call::GetRecords(RecordQuery::Prefix { prefix: String::new(), after: None, limit: 1 }),
        Call::Stats(vec![queue(), subscription()]),
    ];
    calls.extend(changes().into_iter().map(Call::Declare));
    let limits = EngineLimits {
        payload_bytes_max: u64::MAX,
        delay_max: None,
        lease_total_max: None,
        dedup_window_max: None,
        ops_max: 100,
    };
    let everything = Capabilities::all("x", Durability::Fsync, AtomicScope::Store, limits);
    let prepared = Prepared::check(ops(), &everything, at(i64::MAX - 2)).unwrap();
    let scheduled = Prepared::check(schedules(), &everything, at(0)).unwrap();
    calls.push(Call::Submit(vec![prepared.clone(), prepared.clone(), scheduled]));
    calls.push(Call::Commit(prepared.by("somebody")));
    calls
}
