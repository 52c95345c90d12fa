//! What the checker finds in topics, subscriptions, streams and schedules.

use std::time::Duration;

use onward_core::{
    Appended, Expected, Inlet, LeaseToken, MessageId, Name, Position, ReadFrom, Sought as SoughtAs,
    Timestamp, tick_id,
};
use onward_proves::proves;
use onward_sim::history::{
    Addition, Answer, Contract, Delivered, EventMark, EventsRead, FaultKind, History, How, Left, Planned,
    SeenEvent, Sent, Settled, Sought, What, check,
};

use crate::story::{LEASE, Story, id};

fn topic() -> Name {
    "news".parse().unwrap()
}

fn reader() -> Inlet {
    Inlet::subscription(topic(), "mail").unwrap()
}

/// The history of a topic that keeps everything, of streams and of a schedule.
fn kinds(story: &Story, left: Option<Vec<(Inlet, MessageId, Left)>>) -> Vec<FaultKind> {
    let contract = Contract {
        leases_survive_death: true,
        ended_is_stale: true,
        keeping: [topic()].into(),
        ..Contract::default()
    };
    let left = left.map(|left| left.into_iter().map(|(inlet, id, left)| ((inlet, id), left)).collect());
    check(&History { left, ..story.recorder.history(contract) }).kinds()
}

fn publish(story: &mut Story, name: &str, position: u64, duplicate: bool) {
    let duplicate_of = duplicate.then(|| id(name));
    let sent =
        Sent { order_key: None, position: Some(Position(position)), duplicate_of, ..Story::sent(name) };
    story.add(1, Answer::Ok, None, What::Publish { topic: topic(), sent, takers: vec![reader()] });
}

fn token(name: &str, lease: u8) -> LeaseToken {
    LeaseToken { inlet: reader(), ..Story::token(name, lease) }
}

fn deliver(story: &mut Story, name: &str, lease: u8, replay: u32) {
    let (token, attempt, content) = (token(name, lease), 1, 1);
    let what = Delivered { token, attempt, lease: LEASE, content, replay, suspect: false };
    story.add(2, Answer::Ok, None, What::Deliver(what));
}

fn ack(story: &mut Story, name: &str, lease: u8) {
    let (token, not_before) = (token(name, lease), Duration::ZERO);
    let settled = Settled { token, how: How::Ack, not_before, dead: false, already: false };
    story.add(2, Answer::Ok, None, What::Settle(settled));
}

fn seek(story: &mut Story, next: u64, replay: u32) {
    let next = Some(Position(next));
    let answer = Some(SoughtAs { next, messages: 1, clipped: false, replay });
    story.add(1, Answer::Ok, None, What::Seek(Sought { inlet: reader(), again: true, answer }));
}

fn read_topic(story: &mut Story, messages: &[(&str, u64)]) {
    let messages = messages.iter().map(|(name, place)| (id(name), 1, Position(*place))).collect();
    story.add(1, Answer::Ok, None, What::ReadTopic { topic: topic(), messages });
}

#[test]
#[proves("AD13")]
fn a_published_message_is_kept_once_in_order_and_processed_by_each_subscription() {
    let mut story = Story::new();
    publish(&mut story, "a", 5, false);
    publish(&mut story, "b", 6, false);
    assert_eq!(kinds(&story, Some(Vec::new())), [FaultKind::Lost], "nobody got them");
    for (lease, name) in [(1, "a"), (2, "b")] {
        deliver(&mut story, name, lease, 0);
        ack(&mut story, name, lease);
    }
    read_topic(&mut story, &[("a", 5), ("b", 6)]);
    assert_eq!(kinds(&story, Some(Vec::new())), []);
    let mut gone = Story::new();
    publish(&mut gone, "a", 5, false);
    read_topic(&mut gone, &[]);
    assert_eq!(kinds(&gone, None), [FaultKind::Lost]);
    let mut twice = Story::new();
    publish(&mut twice, "a", 5, false);
    read_topic(&mut twice, &[("a", 5), ("a", 6)]);
    assert_eq!(kinds(&twice, None), [FaultKind::Duplicated]);
    let mut turned = Story::new();
    publish(&mut turned, "a", 5, false);
    publish(&mut turned, "b", 6, false);
    read_topic(&mut turned, &[("b", 6), ("a", 5)]);
    assert_eq!(kinds(&turned, None), [FaultKind::Revision]);
    let mut invented = Story::new();
    read_topic(&mut invented, &[("a", 5)]);
    assert_eq!(kinds(&invented, None), [FaultKind::Phantom]);
}

