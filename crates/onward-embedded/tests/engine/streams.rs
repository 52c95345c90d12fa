//! Streams: expectations, repeats, conditions, reads in every scope and direction, truncation.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

pub(crate) fn stream(text: &str) -> StreamName {
    text.parse().unwrap()
}

fn tags(tags: &[&str]) -> Vec<Tag> {
    tags.iter().map(|tag| Tag::try_from(*tag).unwrap()).collect()
}

fn event(bench: &Bench, id: &str, tagged: &[&str]) -> Event {
    Event { message: bench.message(id).build(&*bench.env).unwrap(), tags: tags(tagged) }
}

fn op(bench: &Bench, to: &str, ids: &[&str], expected: Expected) -> Op {
    let events = ids.iter().map(|id| event(bench, id, &[])).collect();
    Op::Append { stream: stream(to), events, expected, condition: None }
}

async fn append(bench: &Bench, to: &str, ids: &[&str], expected: Expected) -> Result<Appended> {
    match bench.one(op(bench, to, ids, expected)).await? {
        Receipt::Appended(appended) => Ok(appended),
        other => panic!("{other:?}"),
    }
}

async fn tagged(
    bench: &Bench,
    to: &str,
    id: &str,
    with: &[&str],
    condition: Option<AppendCondition>,
) -> Result<Position> {
    let events = vec![event(bench, id, with)];
    let append = Op::Append { stream: stream(to), events, expected: Expected::Any, condition };
    match bench.one(append).await? {
        Receipt::Appended(appended) => Ok(appended.position),
        other => panic!("{other:?}"),
    }
}

async fn read(bench: &Bench, read: EventRead) -> EventSlice {
    bench.engine.read_events(read).await.unwrap()
}

fn ids(slice: &EventSlice) -> Vec<String> {
    slice.events.iter().map(|recorded| recorded.event.message.id.to_string()).collect()
}

async fn all(bench: &Bench, scope: EventScope) -> Vec<String> {
    ids(&read(bench, EventRead::all_of(scope)).await)
}

async fn of(bench: &Bench, name: &str) -> Vec<String> {
    all(bench, EventScope::Stream(stream(name))).await
}

fn standing<T: std::fmt::Debug>(result: Result<T>) -> Option<u64> {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    error.revision()
}

#[tokio::test]
#[proves("E1", "E3")]
async fn an_append_happens_only_where_the_stream_stands_as_expected_and_the_conflict_says_where_it_stands() {
    let bench = Bench::new();
    assert_eq!(standing(append(&bench, "a-1", &["x"], Expected::Exists).await), None);
    assert_eq!(standing(append(&bench, "a-1", &["x"], Expected::Revision(0)).await), None);
    let first = append(&bench, "a-1", &["e0", "e1"], Expected::NoStream).await.unwrap();
    assert_eq!((first.first_revision, first.last_revision, first.duplicate), (0, 1, false));
    assert_eq!(standing(append(&bench, "a-1", &["x"], Expected::NoStream).await), Some(1));
    assert_eq!(standing(append(&bench, "a-1", &["x"], Expected::Revision(0)).await), Some(1));
    assert_eq!(standing(append(&bench, "a-1", &["x"], Expected::Revision(2)).await), Some(1));
    append(&bench, "a-1", &["e2"], Expected::Revision(1)).await.unwrap();
    append(&bench, "a-1", &["e3"], Expected::Exists).await.unwrap();
    let last = append(&bench, "a-1", &["e4"], Expected::Any).await.unwrap();
    assert_eq!((last.first_revision, last.last_revision), (4, 4));
    assert_eq!(of(&bench, "a-1").await, ["e0", "e1", "e2", "e3", "e4"]);
}

