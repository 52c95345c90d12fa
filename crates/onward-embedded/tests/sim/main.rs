//! The embedded engine on a disk, a clock and an order of things that follow from a seed.
//!
//! `ONWARD_SIM_SEED=17` runs one seed, `ONWARD_SIM_SEEDS=5000` more of them; with `ONWARD_SIM_ALL=1` a failure shows
//! the whole trace, not only what is about the messages concerned.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod calls;
mod counters;
mod crash;
mod drain;
mod faults;
mod folder;
mod learn;
mod parts;
mod plans;
mod produce;
mod queues;
mod run;
mod streams;
mod strike;
mod topics;
mod workload;

use counters::Counters;
use faults::FAULTS_MIN;
use onward_proves::proves;
use onward_sim::each_seed;
use run::{CALLS, Verdict, run};

/// Seeds that every run of the tests tries.
const SEEDS: u64 = 2_000;
/// How often each kind of fault happens in them, and each thing that the rules are about.
const EACH_MIN: u64 = 100;
const AGAIN: &str = "cargo test -p onward-embedded --test sim the_engine_keeps_its_word";

#[test]
#[proves("LOG1", "LOG2", "LOG4", "LOG5", "LOG12", "LOG16", "LOG17", "LOG18", "LOG19", "LOG22")]
fn the_engine_keeps_its_word_through_crashes_faults_and_lost_answers() {
    let (mut counters, mut seeds) = (Counters::default(), 0);
    let (mut again, mut stale, mut repeats) = (0, 0, 0);
    each_seed(SEEDS, AGAIN, |seed| {
        let verdict = run(seed);
        let well = verdict.report.is_clean() && verdict.surprises.is_empty();
        assert!(well, "{}", told(&verdict));
        assert!(verdict.calls >= CALLS, "{} calls", verdict.calls);
        let faults = verdict.counters.faults();
        assert!(faults >= FAULTS_MIN, "{faults} faults");
        counters.add(&verdict.counters);
        let tally = &verdict.report.tally;
        again += tally.redeliveries;
        stale += tally.settles_refused;
        repeats += tally.duplicates_recognised;
        seeds += 1;
    });
    println!("{seeds} seeds: {:?}", counters.each());
    println!("{again} delivered again, {stale} settlements refused, {repeats} repeats recognised");
    if seeds >= SEEDS {
        let seldom: Vec<_> = counters.each().into_iter().filter(|(_, count)| *count < EACH_MIN).collect();
        assert!(seldom.is_empty(), "happened less than {EACH_MIN} times: {seldom:?}");
        assert!(again > 0 && stale > 0 && repeats > 0);
    }
}

/// What a failure says: the report, and of the trace what is about the messages concerned.
fn told(verdict: &Verdict) -> String {
    let faults = verdict.report.faults().iter();
    let ids: Vec<String> = faults.flat_map(|fault| &fault.messages).map(|id| id.to_string()).collect();
    let word = |line: &str, id: &str| line.split(|c: char| !c.is_alphanumeric()).any(|word| word == id);
    let marks = ["crash", "open,", "fault"];
    let all = std::env::var("ONWARD_SIM_ALL").is_ok();
    let trace = verdict.trace.matching(|line| {
        all || ids.iter().any(|id| word(line, id)) || marks.iter().any(|mark| line.contains(mark))
    });
    format!("{trace}\n{}\n{:#?}", verdict.report, verdict.surprises)
}

#[test]
#[proves("LOG20")]
fn a_seed_gives_the_same_run_each_time() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 11..16 {
        let (first, again) = (run(seed), run(seed));
        assert_eq!(first.trace.latest(), again.trace.latest());
        assert_eq!(first.trace.hash(), again.trace.hash());
        assert!(hashes.insert(first.trace.hash()), "two seeds have one trace");
    }
}
