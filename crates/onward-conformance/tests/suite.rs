//! The suite on its own reference model: a check that an honest engine can't pass is wrong.

use onward_conformance::{
    Need, Options, Status, SteppedEnv, Suite,
    model::{ModelEngine, ModelHarness},
    run,
};
use onward_core::{Capability, Engine};
use onward_proves::proves;
use std::sync::Arc;

#[tokio::test]
async fn the_reference_model_passes_every_check() {
    let options = Options { messages: 300, seeds: 3, ..Options::default() };
    let mut bad = Vec::new();
    for check in Suite::checks() {
        let verdict = run(&ModelHarness, check, &options).await;
        if verdict.status == Status::Fail {
            bad.push(format!("{}: {}", verdict.check, verdict.reason.unwrap_or_default()));
        }
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[proves("T59")]
#[test]
fn every_capability_has_a_check_or_is_refused_by_every_engine_here() {
    let needed: Vec<Need> = Suite::checks().flat_map(|check| check.needs).copied().collect();
    let engine = ModelEngine::new(Arc::new(SteppedEnv::new(1)));
    let untested: Vec<_> = Capability::ALL
        .iter()
        .filter(|c| engine.capabilities().has(**c) && !needed.contains(&Need::Has(**c)))
        .collect();
    assert!(untested.is_empty(), "declared and untested: {untested:?}");
}

#[test]
fn names_are_given_once_and_sentences_end() {
    let mut names: Vec<&str> = Suite::checks().map(|check| check.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(Suite::checks().all(|check| check.sentence.ends_with('.')));
}
