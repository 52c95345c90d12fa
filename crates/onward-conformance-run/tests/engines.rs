//! The suite on every engine here, one test for each engine and group. What a check proves stands in its own data.

use onward_conformance::{Harness, Need, Options, Status, Suite, run};
use onward_conformance_run::{Embedded, Memory, OverSocket, harnesses};
use onward_core::Capability;
use onward_proves::proves;
use std::{path::PathBuf, time::Duration};

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_conformance").into()
}

/// Fewer messages and sequences than a full run has, so that the tests stay short; the checks are the same.
async fn group_holds(harness: &dyn Harness, group: &str) {
    let options = Options { messages: 1_000, seeds: 15, check_max: Duration::from_secs(120) };
    let (mut ran, mut bad) = (0, Vec::new());
    for check in Suite::checks().filter(|check| check.group == group) {
        let verdict = run(harness, check, &options).await;
        ran += 1;
        if matches!(verdict.status, Status::Fail | Status::NotRun) {
            bad.push(format!("{}: {}", verdict.check, verdict.reason.unwrap_or_default()));
        }
    }
    assert!(ran > 0, "the group {group} has no checks");
    assert!(bad.is_empty(), "{} on {}:\n{}", group, harness.name(), bad.join("\n"));
}

macro_rules! groups {
    ($engine:ident: $harness:expr; $($group:ident),+) => {
        mod $engine {
            use super::*;

            $(#[tokio::test(flavor = "multi_thread")]
            async fn $group() {
                group_holds(&$harness, stringify!($group)).await;
            })+
        }
    };
}

/// The same groups on every engine, and a list of them.
macro_rules! on_every_engine {
    ($($group:ident),+) => {
        groups! { memory: Memory; $($group),+ }
        groups! { embedded: Embedded; $($group),+ }
        groups! { client: OverSocket::new(program()); $($group),+ }

        const GROUPS: &[&str] = &[$(stringify!($group)),+];
    };
}

on_every_engine! {
    core, retry_dead, time, schedules, order, dedup, topics, limits, claim_check, records, streams, transactions,
    reply, looking, lifecycle, model, stress
}

#[test]
fn no_group_of_the_suite_is_left_out_here() {
    let left_out: Vec<_> = Suite::checks().filter(|check| !GROUPS.contains(&check.group)).collect();
    assert!(left_out.is_empty(), "no test runs {left_out:?}");
}

#[proves("T59")]
#[tokio::test(flavor = "multi_thread")]
async fn no_engine_declares_a_capability_that_no_check_needs() {
    let needed: Vec<Need> = Suite::checks().flat_map(|check| check.needs).copied().collect();
    for harness in harnesses(program()) {
        let Ok(subject) = harness.fresh().await else { panic!("{} can't be made here", harness.name()) };
        let capabilities = subject.engine().capabilities();
        let has = |c: &&Capability| capabilities.has(**c) && !needed.contains(&Need::Has(**c));
        let untested: Vec<_> = Capability::ALL.iter().filter(has).collect();
        assert!(untested.is_empty(), "{} declares, and nothing tests: {untested:?}", harness.name());
    }
}
