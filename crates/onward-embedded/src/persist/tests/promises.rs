//! What an answer promises: durable before it is given, whole commits, one sync for many, the mode told.

use super::desk::SECTOR;
use super::sim::{Sim, queue};
use onward_core::{Durability, Engine, Error, MessageState, Op, Outcome, Receipt, Result, RetryHint};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, SimEnv};
use std::{collections::BTreeSet, pin::pin, task::Poll};

/// What was asked for and what was answered when the power failed.
#[derive(Debug, Default)]
struct Told {
    sent: BTreeSet<String>,
    accepted: BTreeSet<String>,
    settling: BTreeSet<String>,
    settled: BTreeSet<String>,
}

/// Commits of two messages each; the older of each pair is worked on.
fn work(sim: &Sim, told: &mut Told) -> Result<()> {
    for round in 0..10 {
        let pair = [format!("a{round}"), format!("b{round}")];
        told.sent.extend(pair.clone());
        sim.commit(pair.iter().map(|id| sim.enqueue_op(id, 700)).collect())?;
        told.accepted.extend(pair);
        let Some(delivery) = sim.lease()? else { panic!("nothing to do in round {round}") };
        let id = delivery.message.id.to_string();
        told.settling.insert(id.clone());
        sim.ack(&delivery)?;
        told.settled.insert(id);
        sim.engine.care()?;
    }
    Ok(())
}

fn check(disk: &SimDisk, env: &SimEnv, told: &Told, when: &str) {
    let sim = Sim::open(disk, env).unwrap_or_else(|error| panic!("{when}: {error}"));
    let there = sim.there();
    for id in &told.accepted {
        assert!(there.contains(id) || told.settling.contains(id), "{when}: accepted {id} is lost");
    }
    for id in &there {
        assert!(told.sent.contains(id), "{when}: {id} was never sent");
        assert!(!told.settled.contains(id), "{when}: settled {id} came back");
    }
    for round in 0..10 {
        let [a, b] = [format!("a{round}"), format!("b{round}")];
        let half = there.contains(&a) != there.contains(&b);
        let touched = told.settling.contains(&a) || told.settling.contains(&b);
        assert!(!half || touched, "{when}: half of the commit of {a} and {b} is there");
    }
    let books = sim.drive(sim.engine.stats(vec![])).unwrap();
    assert!(books.iter().all(|stats| stats.books.balance()), "{when}: {books:?}");
}

#[test]
#[proves("LOG1", "LOG2", "LOG3", "T50", "G1", "A2")]
fn a_power_cut_at_any_step_loses_no_answered_commit_and_splits_none() {
    let env = SimEnv::new(1);
    let disk = SimDisk::new(SECTOR);
    work(&Sim::open(&disk, &env).unwrap(), &mut Told::default()).unwrap();
    let steps = disk.step_count();
    for stop in 1..=steps {
        for loss in [Loss::All, Loss::Random(stop)] {
            let (disk, env, mut told) = (SimDisk::new(SECTOR), SimEnv::new(1), Told::default());
            disk.stop_at(stop);
            let outcome = Sim::open(&disk, &env).and_then(|sim| work(&sim, &mut told));
            assert!(outcome.is_err() || stop == steps, "step {stop} of {steps} did not stop the work");
            check(&disk.crash(loss), &env, &told, &format!("step {stop}, {loss:?}"));
        }
    }
}

#[test]
#[proves("LOG20")]
fn the_same_seed_writes_the_same_bytes_in_the_same_order() {
    let run = || {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(7));
        let sim = Sim::open(&disk, &env).unwrap();
        work(&sim, &mut Told::default()).unwrap();
        drop(sim);
        let names: BTreeSet<String> = disk.steps().into_iter().map(|step| step.file).collect();
        (disk.steps(), names.iter().map(|name| disk.contents(name)).collect::<Vec<_>>())
    };
    let first = run();
    assert!(first.0.len() > 50);
    assert_eq!(first, run());
}

