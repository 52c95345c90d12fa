//! `cargo xtask ci`: everything that must hold before a change lands, each part even when another failed.

use crate::results::{self, Status, Totals};
use crate::ui::{note, say};
use crate::workspace::Workspace;
use crate::{checklist, conformance, matrix, test, tidy};
use anyhow::{Context, Result};
use std::process::Stdio;
use std::time::Instant;

/// Choices of `cargo xtask ci`.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// The tests have just been run by `cargo xtask test`: take their results
    #[arg(long)]
    pub(crate) after_test: bool,
}

type Part = (&'static str, fn(&Workspace) -> Result<bool>);

const BEFORE: [Part; 3] = [("tidy", tidied), ("fmt", formatted), ("clippy", linted)];
const TEST: Part = ("test", tested);
const AFTER: [Part; 3] = [("conformance", conforming), ("demo", demonstrated), ("checklist", listed)];

/// Runs all parts and closes with `N passed, N failed`, where each failed part beside the tests counts as one failure.
#[allow(clippy::disallowed_methods, reason = "the parts are timed on the real clock")]
pub(crate) fn ci(workspace: &Workspace, options: Options) -> Result<bool> {
    let tests: &[Part] = if options.after_test { &[] } else { &[TEST] };
    let mut lines = Vec::new();
    let mut failed_parts = 0;
    for (name, part) in BEFORE.iter().chain(tests).chain(&AFTER) {
        note(format!("== {name}"));
        let start = Instant::now();
        let well = part(workspace).unwrap_or_else(|error| {
            note(format!("error: {error:#}"));
            false
        });
        failed_parts += usize::from(!well && *name != TEST.0);
        lines.push(format!("{:<7} {name} ({:.0} s)", word(well), start.elapsed().as_secs_f64()));
    }
    lines.iter().for_each(say);
    let totals = close(&results::read(&workspace.results_dir()?)?, failed_parts);
    say(totals.line());
    Ok(totals.failed == 0)
}

/// The tests' totals with the failed parts. Without any result the tests did not run, which is a failure too.
fn close(records: &[results::Record], failed_parts: usize) -> Totals {
    let mut totals = Totals::of(records);
    totals.failed += failed_parts;
    if !records.iter().any(|record| record.status == Status::Passed) {
        totals.failed = totals.failed.max(1);
    }
    totals
}

fn word(well: bool) -> &'static str {
    if well { "ok" } else { "FAILED" }
}

fn tidied(workspace: &Workspace) -> Result<bool> {
    tidy::tidy(workspace, &tidy::Options::default())
}

fn formatted(workspace: &Workspace) -> Result<bool> {
    cargo(workspace, &["fmt", "--all", "--check"])
}

fn linted(workspace: &Workspace) -> Result<bool> {
    cargo(workspace, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
}

fn tested(workspace: &Workspace) -> Result<bool> {
    test::test(workspace, &test::Options::default())
}

fn conforming(workspace: &Workspace) -> Result<bool> {
    let well = conformance::conformance(workspace, &conformance::Options::default())?;
    let (checks, verdicts) = conformance::last(&workspace.results_dir()?)?;
    let told = matrix::is_true(workspace, &checks, &verdicts);
    if well && !told {
        note(
            "docs/engines/matrix.md does not say what this run said: `cargo xtask conformance --matrix` writes it",
        );
    }
    Ok(well && told)
}

fn listed(workspace: &Workspace) -> Result<bool> {
    checklist::checklist(workspace, &checklist::Options { brief: true, ..checklist::Options::default() })
}

/// Runs `onward demo` in an empty folder: it must succeed and tell at least one event.
fn demonstrated(workspace: &Workspace) -> Result<bool> {
    let onward = test::build_onward(workspace)?.context("there is no command `onward` to demonstrate")?;
    let dir = workspace.results_dir()?.join("demo");
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {}", dir.display()))?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut command = std::process::Command::new(onward);
    command.args(["demo", "--json"]).current_dir(&dir).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("cannot start `onward demo`")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (events, last) = (text.lines().count(), text.lines().last().unwrap_or_default().to_owned());
    say(format!("demo: {} with {events} events; the last: {last}", output.status));
    let form = text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    Ok(output.status.success() && events > 0 && form)
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let status = workspace.cargo().args(arguments).status().context("cannot start cargo")?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: Status) -> results::Record {
        let (package, target, test) = ("a".to_owned(), "lib".to_owned(), "b".to_owned());
        results::Record { package, target, test, status, ended_after_seconds: 0.0, reason: None }
    }

    #[test]
    fn the_closing_line_is_that_of_the_tests_and_a_failed_part_adds_to_it() {
        let records = [record(Status::Passed), record(Status::Passed)];
        assert_eq!(close(&records, 0).line(), "2 passed, 0 failed");
        assert_eq!(close(&records, 2).line(), "2 passed, 2 failed");
        assert_eq!(close(&[record(Status::Failed)], 1).line(), "0 passed, 2 failed");
    }

    #[test]
    fn no_results_at_all_are_a_failure() {
        assert_eq!(close(&[], 0).line(), "0 passed, 1 failed");
    }
}