#[tokio::test]
#[proves("E3", "G6")]
async fn the_same_event_twice_is_a_no_op_and_the_same_id_with_other_content_a_conflict() {
    let bench = Bench::new();
    for (name, expected) in [("b-1", Expected::NoStream), ("b-2", Expected::Any)] {
        let first = append(&bench, name, &["e0", "e1"], expected).await.unwrap();
        append(&bench, name, &["e2"], Expected::Revision(1)).await.unwrap();
        let again = append(&bench, name, &["e0", "e1"], expected).await.unwrap();
        assert_eq!(again, Appended { duplicate: true, ..first });
        assert!(append(&bench, name, &["e2"], Expected::Revision(1)).await.unwrap().duplicate);
        assert_eq!(of(&bench, name).await, ["e0", "e1", "e2"]);
        let other = bench.message("e0").json(&"other").build(&*bench.env).unwrap();
        let events = vec![Event { message: other, tags: Vec::new() }];
        let other = Op::Append { stream: stream(name), events, expected, condition: None };
        assert_eq!(kind(bench.one(other).await), ErrorKind::Conflict);
        let retagged = vec![event(&bench, "e0", &["t"])];
        let retagged = Op::Append { stream: stream(name), events: retagged, expected, condition: None };
        assert_eq!(kind(bench.one(retagged).await), ErrorKind::Conflict);
        // Only a part of them stands there, or elsewhere.
        assert_eq!(kind(append(&bench, name, &["e0", "new"], expected).await), ErrorKind::Conflict);
        assert_eq!(kind(append(&bench, name, &["new", "e1"], Expected::Any).await), ErrorKind::Conflict);
        assert_eq!(kind(append(&bench, name, &["e1"], Expected::Revision(2)).await), ErrorKind::Conflict);
        assert_eq!(of(&bench, name).await, ["e0", "e1", "e2"]);
    }
    // An id is of one stream.
    append(&bench, "b-3", &["e0"], Expected::NoStream).await.unwrap();
}

#[tokio::test]
#[proves("LOG15", "E3")]
async fn conditions_and_repeats_see_earlier_operations_of_the_same_commit() {
    let bench = Bench::new();
    let ops = vec![
        op(&bench, "c-1", &["e0"], Expected::NoStream),
        op(&bench, "c-1", &["e1"], Expected::Revision(0)),
        op(&bench, "c-1", &["e1"], Expected::Any),
        Op::Guard(Guarded::Stream { stream: stream("c-1"), expected: Expected::Revision(1) }),
        op(&bench, "c-2", &["e0"], Expected::NoStream),
    ];
    let receipts = bench.commit(ops).await.unwrap();
    let Receipt::Appended(repeat) = receipts[2] else { panic!("{receipts:?}") };
    let Receipt::Appended(second) = receipts[1] else { panic!("{receipts:?}") };
    assert_eq!(repeat, Appended { duplicate: true, ..second });
    assert_eq!(
        (of(&bench, "c-1").await, of(&bench, "c-2").await),
        (vec!["e0".into(), "e1".into()], vec!["e0".to_owned()])
    );
    let failing = vec![
        op(&bench, "c-1", &["e2"], Expected::Revision(1)),
        op(&bench, "c-1", &["e3"], Expected::Revision(1)),
    ];
    assert_eq!(standing(bench.commit(failing).await), Some(2));
    assert_eq!(of(&bench, "c-1").await, ["e0", "e1"]);
    let query = EventQuery { tags: tags(&["t"]), ..EventQuery::default() };
    let condition = Some(AppendCondition { query, after: None });
    let one = Op::Append {
        stream: stream("c-3"),
        events: vec![event(&bench, "a", &["t"])],
        expected: Expected::Any,
        condition: None,
    };
    let two = Op::Append {
        stream: stream("c-4"),
        events: vec![event(&bench, "b", &[])],
        expected: Expected::Any,
        condition,
    };
    assert_eq!(kind(bench.commit(vec![one, two]).await), ErrorKind::Conflict);
    assert!(of(&bench, "c-3").await.is_empty());
}

#[tokio::test]
#[proves("E3")]
async fn a_condition_by_tags_holds_while_nothing_that_matches_stands_behind_its_position() {
    let bench = Bench::new();
    let condition = |types: &[&str], with: &[&str], after| {
        let types = types.iter().map(|kind| (*kind).into()).collect();
        Some(AppendCondition { query: EventQuery { types, tags: tags(with) }, after })
    };
    let first = tagged(&bench, "s-1", "e1", &["course:1", "student:1"], condition(&[], &["course:1"], None))
        .await
        .unwrap();
    let none = tagged(&bench, "s-2", "e2", &["course:1"], condition(&[], &["course:1"], None)).await;
    assert_eq!(kind(none), ErrorKind::Conflict);
    tagged(&bench, "s-2", "e2", &["course:1"], condition(&[], &["course:1"], Some(first))).await.unwrap();
    let both = condition(&[], &["course:1", "student:1"], Some(first));
    tagged(&bench, "s-3", "e3", &["course:2"], both).await.unwrap();
    tagged(&bench, "s-3", "e4", &[], condition(&["other"], &["course:1"], None)).await.unwrap();
    let typed = condition(&["other", "test.made"], &["course:2"], None);
    assert_eq!(kind(tagged(&bench, "s-3", "e5", &[], typed).await), ErrorKind::Conflict);
    // The repeat of what happened is not held up by its own event.
    let again =
        tagged(&bench, "s-1", "e1", &["course:1", "student:1"], condition(&[], &["course:1"], None)).await;
    assert_eq!(again.unwrap(), first);
}

