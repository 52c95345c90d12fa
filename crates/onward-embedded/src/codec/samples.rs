//! One fact of every kind, with every field used somewhere: what the codec's tests go over.

use crate::{At, BulkMark, End, Fact, Given, InletId, Marks, MessageRef, Removal, Said, StreamId, TopicId};
use bytes::Bytes;
use onward_core::{
    BulkId, BulkReport, CatchUp, Cause, CauseKind, Failure, Filter, Holder, Inlet, InletConfig, Message,
    Name, Overlap, Payload, ProcessId, RequestId, Schedule, ScheduleWhen, Tag, Timestamp, TopicConfig,
};
use std::{sync::Arc, time::Duration};

pub(crate) const TIME: Timestamp = Timestamp::from_micros(1_700_000_000_123_456);

pub(crate) const MARKS: Marks = Marks { id: 1, dedup: u64::MAX, fingerprint: 0x0102_0304 };

fn at(seq: u64) -> At {
    At { inlet: InletId(3), message: MessageRef { seq, id_hash: 0x0123_4567_89ab_cdef } }
}

fn cause() -> Cause {
    let failure = Failure::new(CauseKind::Timeout, "took too long").with_detail("at step 2");
    Cause { failure, attempt: 2, at: TIME, worker: "worker-1".into() }
}

fn bulk() -> BulkMark {
    BulkMark { id: BulkId(77), report: BulkReport { matched: 300, done: 2, finished: true } }
}

