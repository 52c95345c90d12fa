//! `cargo xtask checklist`: each statement with the tests that claim it and how they last ended.

use crate::claims::{self, Claim};
use crate::conformance::{self, Check, Verdict};
use crate::results::{self, Record, Status};
use crate::statements::{Choice, Number, Statements};
use crate::test;
use crate::ui::{Human, note, say, short};
use crate::workspace::Workspace;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;

/// Choices of `cargo xtask checklist`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Print one JSON object for each statement on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Run the tests and the conformance suite first
    #[arg(long)]
    pub(crate) run: bool,
    /// Only these statements, such as T1,T2 or LOG1-LOG22
    #[arg(long, value_name = "NUMBERS")]
    pub(crate) only: Option<Choice>,
    /// Fail unless each of the statements is green
    #[arg(long)]
    pub(crate) require: bool,
    /// Show only what is red, and the totals
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) brief: bool,
    /// Show each statement's tests also where all is well
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// How a statement stands.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// At least one claiming test ran, and all that ran passed.
    Green,
    /// A claiming test failed.
    Red,
    /// Claimed, but no claiming test ran.
    NotRun,
    /// Claimed by nothing.
    None,
}

/// How one claiming test ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    Passed,
    Failed,
    Skipped,
    NotRun,
    /// The engine says that it can't do this: nothing is shown, nothing is broken.
    Refused,
}

#[derive(Clone, Debug, Serialize)]
struct Claiming {
    name: String,
    status: Ending,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    statement: String,
    status: Standing,
    tests: &'a [Claiming],
}

type Joined = BTreeMap<Number, Vec<Claiming>>;

/// Prints the checklist; `true` when every claim is known and no chosen statement is red (or missing, if required).
pub(crate) fn checklist(workspace: &Workspace, options: &Options) -> Result<bool> {
    if options.run {
        test::test_quietly(workspace)?;
        if let Err(error) = conformance::run_quietly(workspace) {
            note(format!("the conformance suite did not run: {error:#}"));
        }
    }
    let statements = Statements::read(&workspace.root.join("docs/checklist.md"))?;
    let dir = workspace.results_dir()?;
    let (claims, records) = (claims::find(workspace)?, results::read(&dir)?);
    let (checks, verdicts) = conformance::last(&dir)?;
    let known = report_unknown(&statements, &claims, &checks, options.only.as_ref());
    if records.is_empty() {
        note("no results yet: run `cargo xtask test`, or add --run");
    }
    let mut joined = join_tests(&claims, &records);
    for (number, claiming) in join_checks(&checks, &verdicts) {
        joined.entry(number).or_default().extend(claiming);
    }
    let standings = print(&statements, &joined, options)?;
    let well = |standing: &Standing| match standing {
        Standing::Green => true,
        Standing::Red => false,
        Standing::NotRun | Standing::None => !options.require,
    };
    Ok(known && standings.iter().all(well))
}

/// Names each claim and each choice of a number that the document doesn't have; `true` when there is none.
fn report_unknown(
    statements: &Statements,
    claims: &[Claim],
    checks: &[Check],
    only: Option<&Choice>,
) -> bool {
    let mut unknown = Vec::new();
    for claim in claims.iter().filter(|claim| !statements.contains(&claim.statement)) {
        unknown.push(format!("{}: `{}` claims {}", claim.place, claim.test, claim.statement));
    }
    for check in checks {
        let wrong = |text: &&String| text.parse().map_or(true, |number| !statements.contains(&number));
        unknown.extend(
            check
                .proves
                .iter()
                .filter(wrong)
                .map(|n| format!("conformance check {} claims {n}", check.check)),
        );
    }
    unknown.extend(
        only.map(|choice| choice.unknown(statements))
            .unwrap_or_default()
            .iter()
            .map(|n| format!("--only {n}")),
    );
    for line in &unknown {
        note(format!("error: {line}, which docs/checklist.md doesn't have"));
    }
    unknown.is_empty()
}