#[tokio::test]
#[proves("E4")]
async fn streams_categories_types_tags_and_everything_are_read_both_ways_page_by_page() {
    let bench = Bench::new();
    for n in 0..300u32 {
        let name = format!("{}-{}", ["order", "account"][n as usize % 2], n % 5);
        let with = [format!("n:{}", n % 3)];
        tagged(&bench, &name, &format!("e{n}"), &[&with[0]], None).await.unwrap();
    }
    let numbers = |keep: &dyn Fn(u32) -> bool| {
        (0..300).filter(|n| keep(*n)).map(|n| format!("e{n}")).collect::<Vec<_>>()
    };
    let category =
        |category: &str| EventScope::Category { namespace: "default".into(), category: category.into() };
    let by_tag = |with: &[&str]| EventScope::Query(EventQuery { tags: tags(with), ..EventQuery::default() });
    let scopes = [
        (EventScope::All, numbers(&|_| true)),
        (EventScope::Stream(stream("order-4")), numbers(&|n| n % 10 == 4)),
        (category("account"), numbers(&|n| n % 2 == 1)),
        (by_tag(&["n:2"]), numbers(&|n| n % 3 == 2)),
        (by_tag(&["n:2", "n:1"]), Vec::new()),
        (
            EventScope::Query(EventQuery { types: vec!["test.made".into()], tags: tags(&["n:0"]) }),
            numbers(&|n| n % 3 == 0),
        ),
        (EventScope::Query(EventQuery { types: vec!["none".into()], ..EventQuery::default() }), Vec::new()),
    ];
    for (scope, expected) in scopes {
        for direction in [Direction::Forward, Direction::Backward] {
            let backward = direction == Direction::Backward;
            let from = if backward { ReadFrom::End } else { ReadFrom::Start };
            let mut ask = EventRead { from, direction, limit: 7, ..EventRead::all_of(scope.clone()) };
            let (mut seen, mut places) = (Vec::new(), Vec::new());
            loop {
                let slice = read(&bench, ask.clone()).await;
                assert!(slice.events.len() <= 7);
                seen.extend(ids(&slice));
                places.extend(slice.events.iter().map(|recorded| recorded.position));
                let Some(next) = slice.next else { break };
                ask.from = next;
            }
            assert!(places.windows(2).all(|pair| (pair[0] < pair[1]) != backward), "{scope:?}");
            if backward {
                seen.reverse();
            }
            assert_eq!(seen, expected, "{scope:?} {direction:?}");
        }
    }
}