#[test]
#[proves("AD13")]
fn a_start_anew_ends_every_lease_and_brings_everything_again() {
    let story = |acked_again: bool| {
        let mut story = Story::new();
        publish(&mut story, "a", 5, false);
        deliver(&mut story, "a", 1, 0);
        ack(&mut story, "a", 1);
        seek(&mut story, 5, 1);
        if acked_again {
            deliver(&mut story, "a", 2, 1);
            ack(&mut story, "a", 2);
        }
        story
    };
    assert_eq!(kinds(&story(true), Some(Vec::new())), []);
    assert_eq!(kinds(&story(false), Some(Vec::new())), [FaultKind::Lost]);
    let mut stale = Story::new();
    publish(&mut stale, "a", 5, false);
    deliver(&mut stale, "a", 1, 0);
    seek(&mut stale, 5, 1);
    ack(&mut stale, "a", 1);
    assert_eq!(kinds(&stale, None), [FaultKind::StaleSettle]);
    let mut unbegun = Story::new();
    publish(&mut unbegun, "a", 5, false);
    deliver(&mut unbegun, "a", 1, 1);
    assert_eq!(kinds(&unbegun, None), [FaultKind::Phantom]);
    let mut again = Story::new();
    publish(&mut again, "a", 5, false);
    deliver(&mut again, "a", 1, 0);
    ack(&mut again, "a", 1);
    deliver(&mut again, "a", 2, 0);
    assert!(kinds(&again, None).contains(&FaultKind::AfterSettled));
}

fn append(story: &mut Story, names: &[&str], expected: Expected, first: u64, position: u64) {
    add_append(story, names, expected, None, Answer::Ok, Some((first, position)));
}

fn add_append(
    story: &mut Story,
    names: &[&str],
    expected: Expected,
    absent: Option<(String, Option<Position>)>,
    answer: Answer,
    got: Option<(u64, u64)>,
) {
    let marks = names.iter().map(|name| EventMark { id: id(name), content: 1, tags: vec!["red".into()] });
    let events: Vec<_> = marks.collect();
    let answered = got.map(|(first_revision, position)| Appended {
        first_revision,
        last_revision: first_revision + names.len() as u64 - 1,
        position: Position(position),
        duplicate: false,
    });
    let addition = Addition { stream: "s-1".into(), events, expected, absent, answer: answered };
    story.add(1, answer, None, What::Append(addition));
}

fn read(story: &mut Story, from: ReadFrom, events: &[(&str, u64, u64)]) {
    let seen = |(name, revision, position): &(&str, u64, u64)| SeenEvent {
        stream: "s-1".into(),
        revision: *revision,
        position: Position(*position),
        id: id(name),
        content: 1,
    };
    let events = events.iter().map(seen).collect();
    let read = EventsRead { stream: None, from, backward: false, next: None, events };
    story.add(1, Answer::Ok, None, What::ReadEvents(read));
}

