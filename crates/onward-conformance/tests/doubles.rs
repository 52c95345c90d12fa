//! Every faulty double is caught by the check of the rule that it breaks, and by few others.

use onward_conformance::{
    Options,
    doubles::{DOUBLES, catch},
    model::ModelHarness,
};
use std::{sync::Arc, time::Duration};

#[tokio::test]
async fn every_double_is_caught_by_its_own_check_and_by_no_other() {
    let options = Options { messages: 400, seeds: 1, check_max: Duration::from_secs(120) };
    let mut wrong = Vec::new();
    for rule in DOUBLES {
        let caught = catch(Arc::new(ModelHarness), rule, &options).await;
        if !caught.caught {
            wrong.push(format!("{} is not caught by {}", rule.name, rule.caught_by));
        }
        wrong.extend(caught.strays.iter().map(|stray| format!("{} also fails {stray}", rule.name)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
