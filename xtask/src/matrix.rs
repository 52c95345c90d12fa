//! `docs/engines/matrix.md`: what each engine does of what the suite checks, made from a run.

use crate::conformance::{Check, CheckStatus, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const PAGE: &str = "docs/engines/matrix.md";
const HEAD: &str = "# What each engine does\n\n\
    Made by `cargo xtask conformance --matrix` from a run of the suite; CI fails when it does not say what the run said. \
    *native*: the engine does it by itself. *refused*: it answers `Unsupported`, for the reason given; it never \
    approximates. *not run*: what it takes was not there, so nothing is known.\n";

/// Writes the page.
pub(crate) fn write(workspace: &Workspace, checks: &[Check], verdicts: &[Verdict]) -> Result<()> {
    let path = workspace.root.join(PAGE);
    path.parent().map_or(Ok(()), std::fs::create_dir_all).context("cannot make the page's folder")?;
    std::fs::write(&path, page(checks, verdicts)).with_context(|| format!("cannot write {}", path.display()))
}

/// Whether the page says what a run said.
pub(crate) fn is_true(workspace: &Workspace, checks: &[Check], verdicts: &[Verdict]) -> bool {
    let found = std::fs::read_to_string(workspace.root.join(PAGE));
    found.is_ok_and(|text| text == page(checks, verdicts))
}

fn page(checks: &[Check], verdicts: &[Verdict]) -> String {
    let engines: BTreeSet<&str> = verdicts.iter().map(|verdict| verdict.engine.as_str()).collect();
    let of: BTreeMap<(&str, &str), &Verdict> =
        verdicts.iter().map(|v| ((&*v.check, &*v.engine), v)).collect();
    let groups = checks.chunk_by(|one, next| one.group == next.group);
    let mut reasons: Vec<&str> = Vec::new();
    let mut text = HEAD.to_owned();
    for group in groups {
        let names = engines.iter().fold(String::new(), |names, engine| names + " " + engine + " |");
        let rule = "---|".repeat(engines.len());
        let _ = write!(text, "\n## {}\n\n| check |{names}\n|---|{rule}\n", group[0].group);
        for check in group {
            let cells = engines.iter().map(|engine| cell(of.get(&(&*check.check, engine)), &mut reasons));
            let cells = cells.fold(String::new(), |cells, cell| cells + " " + &cell + " |");
            let _ = writeln!(text, "| {} |{cells}", check.sentence.replace('|', "\\|"));
        }
    }
    if !reasons.is_empty() {
        text.push_str("\n## Why\n\n");
    }
    for (number, reason) in reasons.iter().enumerate() {
        let _ = writeln!(text, "{}. {reason}", number + 1);
    }
    text
}

fn cell<'a>(verdict: Option<&&'a Verdict>, reasons: &mut Vec<&'a str>) -> String {
    let Some(verdict) = verdict else { return "not run".to_owned() };
    match verdict.status {
        CheckStatus::Pass => "native".to_owned(),
        CheckStatus::Fail => "**fails**".to_owned(),
        CheckStatus::Refused => format!("refused ({})", number_of(verdict, reasons)),
        CheckStatus::NotRun => format!("not run ({})", number_of(verdict, reasons)),
    }
}

/// The number of the verdict's reason, which is added where it is new.
fn number_of<'a>(verdict: &'a Verdict, reasons: &mut Vec<&'a str>) -> usize {
    let reason = verdict.reason.as_deref().unwrap_or("no reason given");
    let known = reasons.iter().position(|known| *known == reason);
    known.unwrap_or_else(|| {
        reasons.push(reason);
        reasons.len() - 1
    }) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_what_the_run_said_and_one_that_was_not_run_is_never_native() {
        let check = |name: &str, group: &str| Check {
            check: name.into(),
            group: group.into(),
            proves: Vec::new(),
            sentence: format!("The sentence of {name}."),
        };
        let verdict = |engine: &str, check: &str, status, reason: Option<&str>| Verdict {
            engine: engine.into(),
            check: check.into(),
            status,
            reason: reason.map(str::to_owned),
        };
        let checks = [check("a", "core"), check("b", "core"), check("c", "time")];
        let forgets = Some("it forgets");
        let verdicts = [
            verdict("memory", "a", CheckStatus::Pass, None),
            verdict("memory", "b", CheckStatus::Refused, forgets),
            verdict("memory", "c", CheckStatus::Refused, forgets),
            verdict("sqs", "a", CheckStatus::NotRun, Some("no server")),
            verdict("sqs", "b", CheckStatus::Fail, Some("broken")),
        ];
        let text = page(&checks, &verdicts);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| The")).collect();
        assert_eq!(
            rows,
            [
                "| The sentence of a. | native | not run (1) |",
                "| The sentence of b. | refused (2) | **fails** |",
                "| The sentence of c. | refused (2) | not run |",
            ]
        );
        assert!(text.ends_with("\n1. no server\n2. it forgets\n"), "{text}");
    }
}
