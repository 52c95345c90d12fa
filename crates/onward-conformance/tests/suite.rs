//! The suite on its own reference model: a check that an honest engine can't pass is wrong.

use onward_conformance::{Options, Status, Suite, model::ModelHarness, run};

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