/// A message that sets nothing it need not.
pub(crate) fn plain() -> Message {
    let id = "0190b3c1-0000-7000-8000-000000000001".try_into().unwrap();
    let data = Payload::json_text(r#"{"n":9007199254740993}"#).unwrap();
    let env = crate::test_env::FixedEnv;
    Message::builder("order.placed").id(id).timestamp(TIME).data(data).build(&env).unwrap()
}

/// A message that sets everything.
pub(crate) fn full() -> Message {
    let builder = Message::builder("image.resize")
        .id("upload 7".try_into().unwrap())
        .version(3)
        .timestamp(TIME.minus(Duration::from_secs(5)))
        .source("shop/ü")
        .data(Payload::bytes(Bytes::from_static(&[0, 255, 10, 13]), "image/png").unwrap())
        .header("traceparent", "00-1-2-01")
        .header("a", "")
        .correlation_id("c-1")
        .causation_id("m-0")
        .order_key("account 4711")
        .dedup_key("d")
        .fairness_key("tenant")
        .unique_key("u")
        .priority(9)
        .due(TIME.plus(Duration::from_secs(60)))
        .expiry(TIME.plus(Duration::from_secs(600)));
    let mut message = builder.build(&crate::test_env::FixedEnv).unwrap();
    message.edition = 4;
    message
}

/// Every kind of fact, and every end of a lease.
pub(crate) fn facts() -> Vec<Fact> {
    let (inlet, messages) = (InletId(3), vec![at(5).message, at(u64::MAX).message]);
    let settled = |end| Fact::Settled { at: at(1 << 33), said: Some(Said::Retry), end };
    let due = TIME.plus(Duration::from_secs(1));
    vec![
        Fact::Founded { secret: [1, u64::MAX] },
        Fact::Opened { epoch: 300 },
        declared(inlet),
        Fact::Dropped { inlet },
        Fact::Paused { inlet, paused: true },
        Fact::Enqueued { inlet, marks: MARKS, skew_us: 0, message: Arc::new(plain()) },
        Fact::Enqueued { inlet, marks: MARKS, skew_us: -70, message: Arc::new(full()) },
        leased(),
        Fact::Extended { leases: vec![at(1), at(2)], term: Duration::new(30, 1) },
        settled(End::Acked { result: None }),
        settled(End::Acked { result: Some(Payload::json_text("[1]").unwrap()) }),
        settled(End::Retried { due, cause: cause() }),
        settled(End::Released { due: None }),
        settled(End::Died { cause: cause() }),
        settled(End::Suspected),
        settled(End::Crashed { due, cause: cause() }),
        settled(End::Cancelled),
        settled(End::Lost { cause: cause(), copy: true }),
        Fact::CancelRequested { at: at(9) },
        Fact::Removed { inlet, messages: messages.clone(), why: Removal::Shed, bulk: None },
        Fact::Rescheduled { at: at(9), due },
        Fact::Progressed { at: at(9), detail: Payload::json_text("0.5").unwrap() },
        Fact::Edited { at: at(9), message: Arc::new(full()) },
        Fact::Redriven { inlet, messages: vec![(messages[0], due)], bulk: Some(bulk()) },
        Fact::Moved { at: at(9), edition: true, accepted_at: TIME, message: Arc::new(plain()) },
        record_put(),
        Fact::RecordDeleted { key: "shop/orders/1".try_into().unwrap() },
        Fact::RecordsExpired { keys: vec!["a".try_into().unwrap(), "b".try_into().unwrap()] },
        schedule_set(true),
        schedule_set(false),
        Fact::ScheduleRemoved { name: "shop/nightly".parse().unwrap() },
        Fact::ScheduleTicked {
            name: "shop/nightly".parse().unwrap(),
            ticks: vec![TIME, due],
            missed: 300,
            overlapped: 1,
            decided: due,
            next: Some(TIME),
        },
        Fact::StreamNamed { stream: StreamId(2), name: "shop/account-4711 ü".parse().unwrap() },
        appended(full(), &["course:1", "student:2"]),
        appended(plain(), &[]),
        Fact::Truncated { stream: StreamId(2), before: 1 << 40 },
    ]
    .into_iter()
    .chain(topic_facts())
    .collect()
}

/// Facts about topics and subscriptions.
fn topic_facts() -> Vec<Fact> {
    let (topic, inlet, name) = (TopicId(2), InletId(3), "shop/orders".parse::<Name>().unwrap());
    let filter = Filter {
        types: vec!["order.*".into()],
        sources: vec!["shop".into()],
        headers: [("region".to_owned(), "eu".to_owned())].into(),
    };
    let config = TopicConfig { retention_ms: Some(60_000), ..TopicConfig::default() };
    vec![
        Fact::TopicDeclared { topic, name: name.clone(), config: Box::new(config) },
        Fact::TopicDropped { topic },
        Fact::Published { topic, marks: MARKS, skew_us: 4, message: Arc::new(full()) },
        Fact::Subscribed {
            inlet,
            topic,
            name: Inlet::subscription(name, "analytics").unwrap(),
            config: Box::new(InletConfig::default()),
            filter: Box::new(filter),
            start: 300,
        },
        Fact::Drawn { inlet, from: 300, until: 428, unfit: vec![301, 400] },
        Fact::Passed { inlet, until: 500, why: Removal::Purged, bulk: Some(bulk()) },
        Fact::Sought { inlet, to: 7, again: true },
        Fact::Trimmed { topic },
        Fact::TopicMoved { topic, which: at(9).message, accepted_at: TIME, message: Arc::new(plain()) },
    ]
}

fn declared(inlet: InletId) -> Fact {
    let config = InletConfig { lease_ms: 5_000, dead_retention_ms: Some(9), ..InletConfig::default() };
    Fact::Declared { inlet, name: Inlet::queue("shop/emails").unwrap(), config: Box::new(config) }
}

fn schedule_set(cron: bool) -> Fact {
    let zoned = ScheduleWhen::Cron { line: "30 2 * * *".into(), zone: "Europe/Zurich".into() };
    let every = ScheduleWhen::Every { every_ms: 300_000, first: TIME };
    let mut template = if cron { plain() } else { full() };
    (template.unique_key, template.dedup_key, template.due, template.expiry) = (None, None, None, None);
    let schedule = Schedule {
        queue: "shop/emails".parse().unwrap(),
        template,
        when: if cron { zoned } else { every },
        catch_up: if cron { CatchUp::Backfill(300) } else { CatchUp::Coalesce },
        overlap: if cron { Overlap::Skip } else { Overlap::Allow },
        until: cron.then_some(TIME),
    };
    let (name, next) = ("shop/nightly".parse().unwrap(), cron.then_some(TIME));
    Fact::ScheduleSet { name, schedule: Box::new(schedule), since: TIME, next }
}

fn leased() -> Fact {
    Fact::Leased {
        request: RequestId(u128::MAX - 1),
        holder: Holder { worker: "w".into(), process: ProcessId("host-1-abc".into()) },
        terms_us: vec![30_000_000, 5],
        given: vec![
            Given { at: at(7), attempt: 1, nonce: 0xdead_beef },
            Given { at: at(8), attempt: 300, nonce: 0 },
        ],
    }
}

fn appended(message: Message, tags: &[&str]) -> Fact {
    let tags = tags.iter().map(|tag| Tag::try_from(*tag).unwrap()).collect();
    Fact::Appended {
        stream: StreamId(2),
        revision: 300,
        message: Arc::new(message),
        tags,
        mark: u64::MAX - 1,
    }
}

fn record_put() -> Fact {
    Fact::RecordPut {
        key: "shop/orders/1".try_into().unwrap(),
        value: Bytes::from_static(b"\x00value"),
        expires: Some(TIME),
    }
}
