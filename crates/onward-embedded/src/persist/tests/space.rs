//! Space comes back: segments go once nobody needs them, and what outlives its segment is copied forward.

use super::desk::{Desk, SECTOR, SEGMENT_BYTES, Sent, snapshots};
use super::sim::{self, Sim};
use onward_core::{CauseKind, Engine, Failure, Outcome};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, SimEnv};

/// Enqueues `count` messages of about 700 bytes, durable.
fn fill(desk: &Desk, from: u64, count: u64) -> Vec<Sent> {
    let sent = (from..from + count).map(|number| desk.enqueue(number, 700).unwrap()).collect();
    desk.sync().unwrap();
    sent
}

fn drain(desk: &Desk, sent: &[Sent]) {
    sent.iter().for_each(|sent| desk.finish(*sent).unwrap());
    desk.sync().unwrap();
}

/// Steps until nothing more is to be done.
fn settle(desk: &Desk) {
    for _ in 0..20 {
        desk.step().unwrap();
        desk.sync().unwrap();
    }
}

#[test]
#[proves("LOG16")]
fn a_drained_queue_gives_its_segments_back() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let sent = fill(&desk, 0, 200);
    let full = desk.segments().len();
    assert!(full >= 10, "{full} segments");
    drain(&desk, &sent);
    settle(&desk);
    assert!(desk.segments().len() <= 3, "{:?} are left of {full}", desk.segments());
    assert!(disk.used() < 12 * SEGMENT_BYTES + (2 << 20), "{} bytes are used", disk.used());
}

#[test]
#[proves("LOG16")]
fn one_message_that_nobody_takes_does_not_pin_its_segment() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let sent = fill(&desk, 0, 200);
    let (kept, others) = sent.split_first().unwrap();
    drain(&desk, others);
    settle(&desk);
    assert!(desk.segments()[0] > 5, "{:?}", desk.segments());
    assert_eq!(desk.there().unwrap(), [kept.number].into());
    drop(desk);
    let again = Desk::open(&disk.crash(Loss::All)).unwrap();
    assert_eq!(again.there().unwrap(), [kept.number].into());
    drain(&again, &[*kept]);
    assert_eq!(again.there().unwrap(), [].into());
}

#[test]
#[proves("LOG16")]
fn a_full_segment_of_waiting_messages_is_left_alone() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    fill(&desk, 0, 100);
    let before = desk.segments();
    settle(&desk);
    assert_eq!(desk.segments(), before);
}

#[test]
#[proves("LOG16", "LOG1")]
fn a_segment_whose_last_acknowledgement_is_not_durable_stays() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let sent = fill(&desk, 0, 60);
    drain(&desk, &sent[1..]);
    desk.snapshot().unwrap();
    desk.enqueue(1000, 100).unwrap();
    desk.snapshot().unwrap();
    // Acknowledged, but only in memory: a power cut brings the message back, and its body must be there.
    desk.finish(sent[0]).unwrap();
    desk.step().unwrap();
    drop(desk);
    let again = Desk::open(&disk.crash(Loss::All)).unwrap();
    assert!(again.there().unwrap().contains(&sent[0].number));
}

#[test]
#[proves("LOG5", "LOG16")]
fn a_full_disk_can_be_emptied_by_draining() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let mut sent = fill(&desk, 0, 40);
    desk.snapshot().unwrap();
    desk.enqueue(5000, 10).unwrap();
    desk.snapshot().unwrap();
    disk.limit_space(Some(disk.used()));
    // Until even the segments made ahead are filled.
    sent.extend((40..400).map_while(|number| {
        let sent = desk.enqueue(number, 700);
        desk.sync().unwrap();
        sent.ok()
    }));
    assert!(sent.len() < 400, "the disk never got full");
    // The test's own enqueue may use the reserve, so a little is given back first for the acknowledgements.
    disk.limit_space(Some(disk.used() + 2 * SEGMENT_BYTES));
    desk.sync().unwrap();
    drain(&desk, &sent);
    disk.limit_space(Some(disk.used()));
    settle(&desk);
    assert!(desk.segments().len() <= 4, "{:?}", desk.segments());
    fill(&desk, 10_000, 20);
    assert_eq!(snapshots(&disk).len(), 2);
}

#[test]
#[proves("LOG5", "LOG16")]
fn a_full_disk_gives_space_back_although_each_segment_has_something_that_nobody_takes() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.enqueue("m0").unwrap();
    disk.limit_space(Some(disk.used() + 20 * sim::SEGMENT_BYTES));
    let mut accepted = 1;
    while sim.enqueue(&format!("m{accepted}")).is_ok() {
        accepted += 1;
        assert!(accepted < 5000, "the disk never got full");
    }
    let mut kept = 0;
    for n in 0..accepted {
        let delivery = sim.lease().unwrap().unwrap();
        if n % 10 == 0 {
            let failure = Failure::new(CauseKind::Permanent, "broken");
            sim.settle(delivery.token, Outcome::Reject { failure }).unwrap();
            kept += 1;
        } else {
            sim.ack(&delivery).unwrap();
        }
        // As the folder's own thread does, which finds out by itself when one step was in vain.
        let _ = sim.engine.care();
        sim.flush();
    }
    for _ in 0..40 {
        let _ = sim.engine.care();
        sim.flush();
    }
    assert_eq!(sim.there().len(), kept, "dead letters are kept");
    for n in 0..accepted / 2 {
        sim.enqueue(&format!("again {n}")).unwrap_or_else(|error| panic!("{n} of {accepted}: {error}"));
    }
    assert!(sim.engine.health().writable);
}
