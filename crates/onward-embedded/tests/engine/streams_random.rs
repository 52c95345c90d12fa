//! Random appends and truncations: every read shows what a plain list would, and the state is a pure function of its
//! facts.

use crate::recording::Recording;
use crate::streams::stream;
use crate::support::*;
use onward_core::*;
use onward_embedded::{Embedded, Options, Piece, State};
use onward_proves::proves;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append { to: u8, events: Vec<(u8, u8)>, exact: bool, again: bool },
    Truncate { which: u8, keep: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let events = prop::collection::vec((0u8..3, 0u8..4), 1..40);
    prop_oneof![
        8 => (0u8..4, events, any::<bool>(), any::<bool>())
            .prop_map(|(to, events, exact, again)| Step::Append { to, events, exact, again }),
        1 => (0u8..4, 0u8..60).prop_map(|(which, keep)| Step::Truncate { which, keep }),
    ]
}

/// What was appended, and whether it is gone.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    stream: String,
    revision: u64,
    id: String,
    kind: String,
    tags: Vec<Tag>,
    gone: bool,
}

fn name_of(number: u8) -> String {
    format!("{}-{number}", ["a", "b"][usize::from(number % 2)])
}

fn wait<T>(future: impl std::future::Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn shown(engine: &Embedded<Recording>, scope: EventScope, backward: bool) -> Vec<String> {
    let mut read = EventRead { limit: 13, ..EventRead::all_of(scope) };
    if backward {
        (read.from, read.direction) = (ReadFrom::End, Direction::Backward);
    }
    let mut seen = Vec::new();
    loop {
        let slice = wait(engine.read_events(read.clone())).unwrap();
        let line = |r: &RecordedEvent| format!("{} {} {}", r.stream, r.revision, r.event.message.id);
        seen.extend(slice.events.iter().map(line));
        match slice.next {
            Some(next) => read.from = next,
            None => return seen,
        }
    }
}

fn pieces(state: &State) -> Vec<Piece> {
    let mut all = Vec::new();
    state.pieces(&mut |piece| all.push(piece));
    all
}

fn run(steps: Vec<Step>) {
    let clock = HandClock::shared();
    let env = env(&clock);
    let options = Options { manual_clock: true, ..Options::default() };
    let engine = Embedded::open(
        env.clone(),
        Recording::default(),
        State::new(),
        options,
        "memory",
        AtomicScope::Store,
    )
    .unwrap();
    let mut known: Vec<Known> = Vec::new();
    let mut next = [0u64; 4];
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Append { to, events, exact, again } => {
                let name = name_of(to);
                let before = next[usize::from(to)];
                let expected = match (exact, before) {
                    (false, _) => Expected::Any,
                    (true, 0) => Expected::NoStream,
                    (true, next) => Expected::Revision(next - 1),
                };
                let mut list = Vec::new();
                for (index, (kind, tag)) in events.into_iter().enumerate() {
                    let id = format!("e{number}.{index}");
                    let kind = format!("k{kind}");
                    let message =
                        Message::builder(&kind).id(id.as_str().try_into().unwrap()).build(&*env).unwrap();
                    let tags = vec![Tag::try_from(format!("t{tag}")).unwrap()];
                    let revision = before + index as u64;
                    known.push(Known {
                        stream: name.clone(),
                        revision,
                        id,
                        kind,
                        tags: tags.clone(),
                        gone: false,
                    });
                    list.push(Event { message, tags });
                    next[usize::from(to)] += 1;
                }
                let op = Op::Append { stream: stream(&name), events: list, expected, condition: None };
                for repeat in 0..=u8::from(again) {
                    let prepared = engine.prepare(vec![op.clone()]).unwrap();
                    let receipt = wait(engine.commit(prepared)).unwrap().remove(0);
                    let Receipt::Appended(appended) = receipt else { panic!("{receipt:?}") };
                    assert_eq!((appended.first_revision, appended.duplicate), (before, repeat > 0));
                }
            }
            Step::Truncate { which, keep } => {
                let before = next[usize::from(which)].saturating_sub(u64::from(keep));
                let op = Op::Truncate { stream: stream(&name_of(which)), before };
                let done = wait(engine.commit(engine.prepare(vec![op]).unwrap()));
                assert_eq!(done.is_ok(), next[usize::from(which)] > 0);
                let name = name_of(which);
                known
                    .iter_mut()
                    .filter(|k| k.stream == name && k.revision < before)
                    .for_each(|k| k.gone = true);
            }
        }
        clock.advance(millis(10));
    }
    check(&engine, &known);
    let live = engine.with_state(pieces);
    let mut replayed = State::new();
    for (fact, position, time) in engine.store().facts.lock().iter() {
        replayed.apply(fact, *position, *time);
    }
    assert_eq!(pieces(&replayed), live, "the replayed facts make another state");
    let mut restored = State::new();
    live.iter().cloned().for_each(|piece| restored.restore(piece));
    assert_eq!(pieces(&restored), live, "the restored snapshot is another state");
    let mut long_lived = Vec::new();
    restored.long_lived(0..u64::MAX, &mut |position| long_lived.push(position));
    assert_eq!(long_lived.len(), known.iter().filter(|k| !k.gone).count());
}

fn check(engine: &Embedded<Recording>, known: &[Known]) {
    let tag = |text: &str| Tag::try_from(text).unwrap();
    let query = |types: &[&str], tags: &[&str]| EventQuery {
        types: types.iter().map(|kind| (*kind).into()).collect(),
        tags: tags.iter().map(|text| tag(text)).collect(),
    };
    let queries =
        [query(&["k1"], &[]), query(&[], &["t1"]), query(&["k0", "k2"], &["t3"]), query(&[], &["t1", "t2"])];
    type Keep<'a> = Box<dyn Fn(&Known) -> bool + 'a>;
    let mut scopes: Vec<(EventScope, Keep<'_>)> = vec![(EventScope::All, Box::new(|_| true))];
    for query in &queries {
        let keep = move |k: &Known| query.matches(&k.kind, &k.tags);
        scopes.push((EventScope::Query(query.clone()), Box::new(keep)));
    }
    for number in 0..4 {
        let keep = move |k: &Known| k.stream == name_of(number);
        scopes.push((EventScope::Stream(stream(&name_of(number))), Box::new(keep)));
    }
    let category = EventScope::Category { namespace: "default".into(), category: "a".into() };
    scopes.push((category, Box::new(|k| k.stream.starts_with("a-"))));
    for (scope, keep) in scopes {
        let mut expected: Vec<String> = known
            .iter()
            .filter(|k| !k.gone && keep(k))
            .map(|k| format!("{} {} {}", k.stream, k.revision, k.id))
            .collect();
        assert_eq!(shown(engine, scope.clone(), false), expected, "{scope:?}");
        expected.reverse();
        assert_eq!(shown(engine, scope.clone(), true), expected, "{scope:?} backward");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[proves("E4", "LOG17")]
    fn random_appends_are_read_as_a_plain_list_and_replay_to_the_same_state(steps in prop::collection::vec(step(), 1..40)) {
        run(steps);
    }
}
