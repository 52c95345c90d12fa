//! Disks that fail, fill up, and write in pieces.

use super::desk::SECTOR;
use super::sim::Sim;
use onward_core::{Engine, ErrorKind, MessageState, RetryHint};
use onward_proves::proves;
use onward_sim::{Fault, Loss, SimDisk, SimEnv};
use std::{task::Poll, time::Duration};

#[test]
#[proves("LOG4", "T51", "T57", "L3")]
fn a_failed_write_or_sync_poisons_the_log_and_only_reopening_recovers() {
    for sync in [true, false] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        sim.enqueue("before").unwrap();
        assert!(sim.engine.health().writable && sim.engine.health().problems.is_empty());
        let calls = disk.calls();
        let fault = if sync { Fault::FailSync(calls.syncs + 1) } else { Fault::FailWrite(calls.writes + 1) };
        disk.inject(fault);

        let lost = sim.enqueue("lost").unwrap_err();
        assert_eq!((lost.kind(), lost.retry_hint()), (ErrorKind::Unavailable, RetryHint::Unknown), "{lost}");
        let health = sim.engine.health();
        assert!(!health.writable && health.readable, "{health:?}");
        assert!(health.problems[0].mend.contains("open"), "{health:?}");

        let (calls, refused) = (disk.calls(), sim.enqueue("after").unwrap_err());
        assert_eq!(refused.kind(), ErrorKind::Poisoned, "{refused}");
        sim.flush();
        assert_eq!(
            (disk.calls().writes, disk.calls().syncs),
            (calls.writes, calls.syncs),
            "it was tried again"
        );
        assert!(sim.views(MessageState::Waiting).iter().any(|view| view.message.id.as_str() == "before"));

        drop(sim);
        let sim = Sim::open(&disk.crash(Loss::Random(3)), &env).unwrap();
        assert!(sim.engine.health().writable);
        // Its outcome was unknown: repeated with the same id it is there once.
        sim.enqueue("lost").unwrap();
        let there = sim.there();
        assert!(there.contains("before") && there.contains("lost") && !there.contains("after"), "{there:?}");
    }
}

#[test]
#[proves("LOG5", "T57", "H4")]
fn a_full_disk_refuses_new_work_lets_work_end_and_goes_on_when_there_is_space() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.enqueue("m0").unwrap();
    disk.limit_space(Some(disk.used()));
    let mut accepted = 1;
    let refused = loop {
        match sim.enqueue(&format!("m{accepted}")) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 1000, "the disk never got full");
    };
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    assert!(matches!(refused.retry_hint(), RetryHint::After(_)));
    assert!(!sim.engine.health().problems.is_empty(), "health says nothing of it");

    assert_eq!(
        sim.views(MessageState::Waiting).len(),
        accepted,
        "what is there can be read, no more and no less"
    );
    for n in 0..accepted / 2 {
        let delivery = sim.lease().unwrap().unwrap();
        sim.ack(&delivery)
            .unwrap_or_else(|error| panic!("{n}: {error} {:?}", sim.engine.inner().store().log.segments()));
        // As the folder's own thread does: what was used of the reserve comes back.
        sim.engine.care().unwrap();
    }
    assert_eq!(sim.there().len(), accepted - accepted / 2);

    disk.limit_space(None);
    sim.flush();
    sim.enqueue("again").unwrap();
    assert!(sim.engine.health().problems.is_empty(), "{:?}", sim.engine.health());
    drop(sim);
    let sim = Sim::open(&disk.crash(Loss::All), &env).unwrap();
    assert_eq!(sim.there().len(), accepted - accepted / 2 + 1);
}

#[test]
#[proves("LOG6")]
fn short_and_interrupted_writes_and_reads_change_nothing() {
    for number in 1..40 {
        for fault in
            [Fault::ShortWrite(number, 100), Fault::ShortWrite(number, 700), Fault::InterruptWrite(number)]
        {
            let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
            disk.inject(fault);
            disk.inject(Fault::InterruptRead(number));
            let sim = Sim::open(&disk, &env).unwrap();
            (0..10).for_each(|n| drop(sim.enqueue(&format!("m{n}")).unwrap()));
            sim.engine.snapshot().unwrap();
            drop(sim);
            let sim = Sim::open(&disk.crash(Loss::All), &env).unwrap();
            assert_eq!(sim.there().len(), 10, "{fault:?}");
        }
    }
}

#[test]
#[proves("LOG6", "LOG2")]
fn a_last_group_torn_at_every_byte_is_cut_off_and_nothing_else() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.enqueue("whole").unwrap();
    let before = disk.step_count();
    sim.enqueue("torn").unwrap();
    let write = disk.steps().into_iter().skip(before as usize).find(|step| step.what == "write").unwrap();
    for keep in 0..write.bytes {
        let torn = disk.fork();
        let cut = vec![0; (write.bytes - keep) as usize];
        torn.overwrite(&write.file, write.offset + keep, &cut);
        let sim = Sim::open(&torn, &env).unwrap();
        let there = sim.there();
        assert!(there.contains("whole"), "kept {keep} of {}", write.bytes);
        assert!(!there.contains("torn") || keep > 300, "kept {keep}: {there:?}");
    }
}

#[test]
#[proves("LOG17")]
fn behind_a_group_under_way_an_attempt_is_not_handed_out_before_it_is_written() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.enqueue("m").unwrap();
    let begin = || sim.engine.inner().store().log.begin().unwrap().unwrap();
    let ops = sim.engine.prepare(vec![sim.enqueue_op("n", 300)]).unwrap();
    let mut commit = sim.engine.commit(ops);
    assert!(sim.poll(commit.as_mut()).is_pending());
    let before = begin();
    let mut lease = sim.engine.lease(sim.request());
    assert!(sim.poll(lease.as_mut()).is_pending(), "handed out before the attempt was written");
    before.write().unwrap();
    assert!(sim.poll(lease.as_mut()).is_pending(), "handed out before the attempt was written");
    let attempt = begin();
    attempt.write().unwrap();
    // Written, not synced: it may be handed out now.
    assert!(sim.poll(lease.as_mut()).is_ready());
    assert!(sim.poll(commit.as_mut()).is_pending(), "answered before it was synced");
}

#[test]
#[proves("LOG17", "T6", "H5")]
fn an_attempt_survives_the_process_and_is_never_invented() {
    for (loss, attempts) in [(Loss::Nothing, 1), (Loss::All, 0)] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        sim.enqueue("m").unwrap();
        let syncs = || disk.steps().iter().filter(|step| step.what == "sync").count();
        let before = syncs();
        let given = sim.poll(sim.engine.lease(sim.request()).as_mut());
        assert!(matches!(given, Poll::Ready(Ok(given)) if given.len() == 1), "it waits for the disk");
        assert_eq!(syncs(), before, "it was synced, not only written");
        let sim = Sim::open(&disk.crash(loss), &env).unwrap();
        let view = sim.there().len();
        assert_eq!(view, 1);
        let leased = sim.views(MessageState::Leased).len();
        assert_eq!(leased, attempts, "{loss:?}");
        sim.pass(Duration::from_secs(31));
        let delivery = sim.lease().unwrap().unwrap_or_else(|| {
            sim.pass(Duration::from_secs(400));
            sim.lease().unwrap().unwrap()
        });
        assert_eq!(delivery.attempt as usize, attempts + 1, "{loss:?}");
    }
}