#[tokio::test]
#[proves("E4")]
async fn a_read_begins_at_a_revision_or_position_and_ends_with_its_bytes() {
    let bench = Bench::new();
    let newest = EventRead { from: ReadFrom::End, ..EventRead::all_of(EventScope::All) };
    let follow = read(&bench, newest).await.next.unwrap();
    for n in 0..5 {
        append(&bench, "r-1", &[&format!("e{n}")], Expected::Any).await.unwrap();
        append(&bench, "q-1", &[&format!("f{n}")], Expected::Any).await.unwrap();
    }
    let base = EventRead::all_of(EventScope::Stream(stream("r-1")));
    let from = |from, direction| EventRead { from, direction, ..base.clone() };
    assert_eq!(ids(&read(&bench, from(ReadFrom::Revision(3), Direction::Forward)).await), ["e3", "e4"]);
    assert_eq!(ids(&read(&bench, from(ReadFrom::Revision(1), Direction::Backward)).await), ["e1", "e0"]);
    assert_eq!(ids(&read(&bench, from(ReadFrom::Revision(99), Direction::Backward)).await)[0], "e4");
    assert!(read(&bench, from(ReadFrom::Revision(5), Direction::Forward)).await.events.is_empty());
    let whole = read(&bench, base.clone()).await;
    let third = whole.events[2].position;
    assert_eq!(
        ids(&read(&bench, from(ReadFrom::Position(third), Direction::Forward)).await),
        ["e2", "e3", "e4"]
    );
    assert_eq!(
        ids(&read(&bench, from(ReadFrom::Position(third), Direction::Backward)).await),
        ["e2", "e1", "e0"]
    );
    let small = read(&bench, EventRead { bytes_max: 9, ..base.clone() }).await;
    assert_eq!((ids(&small), small.next), (vec!["e0".to_owned(), "e1".into()], Some(ReadFrom::Revision(2))));
    assert_eq!(read(&bench, EventRead { bytes_max: 0, ..base.clone() }).await.events.len(), 1);
    // From behind the newest on, nothing is missed; also when there was nothing yet.
    let followed = EventRead { from: follow, ..EventRead::all_of(EventScope::All) };
    assert_eq!(read(&bench, followed).await.events.len(), 10);
    let behind = read(&bench, from(ReadFrom::End, Direction::Forward)).await;
    assert_eq!((behind.events.len(), behind.next), (0, Some(ReadFrom::Revision(5))));
    let of_all = EventRead { from: ReadFrom::End, ..EventRead::all_of(EventScope::All) };
    let next = read(&bench, of_all.clone()).await.next.unwrap();
    append(&bench, "r-1", &["new"], Expected::Any).await.unwrap();
    assert_eq!(ids(&read(&bench, EventRead { from: next, ..of_all }).await), ["new"]);
    let wrong = EventRead { scope: EventScope::All, ..from(ReadFrom::Revision(1), Direction::Forward) };
    assert_eq!(kind(bench.engine.read_events(wrong).await), ErrorKind::Invalid);
    for limit in [0, EVENTS_MAX + 1] {
        assert_eq!(
            kind(bench.engine.read_events(EventRead { limit, ..base.clone() }).await),
            ErrorKind::Invalid
        );
    }
    assert!(of(&bench, "none-1").await.is_empty());
}

#[tokio::test]
#[proves("E2")]
async fn what_stood_at_a_time_is_read_as_of_then() {
    let bench = Bench::new();
    let start = bench.env.now();
    for n in 0..4 {
        append(&bench, "t-1", &[&format!("e{n}")], Expected::Any).await.unwrap();
        bench.clock.advance(secs(10));
    }
    let base = EventRead::all_of(EventScope::Stream(stream("t-1")));
    let as_of = |at| EventRead { as_of: Some(start.plus(secs(at))), ..base.clone() };
    assert_eq!(ids(&read(&bench, as_of(10)).await), ["e0", "e1"]);
    assert_eq!(ids(&read(&bench, as_of(29)).await), ["e0", "e1", "e2"]);
    let before = EventRead { as_of: Some(start.minus(secs(1))), ..base.clone() };
    assert!(read(&bench, before).await.events.is_empty());
    let newest = EventRead { from: ReadFrom::End, direction: Direction::Backward, limit: 1, ..as_of(15) };
    assert_eq!(ids(&read(&bench, newest).await), ["e1"]);
    let since =
        |at, direction| EventRead { from: ReadFrom::Time(start.plus(secs(at))), direction, ..base.clone() };
    assert_eq!(ids(&read(&bench, since(15, Direction::Forward)).await), ["e2", "e3"]);
    assert_eq!(ids(&read(&bench, since(15, Direction::Backward)).await), ["e1", "e0"]);
    assert!(read(&bench, since(31, Direction::Forward)).await.events.is_empty());
}