#[test]
#[proves("LOG15", "T50")]
fn many_commits_share_one_sync_and_are_answered_in_the_order_of_the_log() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.enqueue("first").unwrap();
    let ops = |n: u32| {
        let mut ops = vec![sim.enqueue_op(&format!("m{n}"), 50)];
        if n == 7 {
            // One that fails: nobody leased this.
            let token = onward_core::LeaseToken {
                inlet: queue(),
                id: "first".try_into().unwrap(),
                handle: bytes::Bytes::from_static(b"x"),
            };
            ops.push(Op::Settle { token, outcome: Outcome::Ack { result: None } });
        }
        sim.engine.prepare(ops).unwrap()
    };
    let mut all: Vec<_> = (0..64).map(|n| sim.engine.commit(ops(n))).collect();
    let before = disk.calls().syncs;
    let early = all.iter_mut().map(|future| sim.poll(future.as_mut())).filter(Poll::is_ready).count();
    assert_eq!(early, 0, "answered before anything was synced");
    sim.engine.inner().store().log.step().unwrap();
    assert_eq!(disk.calls().syncs - before, 1);
    let mut positions = Vec::new();
    for (n, future) in all.iter_mut().enumerate() {
        match sim.poll(future.as_mut()) {
            Poll::Ready(Ok(receipts)) => match &receipts[0] {
                Receipt::Accepted(accepted) => positions.push(accepted.position.unwrap()),
                other => panic!("{other:?}"),
            },
            other => assert!(n == 7 && matches!(other, Poll::Ready(Err(_))), "{n}: {other:?}"),
        }
    }
    assert_eq!(positions.len(), 63);
    assert!(positions.is_sorted());
}

#[test]
#[proves("LOG22", "T51")]
fn a_dropped_commit_is_there_whole_or_not_at_all_and_a_repeat_makes_one_of_it() {
    for written in [false, true] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        sim.enqueue("first").unwrap();
        {
            let ops = vec![sim.enqueue_op("a", 300), sim.enqueue_op("b", 300)];
            let mut commit = sim.engine.commit(sim.engine.prepare(ops).unwrap());
            assert!(sim.poll(commit.as_mut()).is_pending());
        }
        if written {
            sim.flush();
        }
        drop(sim);
        let sim = Sim::open(&disk.crash(Loss::All), &env).unwrap();
        let there = sim.there();
        assert_eq!((there.contains("a"), there.contains("b")), (written, written));
        assert_eq!(sim.enqueue_again("a").duplicate, written);
        assert!(sim.there().contains("a"));
        assert_eq!(sim.views(MessageState::Waiting).len(), if written { 3 } else { 2 });
    }
}

impl Sim {
    fn enqueue_again(&self, id: &str) -> onward_core::Accepted {
        self.enqueue(id).unwrap()
    }
}

#[test]
#[proves("T61", "AD1", "M10")]
fn the_mode_is_told_in_capabilities_receipts_and_health_and_holds() {
    for durability in [Durability::Fsync, Durability::OsBuffer] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open_as(&disk, &env, durability).unwrap();
        assert_eq!(sim.engine.capabilities().durability, durability);
        assert_eq!(sim.engine.health().durability, durability);
        assert_eq!(sim.enqueue("a").unwrap().durability, durability);

        let ops = sim.engine.prepare(vec![sim.enqueue_op("b", 300)]).unwrap();
        let mut commit = pin!(sim.engine.commit(ops));
        assert!(sim.poll(commit.as_mut()).is_pending(), "answered before it was written");
        let group = sim.engine.inner().store().log.begin().unwrap().unwrap();
        group.write().unwrap();
        // Written and not synced: enough for the one, not for the other.
        assert_eq!(sim.poll(commit.as_mut()).is_ready(), durability == Durability::OsBuffer);
        group.sync().unwrap();
        if durability == Durability::Fsync {
            assert!(sim.poll(commit.as_mut()).is_ready());
        }
    }
}

#[test]
#[proves("T61", "M10")]
fn a_durability_that_a_folder_can_not_have_is_refused() {
    for durability in [Durability::Memory, Durability::QuorumFsync] {
        let error: Error = Sim::open_as(&SimDisk::new(SECTOR), &SimEnv::new(1), durability).unwrap_err();
        assert_eq!(error.kind(), onward_core::ErrorKind::Unsupported);
        assert_eq!(error.retry_hint(), RetryHint::Never);
    }
}
