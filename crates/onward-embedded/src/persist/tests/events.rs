//! Reading many events from the log, by one thread or by two.

use super::desk::SECTOR;
use super::sim::Sim;
use crate::StoredEvent;
use crate::persist::events::{HELPED_BYTES_MAX, HELPED_EVENTS, is_much};
use crate::persist::log_store::LogStore;
use onward_core::{Engine, ErrorKind, Event, EventRead, EventScope, Expected, Op, Result};
use onward_log::Position;
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, SimEnv};
use std::sync::Arc;

/// An engine that was opened anew, so that nothing is in memory, and where its events stand.
fn filled() -> (SimDisk, Sim, Vec<u64>) {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    for commit in 0..60 {
        // Small data that shares memory, data that does not, and an event without any.
        let sizes = [10 + commit, 300, 0, if commit % 20 == 0 { 5_000 } else { 900 }];
        let event = |(n, size): (usize, usize)| Event {
            message: sim.message(&format!("e{commit}-{n}"), size),
            tags: Vec::new(),
        };
        let events = sizes.into_iter().enumerate().map(event).collect();
        let stream = format!("of-{}", commit % 7).parse().unwrap();
        sim.commit(vec![Op::Append { stream, events, expected: Expected::Any, condition: None }]).unwrap();
    }
    drop(sim);
    let disk = disk.crash(Loss::All);
    let sim = Sim::open(&disk, &env).unwrap();
    let slice = sim.drive(sim.engine.read_events(EventRead::all_of(EventScope::All))).unwrap();
    let positions: Vec<u64> = slice.events.iter().map(|event| event.position.0).collect();
    assert_eq!(positions.len(), 240);
    (disk, sim, positions)
}

fn store(sim: &Sim) -> Arc<LogStore> {
    sim.engine.inner().store().clone()
}

/// The first `wanted` events, read by two threads; those before an error stay in `found`.
fn by_two(store: &LogStore, positions: &[u64], wanted: usize, found: &mut Vec<StoredEvent>) -> Result<()> {
    store.events_by_two(positions, &mut |event| {
        assert!(found.len() < wanted, "one more was shown than was wanted");
        found.push(event);
        found.len() < wanted
    })
}

fn by_one(store: &LogStore, positions: &[u64]) -> Vec<StoredEvent> {
    let mut found = Vec::new();
    let read = store.events_by_one(positions, &mut |event| {
        found.push(event);
        true
    });
    read.map(|()| found).unwrap()
}

#[test]
#[proves("E4")]
fn two_threads_show_the_same_events_in_the_same_order_as_one() {
    let (_disk, sim, forward) = filled();
    let backward: Vec<u64> = forward.iter().rev().copied().collect();
    for positions in [&forward, &backward, &forward[..2].to_vec(), &forward[..1].to_vec(), &Vec::new()] {
        let one = by_one(&store(&sim), positions);
        let mut two = Vec::new();
        by_two(&store(&sim), positions, usize::MAX, &mut two).unwrap();
        assert!(one == two && one.len() == positions.len());
        assert!(one.iter().map(|event| event.position).eq(positions.iter().copied()));
    }
    let all = by_one(&store(&sim), &forward);
    for wanted in [1, 119, 120, 121, 239, 240] {
        let mut two = Vec::new();
        by_two(&store(&sim), &forward, wanted, &mut two).unwrap();
        assert!(two == all[..wanted], "{wanted} wanted");
    }
}

#[test]
#[proves("LOG8")]
fn damage_in_either_half_is_told_behind_the_events_before_it_and_only_to_who_comes_so_far() {
    let (disk, sim, positions) = filled();
    for damaged in [0, 50, 119, 120, 200, 239] {
        let place = Position(positions[damaged]);
        let file = format!("{:010}.seg", place.segment());
        disk.flip(&file, place.offset() + 30, 3);
        let mut found = Vec::new();
        let error = by_two(&store(&sim), &positions, usize::MAX, &mut found).unwrap_err();
        assert_eq!((error.kind(), found.len()), (ErrorKind::Corrupt, damaged), "{error}");
        assert!(error.to_string().contains(&place.to_string()), "{error}");
        if damaged > 0 {
            by_two(&store(&sim), &positions, damaged, &mut Vec::new()).unwrap();
        }
        disk.flip(&file, place.offset() + 30, 3);
    }
}

#[test]
fn only_reads_of_many_events_that_lie_near_each_other_take_a_second_thread() {
    let many = |apart: u64| (0..HELPED_EVENTS as u64).map(|n| n * apart).collect::<Vec<_>>();
    assert!(is_much(&many(300)));
    assert!(!is_much(&many(300)[1..]));
    assert!(!is_much(&many(HELPED_BYTES_MAX / (HELPED_EVENTS as u64 - 1) + 1)));
    assert!(!is_much(&[]));
}