#[test]
#[proves("AD13")]
fn appends_have_one_winner_each_and_rising_places() {
    let mut honest = Story::new();
    append(&mut honest, &["a", "b"], Expected::NoStream, 0, 6);
    append(&mut honest, &["c"], Expected::Revision(1), 2, 9);
    read(&mut honest, ReadFrom::Start, &[("a", 0, 5), ("b", 1, 6), ("c", 2, 9)]);
    assert_eq!(kinds(&honest, Some(Vec::new())), []);
    let mut both = Story::new();
    append(&mut both, &["a"], Expected::NoStream, 0, 5);
    append(&mut both, &["b"], Expected::NoStream, 0, 6);
    assert_eq!(kinds(&both, None), [FaultKind::TwoWinners]);
    let mut wrong = Story::new();
    append(&mut wrong, &["a"], Expected::Revision(4), 0, 5);
    assert_eq!(kinds(&wrong, None), [FaultKind::Revision]);
    let mut excluded = Story::new();
    append(&mut excluded, &["a"], Expected::Any, 0, 5);
    let absent = Some(("red".to_owned(), None));
    add_append(&mut excluded, &["b"], Expected::Any, absent, Answer::Ok, Some((1, 9)));
    read(&mut excluded, ReadFrom::Start, &[("a", 0, 5), ("b", 1, 9)]);
    assert_eq!(kinds(&excluded, None), [FaultKind::TwoWinners]);
}

#[test]
#[proves("AD13")]
fn a_reader_of_events_is_never_led_past_one_and_of_one_append_sees_all_or_nothing() {
    let mut lost = Story::new();
    append(&mut lost, &["a"], Expected::Any, 0, 5);
    read(&mut lost, ReadFrom::Start, &[]);
    assert_eq!(kinds(&lost, None), [FaultKind::Lost]);
    let mut skipped = Story::new();
    append(&mut skipped, &["a"], Expected::Any, 0, 5);
    add_append(&mut skipped, &["b"], Expected::Any, None, Answer::Unknown, None);
    append(&mut skipped, &["c"], Expected::Any, 2, 9);
    read(&mut skipped, ReadFrom::Start, &[("a", 0, 5), ("c", 2, 9)]);
    read(&mut skipped, ReadFrom::Start, &[("a", 0, 5), ("b", 1, 7), ("c", 2, 9)]);
    assert!(kinds(&skipped, None).contains(&FaultKind::Skipped));
    let mut torn = Story::new();
    add_append(&mut torn, &["a", "b"], Expected::Any, None, Answer::Unknown, None);
    read(&mut torn, ReadFrom::Start, &[("a", 0, 5)]);
    assert_eq!(kinds(&torn, Some(Vec::new())), [FaultKind::Torn]);
    let mut invented = Story::new();
    read(&mut invented, ReadFrom::Start, &[("a", 0, 5)]);
    assert_eq!(kinds(&invented, None), [FaultKind::Phantom]);
    let mut back = Story::new();
    append(&mut back, &["a"], Expected::Any, 0, 5);
    back.add(1, Answer::Ok, None, What::Truncate { stream: "s-1".into(), before: 1 });
    read(&mut back, ReadFrom::Start, &[("a", 0, 5)]);
    assert_eq!(kinds(&back, None), [FaultKind::AfterSettled]);
}

/// A schedule every ten seconds from the tenth on, and the ticks that were handed out: their numbers, when each came.
fn ticks(came: &[(u32, u64)]) -> Vec<FaultKind> {
    let (name, inlet): (Name, _) = ("every".parse().unwrap(), Inlet::queue("work").unwrap());
    let (every, first) = (Duration::from_secs(10), Timestamp::from_micros(1_000_000_000));
    let first_at = Duration::from_secs(10);
    let planned = Planned { name: name.clone(), inlet, every, first, first_at, content: 1, complete: true };
    let mut story = Story::new();
    story.add(1, Answer::Ok, None, What::Schedule(planned));
    for (lease, (number, at)) in (1..).zip(came) {
        let tick = tick_id(&name, first.plus(every * *number));
        story.now = Duration::from_secs(*at);
        story.deliver(tick.as_str(), lease, 1).ack(tick.as_str(), lease);
    }
    kinds(&story, Some(Vec::new()))
}

#[test]
#[proves("AD13", "T17")]
fn each_tick_comes_once_not_early_and_none_is_left_out() {
    assert_eq!(ticks(&[(0, 10), (1, 20), (2, 31)]), []);
    assert_eq!(ticks(&[(0, 10), (2, 31)]), [FaultKind::Tick]);
    assert_eq!(ticks(&[(0, 9)]), [FaultKind::Early]);
    assert!(ticks(&[(0, 10), (0, 25)]).contains(&FaultKind::AfterSettled));
}
