//! The power fails at every step: what was reported durable is there, nothing else is wrong.

use super::desk::{Desk, SECTOR, Sent, snapshots};
use onward_core::Result;
use onward_proves::proves;
use onward_sim::{Loss, SimDisk};
use std::collections::BTreeSet;

/// What was surely and what was perhaps there when the power failed.
#[derive(Debug, Default)]
struct Expected {
    /// Reported durable, and no end of it was ever written.
    surely: BTreeSet<u64>,
    /// Ever written, so that it may be there.
    perhaps: BTreeSet<u64>,
}

/// Much in few steps: segments roll, snapshots come, bodies move, segments go, two messages outlive them all.
fn work(desk: &Desk, from: u64, expected: &mut Expected) -> Result<()> {
    for round in 0..12 {
        let mut sent: Vec<Sent> = Vec::new();
        for number in 0..8 {
            let number = from + round * 8 + number;
            expected.perhaps.insert(number);
            sent.push(desk.enqueue(number, 700)?);
        }
        desk.sync()?;
        expected.surely.extend(sent.iter().map(|sent| sent.number));
        // The first of the first and the sixth round is never worked on.
        let kept = usize::from(round % 5 == 0);
        for sent in &sent[kept..] {
            expected.surely.remove(&sent.number);
            desk.finish(*sent)?;
        }
        desk.sync()?;
        expected.perhaps.retain(|number| !sent[kept..].iter().any(|sent| sent.number == *number));
        desk.step()?;
    }
    desk.snapshot()?;
    desk.step()?;
    Ok(())
}

fn check(disk: &SimDisk, expected: &Expected, told: &str) {
    let desk = Desk::open(disk).unwrap_or_else(|error| panic!("{told}: {error}"));
    let there = desk.there().unwrap_or_else(|error| panic!("{told}: {error}"));
    assert!(expected.surely.is_subset(&there), "{told}: lost {:?}", &expected.surely - &there);
    assert!(there.is_subset(&expected.perhaps), "{told}: came back {:?}", &there - &expected.perhaps);
}

fn steps_of_work() -> u64 {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    work(&desk, 0, &mut Expected::default()).unwrap();
    assert!(snapshots(&disk).len() == 2 && desk.segments()[0] > 1, "the work must roll, cover and release");
    disk.steps().len() as u64
}

#[test]
#[proves("LOG1", "LOG2", "LOG3", "LOG16", "T50")]
fn at_every_step_of_writing_moving_covering_and_releasing_a_power_cut_loses_nothing_durable() {
    let steps = steps_of_work();
    for stop in 1..=steps {
        for loss in [Loss::All, Loss::Nothing, Loss::Random(stop)] {
            let disk = SimDisk::new(SECTOR);
            disk.stop_at(stop);
            let mut expected = Expected::default();
            let outcome = Desk::open(&disk).and_then(|desk| work(&desk, 0, &mut expected));
            assert!(outcome.is_err() || stop == steps, "step {stop} of {steps} did not stop the work");
            check(&disk.crash(loss), &expected, &format!("power off at step {stop}, {loss:?}"));
        }
    }
}

#[test]
#[proves("LOG12")]
fn a_power_cut_during_recovery_again_and_again_ends_in_the_same_state() {
    let steps = steps_of_work();
    for stop in (1..=steps).step_by(7) {
        let disk = SimDisk::new(SECTOR);
        disk.stop_at(stop);
        let mut expected = Expected::default();
        let _ = Desk::open(&disk).and_then(|desk| work(&desk, 0, &mut expected));
        let mut disk = disk.crash(Loss::Random(stop));
        let first = Desk::open(&disk.fork()).unwrap().there().unwrap();
        // Each opening is cut one step later than the one before, until one comes through.
        for cut in 1.. {
            disk.stop_at(cut);
            let opened = Desk::open(&disk).and_then(|desk| desk.there());
            if let Ok(there) = opened {
                assert_eq!(there, first, "stop {stop}, cut {cut}");
                break;
            }
            assert!(cut < 500, "stop {stop}: the folder does not open: {opened:?}");
            disk = disk.crash(Loss::Random(stop * 1000 + cut));
        }
        check(&disk.crash(Loss::All), &expected, &format!("stop {stop}, after all cuts"));
    }
}

#[test]
#[proves("LOG12")]
fn each_opening_has_a_new_epoch_that_is_durable_before_anything_else() {
    let mut disk = SimDisk::new(SECTOR);
    for opening in 1..6 {
        let desk = Desk::open(&disk).unwrap();
        assert_eq!(desk.state.lock().epoch(), opening);
        drop(desk);
        disk = disk.crash(Loss::All);
    }
}
