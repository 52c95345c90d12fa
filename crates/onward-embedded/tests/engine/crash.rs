//! The death of a process: suspects, crashes, and who is handed what.

use crate::support::*;
use onward_core::*;
use onward_proves::proves;

async fn end(bench: &Bench, process: &str, died: bool) -> u64 {
    match bench.one(Op::EndProcess { process: ProcessId(process.into()), died }).await.unwrap() {
        Receipt::ProcessEnded { leases } => leases,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[proves("T13", "H5")]
async fn all_in_flight_at_a_death_are_suspects_handed_out_alone_with_their_attempts_restored() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        bench.put(id).await;
    }
    assert_eq!(bench.lease_many("p1", 2).await.len(), 2);
    assert_eq!(end(&bench, "p1", true).await, 2);
    let alone = bench.lease_many("p2", 10).await;
    assert_eq!(alone.len(), 1);
    assert!(alone[0].suspect);
    assert_eq!((alone[0].message.id.as_str(), alone[0].attempt), ("a", 1));
    assert!(bench.lease_many("p2", 10).await.is_empty(), "a process that holds a suspect gets nothing else");
    bench.ack(&alone[0]).await;
    let next = bench.lease_many("p2", 10).await;
    assert_eq!((next.len(), next[0].message.id.as_str(), next[0].attempt), (1, "b", 1));
    bench.ack(&next[0]).await;
    let last = bench.lease_many("p2", 10).await;
    assert_eq!((last.len(), last[0].suspect), (1, false));
}

#[tokio::test]
#[proves("T13", "T14")]
async fn only_deaths_while_alone_count_and_the_third_is_the_last() {
    let bench = Bench::new();
    for id in ["poison", "good"] {
        bench.put(id).await;
    }
    assert_eq!(bench.lease_many("p0", 2).await.len(), 2);
    end(&bench, "p0", true).await;
    let view = bench.view("poison").await.unwrap();
    assert_eq!((view.suspect, view.crashes, view.attempts), (true, 0, 0));
    for crash in 1..=3 {
        bench.step(secs(600));
        let process = format!("p{crash}");
        let held = bench.lease_many(&process, 1).await.remove(0);
        assert_eq!((held.message.id.as_str(), held.attempt), ("poison", crash));
        end(&bench, &process, true).await;
    }
    let view = bench.view("poison").await.unwrap();
    assert_eq!((view.state, view.crashes), (MessageState::Dead, 3));
    assert_eq!(view.causes.last().unwrap().failure.kind, CauseKind::Crashed);
    assert_eq!(bench.lease_ids(10).await, ["good"], "the rest goes on");
}

#[tokio::test]
#[proves("T13")]
async fn one_busy_process_drains_for_a_suspect_while_the_others_go_on() {
    let bench = Bench::new();
    for id in ["s1", "s2", "a", "b", "c", "d"] {
        bench.put(id).await;
    }
    bench.lease_many("dies", 2).await;
    let busy1 = bench.lease_many("busy1", 1).await.remove(0);
    let busy2 = bench.lease_many("busy2", 1).await;
    end(&bench, "dies", true).await;
    assert!(bench.lease_many("busy1", 1).await.is_empty(), "the first to ask drains");
    assert_eq!(bench.lease_many("busy2", 1).await.len(), 1, "the others do not");
    bench.ack(&busy1).await;
    let suspect = bench.lease_many("busy1", 1).await.remove(0);
    assert!(suspect.suspect);
    assert_eq!(busy2.len(), 1);
}

#[tokio::test]
#[proves("T36", "T6")]
async fn a_process_that_closes_gives_its_messages_back_uncounted() {
    let bench = Bench::new();
    bench.put("a").await;
    bench.lease_many("p1", 1).await;
    assert_eq!(end(&bench, "p1", false).await, 1);
    assert_eq!(end(&bench, "p1", false).await, 0);
    let again = bench.lease_many("p2", 1).await.remove(0);
    assert_eq!((again.attempt, again.suspect), (1, false));
}

#[tokio::test]
#[proves("T7", "T12")]
async fn a_reused_worker_name_frees_no_slot_and_a_dead_process_frees_its_own_at_once() {
    let bench = Bench::queue(InletConfig { concurrency_max: Some(1), ..InletConfig::default() }).await;
    bench.put("a").await;
    bench.put("b").await;
    let held = bench.lease_many("p1", 1).await.remove(0);
    assert!(bench.lease_many("p2", 1).await.is_empty());
    end(&bench, "p1", true).await;
    assert_eq!(kind(bench.settle(&held.token, ack()).await), ErrorKind::LeaseLost);
    assert_eq!(bench.lease_many("p2", 1).await.len(), 1);
}
