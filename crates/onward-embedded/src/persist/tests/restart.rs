//! What a restart keeps: leases with their full term, delays, tokens that stay stale; and clocks that jump.

use super::desk::SECTOR;
use super::sim::Sim;
use onward_core::{
    CauseKind, Curve, Engine, ErrorKind, Failure, InletConfig, Jitter, MessageState, Outcome, RetryDelay,
    RetryPolicy,
};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk, SimEnv};
use std::time::Duration;

const HOUR_US: i64 = 3_600_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// Leases of 30 s; a failed message waits 60 s.
fn rules() -> InletConfig {
    let retry = RetryPolicy {
        curve: Curve::Fixed { every_ms: 60_000 },
        jitter: Jitter::None,
        ..RetryPolicy::default()
    };
    InletConfig { retry, ..InletConfig::default() }
}

fn restart(sim: Sim, disk: &SimDisk) -> (SimDisk, Sim) {
    let env = sim.env.clone();
    drop(sim);
    let disk = disk.crash(Loss::All);
    let sim = Sim::open(&disk, &env).unwrap();
    (disk, sim)
}

#[test]
#[proves("LOG18")]
fn a_wall_clock_that_jumps_frees_no_lease_early_and_starts_nothing_early() {
    for jump in [HOUR_US, -HOUR_US] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        sim.declare(rules());
        sim.enqueue("m").unwrap();
        let held = sim.lease().unwrap().unwrap();
        sim.env.step_wall(jump);
        sim.pass(29 * SECOND);
        assert!(sim.lease().unwrap().is_none(), "jump {jump}: the lease was freed early");
        sim.ack(&held).unwrap();

        sim.env.right_wall();
        sim.enqueue("d").unwrap();
        let delivery = sim.lease().unwrap().unwrap();
        let failure = Failure::new(CauseKind::Transient, "no");
        sim.settle(delivery.token, Outcome::Retry { delay: RetryDelay::Policy, failure }).unwrap();
        sim.env.step_wall(jump);
        sim.pass(59 * SECOND);
        assert!(sim.lease().unwrap().is_none(), "jump {jump}: a delayed message came early");
        sim.pass(2 * SECOND);
        assert_eq!(sim.lease().unwrap().unwrap().attempt, 2);
    }
}

#[test]
#[proves("LOG18", "B7")]
fn after_a_restart_each_live_lease_has_its_full_term_again() {
    for snapshot in [false, true] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        sim.declare(rules());
        sim.enqueue("m").unwrap();
        let held = sim.lease().unwrap().unwrap();
        sim.flush();
        if snapshot {
            sim.engine.snapshot().unwrap().unwrap();
        }
        sim.pass(25 * SECOND);
        let (_, sim) = restart(sim, &disk);
        sim.pass(29 * SECOND);
        assert!(sim.lease().unwrap().is_none(), "the lease ended early");
        sim.ack(&held).unwrap();
        assert!(sim.there().is_empty());
    }
}

#[test]
#[proves("LOG19", "T3")]
fn a_stale_token_of_an_earlier_opening_settles_nothing() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.declare(rules());
    sim.enqueue("m").unwrap();
    let stale = sim.lease().unwrap().unwrap();
    sim.flush();
    let (_, sim) = restart(sim, &disk);
    sim.pass(31 * SECOND);
    sim.pass(61 * SECOND);
    let held = sim.lease().unwrap().unwrap();
    assert_eq!(held.attempt, 2);

    let failure = Failure::new(CauseKind::Transient, "late");
    let outcomes = [
        Outcome::Ack { result: None },
        Outcome::Retry { delay: RetryDelay::Policy, failure: failure.clone() },
        Outcome::Reject { failure },
        Outcome::Release { delay: Duration::ZERO },
    ];
    for outcome in outcomes {
        let refused = sim.settle(stale.token.clone(), outcome).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LeaseLost, "{refused}");
    }
    let extended = sim.drive(sim.engine.extend(vec![stale.token.clone()], 60 * SECOND)).unwrap().remove(0);
    assert_eq!(extended.unwrap_err().kind(), ErrorKind::LeaseLost);
    sim.ack(&held).unwrap();
}

#[test]
#[proves("LOG19")]
fn a_token_whose_lease_a_power_cut_forgot_is_never_taken_for_a_later_one() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.declare(rules());
    sim.enqueue("m").unwrap();
    let before = disk.fork();
    let forgotten = sim.lease().unwrap().unwrap();
    drop(sim);
    // The disk as it was before the lease was written.
    let sim = Sim::open(&before.crash(Loss::All), &env).unwrap();
    let held = sim.lease().unwrap().unwrap();
    assert_eq!((forgotten.attempt, held.attempt), (1, 1));
    let refused = sim.ack(&forgotten).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LeaseLost, "{refused}");
    sim.ack(&held).unwrap();
}

