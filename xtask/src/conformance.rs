//! `cargo xtask conformance`: runs the suite on every engine, shows and keeps what it said.

use crate::checklist::Ending;
use crate::matrix;
use crate::results::read_lines;
use crate::test::build_onward;
use crate::ui::{Human, note, say, short};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const VERDICTS: &str = "conformance.jsonl";
const CHECKS: &str = "conformance-checks.jsonl";

/// Choices of `cargo xtask conformance`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Only this engine
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// Print one JSON object for each check and engine on stdout, nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the page docs/engines/matrix.md from what the run says
    #[arg(long, conflicts_with = "engine")]
    pub(crate) matrix: bool,
}

/// A check of the suite and the statements that it shows.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Check {
    pub(crate) check: String,
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) proves: Vec<String>,
    #[serde(default)]
    pub(crate) sentence: String,
}

/// How one check ended on one engine.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Verdict {
    pub(crate) engine: String,
    pub(crate) check: String,
    pub(crate) status: CheckStatus,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckStatus {
    Pass,
    Fail,
    Refused,
    NotRun,
}

impl From<CheckStatus> for Ending {
    fn from(status: CheckStatus) -> Self {
        match status {
            CheckStatus::Pass => Self::Passed,
            CheckStatus::Fail => Self::Failed,
            CheckStatus::Refused => Self::Refused,
            CheckStatus::NotRun => Self::NotRun,
        }
    }
}

/// Runs the suite; `true` when nothing failed and, where `CI=true`, everything ran.
pub(crate) fn conformance(workspace: &Workspace, options: &Options) -> Result<bool> {
    run(workspace, options, options.json)
}

/// Runs the suite for its results alone, all output on stderr.
pub(crate) fn run_quietly(workspace: &Workspace) -> Result<bool> {
    run(workspace, &Options { json: true, ..Options::default() }, false)
}

fn run(workspace: &Workspace, options: &Options, echo: bool) -> Result<bool> {
    let dir = workspace.results_dir()?;
    let onward = build_onward(workspace)?;
    let suite = |arguments: &[&str]| -> Result<Command> {
        let mut command = suite_command(workspace)?;
        command.args(arguments).stderr(Stdio::inherit()).stdout(Stdio::piped());
        onward.iter().for_each(|path| {
            command.env("ONWARD_BIN", path);
        });
        Ok(command)
    };
    keep_checks(suite(&["--list", "--json"])?, &dir)?;
    let mut command = suite(&["--json"])?;
    options.engine.iter().for_each(|engine| {
        command.args(["--engine", engine]);
    });
    let (verdicts, ended_well) = stream(command, echo)?;
    write_lines(&dir.join(VERDICTS), &merged(&dir, &verdicts, options)?)?;
    let well =
        told(&verdicts, Human { json: options.json }, std::env::var("CI").is_ok_and(|ci| ci == "true"));
    let failed = verdicts.iter().any(|verdict| verdict.status == CheckStatus::Fail);
    if options.matrix && !failed {
        matrix::write(workspace, &last(&dir)?.0, &verdicts)?;
    }
    if !ended_well && !failed {
        note("the conformance suite ended badly without naming a failed check");
    }
    Ok(well && ended_well)
}

/// The checks and verdicts of the last run.
pub(crate) fn last(dir: &Path) -> Result<(Vec<Check>, Vec<Verdict>)> {
    Ok((read_lines(&dir.join(CHECKS))?, read_lines(&dir.join(VERDICTS))?))
}

fn suite_command(workspace: &Workspace) -> Result<Command> {
    let binary =
        workspace.package("onward-conformance-run").and_then(|package| package.binary("conformance"));
    let Some(binary) = binary else {
        bail!("the crate onward-conformance-run has no binary `conformance`: there is no suite to run");
    };
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "-p", "onward-conformance-run", "--bin", "conformance"]);
    if !binary.required_features.is_empty() {
        command.args(["--features", &binary.required_features.join(",")]);
    }
    command.arg("--");
    Ok(command)
}

