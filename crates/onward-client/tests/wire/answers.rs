//! One of every answer, with every field set.
#![allow(clippy::unwrap_used, reason = "samples are right")]

use super::samples::*;
use bytes::Bytes;
use onward_client::wire::*;
use onward_core::*;
use std::time::Duration;

pub(crate) fn answers() -> Vec<Answer> {
    let accepted = Accepted {
        id: message().id,
        duplicate: true,
        declared: true,
        position: Some(Position(u64::MAX)),
        durability: Durability::QuorumFsync,
    };
    let appended = Appended { first_revision: 0, last_revision: 1, position: Position(2), duplicate: false };
    let receipts = vec![
        Receipt::Accepted(accepted),
        Receipt::Settled(SettledAs { state: MessageState::Dead, due: Some(at(1)), already: true }),
        Receipt::Cancelled(CancelOutcome::Requested),
        Receipt::Appended(appended),
        Receipt::Recorded { revision: 1 },
        Receipt::Edited { edition: 2 },
        Receipt::Bulk(BulkReport { matched: 1, done: 2, finished: true }),
        Receipt::ProcessEnded { leases: 3 },
        Receipt::Sought(Sought { next: Some(Position(9)), messages: 2, clipped: true, replay: 1 }),
        Receipt::Done,
    ];
    let error = Error::full("what").at("where").mend("how").retry(RetryHint::After(Duration::from_millis(7)));
    let delivery = Delivery {
        token: token(),
        message: message(),
        attempt: 1,
        lease: Duration::from_millis(1),
        accepted_at: at(2),
        position: None,
        progress: Some(raw()),
        causes: vec![cause(), cause()],
        suspect: true,
        replay: 2,
    };
    let recorded = RecordedEvent {
        event: event(),
        stream: "a-1".parse().unwrap(),
        revision: 1,
        position: Position(2),
        recorded_at: at(3),
    };
    let record = Record {
        key: "k".try_into().unwrap(),
        value: Bytes::from_static(b"\xff"),
        revision: 1,
        expires: Some(at(1)),
        written: at(2),
        position: None,
    };
    let stats = Stats {
        inlet: queue(),
        books: Books { accepted: u64::MAX, done: 1, ..Books::default() },
        approximate: true,
        blocked: 1,
        bytes: 2,
        oldest_waiting: Some(at(1)),
        next_due: None,
        deliveries: 3,
        failures: 4,
        lost_at_most_once: 5,
        duplicates: 6,
        dedup_entries: 7,
        dedup_window_ms: 8,
        paused: true,
        stopped_dead_full: true,
        leases: vec![view().lease.unwrap()],
        lag: Some(Lag { messages: 3, unreached: 2, oldest: Some(at(1)), next: Some(Position(4)), replay: 1 }),
    };
    vec![
        Answer::Declared(TopologyDiff {
            created: true,
            dropped: true,
            changed: vec!["x".into()],
            clipped: true,
        }),
        Answer::Topology(Topology {
            inlets: vec![(queue(), config()), (subscription(), InletConfig::default())],
            filters: vec![(subscription(), filter())],
            topics: vec![("t".parse().unwrap(), TopicConfig::default())],
            paused: vec![queue()],
            schedules: vec![ScheduleView {
                name: "nightly".parse().unwrap(),
                schedule: Schedule {
                    queue: "q".parse().unwrap(),
                    template: message(),
                    when: ScheduleWhen::Every { every_ms: 5, first: at(1) },
                    catch_up: CatchUp::Coalesce,
                    overlap: Overlap::Allow,
                    until: None,
                },
                since: at(1),
                next: Some(at(2)),
                last: Some(at(3)),
                last_message: Some(message().id),
                fired: 4,
                missed: 5,
                overlapped: u64::MAX,
                problem: Some("full".into()),
            }],
            kept: vec![TopicKeeps {
                topic: "t".parse().unwrap(),
                published: 5,
                messages: 4,
                bytes: 3,
                oldest: Some(Position(1)),
                oldest_at: Some(at(2)),
                newest: Some(Position(9)),
                subscriptions: 2,
            }],
        }),
        Answer::Committed(receipts.clone()),
        Answer::Submitted(vec![Ok(receipts), Err(error)]),
        Answer::Leased(vec![delivery]),
        Answer::Extended(vec![
            Ok(Extended { lease: Duration::from_secs(1), cancel_requested: true }),
            Err(Error::unknown("lost")),
        ]),
        Answer::Found(Page { items: vec![view()], next: Some(Cursor("n".into())) }),
        Answer::Events(EventSlice {
            events: vec![recorded],
            next: Some(ReadFrom::End),
            head: Some(Position(3)),
        }),
        Answer::Records(Page::whole(vec![record])),
        Answer::Stats(vec![stats]),
    ]
}