#[test]
#[proves("T40", "B4", "LOG17")]
fn a_retry_keeps_its_delay_its_attempt_and_its_cause_over_a_kill() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.declare(InletConfig { concurrency_max: Some(1), ..rules() });
    sim.enqueue("m").unwrap();
    let delivery = sim.lease().unwrap().unwrap();
    let failure = Failure::new(CauseKind::Transient, "the mail server is away");
    sim.settle(delivery.token, Outcome::Retry { delay: RetryDelay::Policy, failure }).unwrap();
    let due = sim.views(MessageState::Delayed)[0].due;
    assert!(due.is_some());

    let (_, sim) = restart(sim, &disk);
    let view = sim.views(MessageState::Delayed).remove(0);
    assert_eq!((view.due, view.attempts), (due, 1));
    assert_eq!(&*view.causes[0].failure.error, "the mail server is away");
    // It holds no slot: with one slot in all, other work goes on.
    sim.enqueue("other").unwrap();
    let other = sim.lease().unwrap().unwrap();
    sim.ack(&other).unwrap();
    sim.pass(59 * SECOND);
    assert!(sim.lease().unwrap().is_none());
    sim.pass(2 * SECOND);
    assert_eq!(sim.lease().unwrap().unwrap().attempt, 2);
}

#[test]
#[proves("LOG11", "L4")]
fn a_state_brought_back_from_a_snapshot_is_the_one_brought_back_from_the_log() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.declare(rules());
    for n in 0..20 {
        sim.enqueue(&format!("m{n}")).unwrap();
        if n % 3 == 0 {
            let delivery = sim.lease().unwrap().unwrap();
            let failure = Failure::new(CauseKind::Permanent, "broken");
            match n % 4 {
                0 => sim.ack(&delivery).unwrap(),
                1 => sim.settle(delivery.token, Outcome::Reject { failure }).unwrap(),
                2 => {
                    sim.settle(delivery.token, Outcome::Retry { delay: RetryDelay::Policy, failure }).unwrap()
                }
                _ => {}
            }
        }
    }
    sim.flush();
    sim.engine.snapshot().unwrap().unwrap();
    sim.enqueue("behind").unwrap();
    drop(sim);
    let with = disk.crash(Loss::All);
    let without = with.fork();
    super::damage::remove_snapshots(&without);
    let look = |disk: &SimDisk| {
        let sim = Sim::open(disk, &env).unwrap();
        let views: Vec<_> = MessageState::ALL.into_iter().flat_map(|state| sim.views(state)).collect();
        (sim.engine.report().snapshot.is_some(), views, sim.drive(sim.engine.stats(vec![])).unwrap())
    };
    let (from_snapshot, from_log) = (look(&with), look(&without));
    assert!(from_snapshot.0 && !from_log.0);
    assert_eq!(from_snapshot.1, from_log.1);
    assert_eq!(from_snapshot.2, from_log.2);
}

#[test]
#[proves("LOG11")]
fn a_frozen_state_stays_as_it_was_whatever_becomes_of_the_first() {
    let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
    let sim = Sim::open(&disk, &env).unwrap();
    sim.declare(rules());
    (0..10).for_each(|n| drop(sim.enqueue(&format!("m{n}")).unwrap()));
    let held = sim.lease().unwrap().unwrap();
    let pieces = |state: &crate::State| {
        let mut pieces = Vec::new();
        state.pieces(&mut |piece| pieces.push(piece));
        pieces
    };
    let (frozen, then) = (sim.engine.inner().frozen(|| ()).0, sim.engine.inner().with_state(pieces));
    sim.ack(&held).unwrap();
    let other = sim.lease().unwrap().unwrap();
    let failure = Failure::new(CauseKind::Permanent, "broken");
    sim.settle(other.token, Outcome::Reject { failure }).unwrap();
    (10..20).for_each(|n| drop(sim.enqueue(&format!("m{n}")).unwrap()));
    assert_eq!(pieces(&frozen), then);
    assert_ne!(sim.engine.inner().with_state(pieces), then);
}

#[test]
#[proves("LOG17", "G3")]
fn a_finished_id_and_a_settled_token_are_still_known_after_a_restart() {
    for snapshot in [false, true] {
        let (disk, env) = (SimDisk::new(SECTOR), SimEnv::new(1));
        let sim = Sim::open(&disk, &env).unwrap();
        let first = sim.enqueue("m").unwrap();
        let delivery = sim.lease().unwrap().unwrap();
        sim.ack(&delivery).unwrap();
        if snapshot {
            sim.engine.snapshot().unwrap().unwrap();
        }
        let (_, sim) = restart(sim, &disk);
        let again = sim.enqueue("m").unwrap();
        assert!(again.duplicate && !first.duplicate);
        assert!(sim.there().is_empty());
        // The answer to the ack may have been lost: the same again is no error, another outcome is.
        sim.ack(&delivery).unwrap();
        let failure = Failure::new(CauseKind::Permanent, "late");
        let other = sim.settle(delivery.token, Outcome::Reject { failure }).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Conflict, "{other}");
    }
}