fn keep_checks(mut command: Command, dir: &Path) -> Result<()> {
    let output = command.output().context("cannot start the conformance suite")?;
    if !output.status.success() {
        bail!("the conformance suite could not list its checks ({})", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let checks: Vec<Check> = text.lines().map(parse).collect::<Result<_>>()?;
    write_lines(&dir.join(CHECKS), &checks)
}

fn stream(mut command: Command, echo: bool) -> Result<(Vec<Verdict>, bool)> {
    let mut child = command.spawn().context("cannot start the conformance suite")?;
    let stdout = child.stdout.take().context("the conformance suite has no stdout")?;
    let mut verdicts = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let verdict: Verdict = parse(&line?)?;
        if echo {
            say(serde_json::to_string(&verdict)?);
        }
        verdicts.push(verdict);
    }
    Ok((verdicts, child.wait()?.success()))
}

fn parse<T: for<'de> Deserialize<'de>>(line: &str) -> Result<T> {
    serde_json::from_str(line)
        .with_context(|| format!("the conformance suite printed `{line}`, which is not its form"))
}

/// A run of one engine keeps what the others said last.
fn merged(dir: &Path, verdicts: &[Verdict], options: &Options) -> Result<Vec<Verdict>> {
    let mut all = if options.engine.is_some() { last(dir)?.1 } else { Vec::new() };
    all.retain(|old| !verdicts.iter().any(|new| new.engine == old.engine));
    all.extend_from_slice(verdicts);
    Ok(all)
}

fn write_lines<T: Serialize>(path: &Path, values: &[T]) -> Result<()> {
    let lines: Vec<String> = values.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The table for people; `false` when a check failed, or none ran, or one didn't run that had to.
fn told(verdicts: &[Verdict], human: Human, all_must_run: bool) -> bool {
    let mut engines: BTreeMap<&str, BTreeMap<CheckStatus, usize>> = BTreeMap::new();
    for verdict in verdicts {
        *engines.entry(&verdict.engine).or_default().entry(verdict.status).or_default() += 1;
        if !human.json && verdict.status != CheckStatus::Pass {
            let reason = short(verdict.reason.as_deref().unwrap_or("no reason given"), 160);
            human.line(format!(
                "{:<8} {:<10} {}: {reason}",
                word(verdict.status),
                verdict.engine,
                verdict.check
            ));
        }
    }
    human.line(format!("{:<16} {:>5} {:>5} {:>8} {:>8}", "engine", "pass", "fail", "refused", "not run"));
    for (engine, counts) in &engines {
        let of = |status| counts.get(&status).copied().unwrap_or(0);
        let (pass, fail) = (of(CheckStatus::Pass), of(CheckStatus::Fail));
        let (refused, not_run) = (of(CheckStatus::Refused), of(CheckStatus::NotRun));
        human.line(format!("{engine:<16} {pass:>5} {fail:>5} {refused:>8} {not_run:>8}"));
    }
    let bad = |verdict: &Verdict| match verdict.status {
        CheckStatus::Fail => true,
        CheckStatus::NotRun => all_must_run,
        CheckStatus::Pass | CheckStatus::Refused => false,
    };
    !verdicts.is_empty() && !verdicts.iter().any(bad)
}

fn word(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Pass => "pass",
        CheckStatus::Fail => "FAIL",
        CheckStatus::Refused => "refused",
        CheckStatus::NotRun => "not run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(engine: &str, status: &str) -> Verdict {
        let line =
            format!("{{\"engine\":\"{engine}\",\"check\":\"c\",\"status\":\"{status}\",\"reason\":null}}");
        parse(&line).unwrap()
    }

    #[test]
    fn a_check_that_did_not_run_fails_only_where_all_must_run() {
        let human = Human { json: true };
        let verdicts = [verdict("memory", "pass"), verdict("sqs", "not_run"), verdict("sqs", "refused")];
        assert!(told(&verdicts, human, false));
        assert!(!told(&verdicts, human, true));
    }

    #[test]
    fn a_failed_check_or_an_empty_run_is_no_success() {
        let human = Human { json: true };
        assert!(!told(&[verdict("memory", "fail")], human, false));
        assert!(!told(&[], human, false));
    }

    #[test]
    fn an_unknown_status_is_refused() {
        let line = r#"{"engine":"memory","check":"c","status":"skipped","reason":"x"}"#;
        assert!(parse::<Verdict>(line).is_err());
    }

    #[test]
    fn one_engines_run_keeps_the_others_verdicts() {
        let dir = tempfile::tempdir().unwrap();
        let old = [verdict("memory", "fail"), verdict("client", "pass")];
        write_lines(&dir.path().join(VERDICTS), &old).unwrap();
        let only = Options { engine: Some("memory".into()), ..Options::default() };
        let all = merged(dir.path(), &[verdict("memory", "pass")], &only).unwrap();
        let found: Vec<_> = all.iter().map(|v| (v.engine.as_str(), v.status)).collect();
        assert_eq!(found, [("client", CheckStatus::Pass), ("memory", CheckStatus::Pass)]);
    }
}
