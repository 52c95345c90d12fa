//! Faulty doubles: an engine with one rule broken. Each must fail the check of that rule, and pass the others.
//!
//! They keep the suite honest: a check that no double can fail shows nothing.

mod answers;
mod bend;
mod events;
mod fault;
mod harness;
mod limits;
mod patterns;
mod rules;
mod topics;
mod wrapper;

pub use fault::Fault;
pub use harness::DoubleHarness;
pub use rules::DOUBLES;
pub use wrapper::Double;

use crate::{Check, Harness, Options, Status, Suite, run};
use std::sync::Arc;

/// One way to break one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name in reports, as in `forgets_dedup`.
    pub name: &'static str,
    /// What it does wrong.
    pub fault: Fault,
    /// The check that must catch it.
    pub caught_by: &'static str,
    /// Other checks that may fail with it, since they rest on the same rule.
    pub also: &'static [&'static str],
}

/// How one double fared.
#[derive(Debug, Clone)]
pub struct Caught {
    /// The double.
    pub double: &'static str,
    /// Its own check failed, as it must.
    pub caught: bool,
    /// Checks that failed and may not.
    pub strays: Vec<String>,
}

impl Caught {
    /// Whether the suite saw this fault, and only this one.
    pub fn is_right(&self) -> bool {
        self.caught && self.strays.is_empty()
    }
}

/// Runs every check on one double of the harness's engine.
pub async fn catch(harness: Arc<dyn Harness>, rule: &'static Rule, options: &Options) -> Caught {
    let double = DoubleHarness::new(harness, *rule);
    let mut caught = Caught { double: rule.name, caught: false, strays: Vec::new() };
    for check in Suite::checks().filter(|check| bears_on(check, rule)) {
        let verdict = run(&double, check, options).await;
        let failed = verdict.status == Status::Fail;
        if check.name == rule.caught_by {
            caught.caught = failed;
        } else if failed && !rule.also.contains(&check.name) {
            let reason = verdict.reason.unwrap_or_default();
            caught.strays.push(format!("{}: {}", check.name, reason.lines().next().unwrap_or_default()));
        }
    }
    caught
}

/// Two checks go over everything, so that any fault may show in them: they count only where they are the one to catch.
fn bears_on(check: &Check, rule: &Rule) -> bool {
    !["model", "stress"].contains(&check.group) || check.name == rule.caught_by
}