#[tokio::test]
#[proves("E4")]
async fn truncated_events_are_gone_from_every_read_and_revisions_go_on() {
    let bench = Bench::new();
    for n in 0..300 {
        tagged(&bench, "d-1", &format!("e{n}"), &["t"], None).await.unwrap();
    }
    append(&bench, "d-2", &["other"], Expected::NoStream).await.unwrap();
    let truncate = |before| Op::Truncate { stream: stream("d-1"), before };
    bench.one(truncate(298)).await.unwrap();
    bench.one(truncate(10)).await.unwrap();
    let tag = EventScope::Query(EventQuery { tags: tags(&["t"]), ..EventQuery::default() });
    let category = EventScope::Category { namespace: "default".into(), category: "d".into() };
    assert_eq!(of(&bench, "d-1").await, ["e298", "e299"]);
    assert_eq!(all(&bench, tag.clone()).await, ["e298", "e299"]);
    assert_eq!(all(&bench, category).await, ["e298", "e299", "other"]);
    assert_eq!(all(&bench, EventScope::All).await, ["e298", "e299", "other"]);
    assert_eq!(kind(bench.one(truncate(301)).await), ErrorKind::Invalid);
    assert_eq!(
        kind(bench.one(Op::Truncate { stream: stream("none"), before: 0 }).await),
        ErrorKind::NotFound
    );
    bench.one(truncate(300)).await.unwrap();
    assert!(of(&bench, "d-1").await.is_empty());
    assert_eq!(standing(append(&bench, "d-1", &["x"], Expected::NoStream).await), Some(299));
    assert_eq!(kind(append(&bench, "d-1", &["e0"], Expected::Any).await), ErrorKind::Conflict);
    let next = append(&bench, "d-1", &["e300"], Expected::Revision(299)).await.unwrap();
    assert_eq!(next.first_revision, 300);
    assert_eq!(of(&bench, "d-1").await, ["e300"]);
    // Many truncated events are swept out of the lists; what is left is the same.
    for n in 0..5_000 {
        append(&bench, "d-3", &[&format!("s{n}")], Expected::Any).await.unwrap();
    }
    bench.one(Op::Truncate { stream: stream("d-3"), before: 4_999 }).await.unwrap();
    assert_eq!(all(&bench, EventScope::All).await, ["other", "e300", "s4999"]);
    assert_eq!(of(&bench, "d-3").await, ["s4999"]);
    bench.one(Op::Truncate { stream: stream("d-1"), before: 301 }).await.unwrap();
    assert_eq!(all(&bench, EventScope::All).await, ["other", "s4999"]);
}

#[tokio::test]
#[proves("E4")]
async fn the_newest_event_of_each_stream_tells_what_streams_there_are() {
    let bench = Bench::new();
    for (name, id) in [("a-1", "e1"), ("b-1", "e2"), ("a-2", "e3"), ("a-1", "e4"), ("ns/a-1", "e5")] {
        append(&bench, name, &[id], Expected::Any).await.unwrap();
    }
    let heads = |prefix: &str| EventScope::Heads { prefix: prefix.into() };
    assert_eq!(all(&bench, heads("")).await, ["e2", "e3", "e4", "e5"]);
    assert_eq!(all(&bench, heads("a-")).await, ["e3", "e4"]);
    assert_eq!(all(&bench, heads("ns/")).await, ["e5"]);
    let two = EventRead { limit: 2, ..EventRead::all_of(heads("")) };
    let slice = read(&bench, two.clone()).await;
    assert_eq!(ids(&slice), ["e2", "e3"]);
    assert_eq!(
        ids(&read(&bench, EventRead { from: slice.next.unwrap(), ..two.clone() }).await),
        ["e4", "e5"]
    );
    let backward = EventRead { from: ReadFrom::End, direction: Direction::Backward, ..two };
    assert_eq!(ids(&read(&bench, backward).await), ["e5", "e4"]);
}

#[tokio::test]
#[proves("E1", "G4")]
async fn an_append_and_everything_else_of_a_commit_happen_together_or_not_at_all() {
    let bench = Bench::queue(InletConfig::default()).await;
    bench.put("work").await;
    let held = bench.lease().await.unwrap();
    let enqueue = || {
        let message = Box::new(bench.message("next").build(&*bench.env).unwrap());
        Op::Enqueue { queue: name(), message }
    };
    let ops = |expected| {
        vec![
            op(&bench, "x-1", &["e0"], expected),
            enqueue(),
            Op::Settle { token: held.token.clone(), outcome: ack() },
        ]
    };
    let mut failing = ops(Expected::NoStream);
    failing.push(Op::Guard(Guarded::Stream { stream: stream("x-1"), expected: Expected::Revision(7) }));
    assert_eq!(standing(bench.commit(failing).await), Some(0));
    assert!(of(&bench, "x-1").await.is_empty());
    assert_eq!(bench.stats().await.books.leased, 1);
    bench.commit(ops(Expected::NoStream)).await.unwrap();
    let books = bench.stats().await.books;
    assert_eq!((of(&bench, "x-1").await.len(), books.leased, books.waiting, books.done), (1, 0, 1, 1));
}
