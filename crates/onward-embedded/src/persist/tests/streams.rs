//! Streams over restarts, power cuts and snapshots, on simulated disks.

use super::desk::SECTOR;
use super::sim::{SEGMENT_BYTES, Sim};
use onward_core::{
    Appended, Direction, Engine, ErrorKind, Event, EventQuery, EventRead, EventScope, Expected, Op, ReadFrom,
    Receipt, RecordedEvent, Result, StreamName, Tag,
};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, SimEnv};
use std::time::Duration;

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}

impl Sim {
    fn append(&self, to: &str, id: &str, expected: Expected) -> Result<Appended> {
        let tags = vec![Tag::try_from(format!("of:{to}")).unwrap()];
        let events = vec![Event { message: self.message(id, 300), tags }];
        let op = Op::Append { stream: name(to), events, expected, condition: None };
        match self.commit(vec![op])?.remove(0) {
            Receipt::Appended(appended) => Ok(appended),
            other => panic!("{other:?}"),
        }
    }

    fn events(&self, scope: EventScope, direction: Direction) -> Vec<RecordedEvent> {
        let from = if direction == Direction::Forward { ReadFrom::Start } else { ReadFrom::End };
        let mut ask = EventRead { from, direction, limit: 50, ..EventRead::all_of(scope) };
        let mut found = Vec::new();
        loop {
            let slice = self.drive(self.engine.read_events(ask.clone())).unwrap();
            found.extend(slice.events);
            match slice.next {
                Some(next) => ask.from = next,
                None => return found,
            }
        }
    }

    /// Everything that reads can tell of the streams.
    fn told(&self) -> Vec<Vec<RecordedEvent>> {
        let tag =
            |text: &str| EventQuery { tags: vec![Tag::try_from(text).unwrap()], ..EventQuery::default() };
        let scopes = [
            EventScope::All,
            EventScope::Stream(name("a-1")),
            EventScope::Stream(name("b-1")),
            EventScope::Category { namespace: "default".into(), category: "a".into() },
            EventScope::Query(tag("of:a-2")),
            EventScope::Query(EventQuery { types: vec!["sim.thing".into()], ..EventQuery::default() }),
            EventScope::Heads { prefix: String::new() },
        ];
        let both = |scope: EventScope| {
            [self.events(scope.clone(), Direction::Forward), self.events(scope, Direction::Backward)]
        };
        scopes.into_iter().flat_map(both).collect()
    }
}

fn filled(sim: &Sim) {
    for n in 0..400 {
        let to = ["a-1", "a-2", "b-1"][n % 3];
        sim.append(to, &format!("e{n}"), Expected::Any).unwrap();
        sim.env.advance(Duration::from_millis(3));
    }
    let op = Op::Truncate { stream: name("a-1"), before: 20 };
    sim.commit(vec![op]).unwrap();
}

fn restart(sim: Sim, disk: &SimDisk) -> (SimDisk, Sim) {
    let env = sim.env.clone();
    drop(sim);
    let disk = disk.crash(Loss::All);
    let sim = Sim::open(&disk, &env).unwrap();
    (disk, sim)
}

#[test]
#[proves("LOG1", "LOG11", "E1", "E2")]
fn a_restart_with_or_without_snapshot_keeps_every_event_where_it_stood() {
    for snapshot in [false, true] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        filled(&sim);
        if snapshot {
            sim.engine.snapshot().unwrap().unwrap();
            sim.append("a-2", "behind", Expected::Any).unwrap();
        }
        let told = sim.told();
        let (disk, sim) = restart(sim, &disk);
        assert_eq!(sim.told(), told, "snapshot: {snapshot}");
        // The repeat, the conflict and the next revision are as before.
        assert!(sim.append("b-1", "e2", Expected::NoStream).unwrap().duplicate);
        assert!(sim.append("b-1", "e398", Expected::Any).unwrap().duplicate);
        let refused = sim.append("b-1", "x", Expected::Revision(3)).unwrap_err();
        assert_eq!((refused.kind(), refused.revision()), (ErrorKind::Conflict, Some(132)));
        let next = sim.append("b-1", "new", Expected::Revision(132)).unwrap();
        assert_eq!(next.first_revision, 133);
        let told = sim.told();
        assert_eq!(restart(sim, &disk).1.told(), told);
    }
}

#[test]
#[proves("LOG2", "E4")]
fn only_durable_events_are_shown_and_a_power_cut_takes_none_that_was() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.append("a-1", "durable", Expected::Any).unwrap();
    let events = vec![Event { message: sim.message("lost", 300), tags: Vec::new() }];
    let op = Op::Append { stream: name("a-1"), events, expected: Expected::Any, condition: None };
    let mut waiting = Box::pin(sim.engine.commit(sim.engine.prepare(vec![op]).unwrap()));
    assert!(sim.poll(waiting.as_mut()).is_pending());
    let shown = |sim: &Sim| {
        let ids = sim.events(EventScope::All, Direction::Forward).into_iter();
        ids.map(|recorded| recorded.event.message.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&sim), ["durable"]);
    drop(waiting);
    let (_, sim) = restart(sim, &disk);
    assert_eq!(shown(&sim), ["durable"]);
    assert_eq!(sim.append("a-1", "lost", Expected::Revision(0)).unwrap().first_revision, 1);
}

#[test]
#[proves("LOG16")]
fn segments_of_truncated_events_are_given_back_and_those_of_kept_ones_never() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    let space = || sim.engine.inner().store().log.segments().len() as u64 * SEGMENT_BYTES;
    for n in 0..400 {
        sim.append("kept-1", &format!("k{n}"), Expected::Any).unwrap();
    }
    let kept = space();
    for n in 0..1_000 {
        sim.append("cut-1", &format!("c{n}"), Expected::Any).unwrap();
    }
    let told = sim.events(EventScope::Stream(name("kept-1")), Direction::Forward);
    let care = || {
        for _ in 0..6 {
            sim.engine.care().unwrap();
        }
    };
    care();
    assert!(space() > kept + 300_000, "{} bytes", space());
    sim.commit(vec![Op::Truncate { stream: name("cut-1"), before: 1_000 }]).unwrap();
    sim.flush();
    // A second snapshot lets go what the first one covers.
    for n in 0..6 {
        sim.append("kept-1", &format!("more{n}"), Expected::Any).unwrap();
        sim.engine.snapshot().unwrap();
        care();
    }
    assert!(space() < kept + 6 * SEGMENT_BYTES, "{} bytes instead of {kept}", space());
    assert_eq!(sim.events(EventScope::Stream(name("kept-1")), Direction::Forward)[..400], told);
    let (_, sim) = restart(sim, &disk);
    assert_eq!(sim.events(EventScope::Stream(name("kept-1")), Direction::Forward)[..400], told);
    assert!(sim.events(EventScope::Stream(name("cut-1")), Direction::Forward).is_empty());
}