fn join_tests(claims: &[Claim], records: &[Record]) -> Joined {
    let mut joined = Joined::new();
    for claim in claims {
        let own = |record: &&Record| record.package == claim.package && record.target == claim.target;
        let endings: Vec<_> = records.iter().filter(own).filter_map(|record| ending(claim, record)).collect();
        let name = format!("{} {} {}", claim.package, claim.target, claim.test);
        joined.entry(claim.statement.clone()).or_default().push(Claiming { name, status: worst(&endings) });
    }
    joined
}

/// The record's ending if it is of the claiming test, or of one of the cases made from it.
fn ending(claim: &Claim, record: &Record) -> Option<Ending> {
    let rest = record.test.strip_prefix(&claim.test)?;
    (rest.is_empty() || rest.starts_with("::")).then_some(match record.status {
        Status::Passed => Ending::Passed,
        Status::Failed => Ending::Failed,
        Status::Skipped => Ending::Skipped,
    })
}

fn join_checks(checks: &[Check], verdicts: &[Verdict]) -> Joined {
    let mut joined = Joined::new();
    for check in checks {
        let own: Vec<_> = verdicts.iter().filter(|verdict| verdict.check == check.check).collect();
        let mut claiming: Vec<_> =
            own.iter().map(|verdict| of_check(&verdict.engine, check, verdict.status.into())).collect();
        if claiming.is_empty() {
            claiming.push(of_check("any", check, Ending::NotRun));
        }
        for number in check.proves.iter().filter_map(|text| text.parse().ok()) {
            joined.entry(number).or_default().extend(claiming.clone());
        }
    }
    joined
}

fn of_check(engine: &str, check: &Check, status: Ending) -> Claiming {
    Claiming { name: format!("conformance {engine} {}", check.check), status }
}

fn worst(endings: &[Ending]) -> Ending {
    let order = [Ending::Failed, Ending::Passed, Ending::Skipped];
    order.into_iter().find(|ending| endings.contains(ending)).unwrap_or(Ending::NotRun)
}

fn standing(claiming: &[Claiming]) -> Standing {
    let any = |ending| claiming.iter().any(|test| test.status == ending);
    if any(Ending::Failed) {
        Standing::Red
    } else if any(Ending::Passed) {
        Standing::Green
    } else if claiming.is_empty() {
        Standing::None
    } else {
        Standing::NotRun
    }
}

fn print(statements: &Statements, joined: &Joined, options: &Options) -> Result<Vec<Standing>> {
    let mut standings = Vec::new();
    let chosen = |number: &Number| options.only.as_ref().is_none_or(|only| only.holds(number));
    for (number, text) in statements.iter().filter(|(number, _)| chosen(number)) {
        let tests = joined.get(number).map_or(&[][..], Vec::as_slice);
        let status = standing(tests);
        if options.json {
            say(serde_json::to_string(&Line { statement: number.to_string(), status, tests })?);
        } else if !options.brief || status == Standing::Red {
            show(number, text, status, tests, options.verbose);
        }
        standings.push(status);
    }
    let count = |wanted| standings.iter().filter(|standing| **standing == wanted).count();
    Human { json: options.json }.line(format!(
        "{} green, {} red, {} not run, {} without a claim",
        count(Standing::Green),
        count(Standing::Red),
        count(Standing::NotRun),
        count(Standing::None)
    ));
    Ok(standings)
}

fn show(number: &Number, text: &str, status: Standing, tests: &[Claiming], verbose: bool) {
    let word = match status {
        Standing::Green => "green",
        Standing::Red => "RED",
        Standing::NotRun => "not run",
        Standing::None => "-",
    };
    let number = number.to_string();
    say(format!("{number:<6} {word:<8} {:>3}  {}", tests.len(), short(text, 90)));
    let worth = |test: &&Claiming| verbose || test.status == Ending::Failed;
    for test in tests.iter().filter(worth) {
        say(format!("{:>20}  {:?}  {}", "", test.status, test.name));
    }
}

#[cfg(test)]
#[path = "checklist_tests.rs"]
mod tests;
