//! `cargo xtask bench`, `soak` and `drill`: measurements and long runs.

use crate::ui::say;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::process::Stdio;

/// Choices of `cargo xtask bench`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Only this measurement
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Fail where a measurement misses its stated bound
    #[arg(long)]
    pub(crate) check: bool,
    /// Print one JSON object for each measurement on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// What else the program takes
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) rest: Vec<String>,
}

/// Choices of `cargo xtask soak`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SoakOptions {
    /// How often a process under load is killed
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) rounds: u64,
    /// How many seeds the simulator runs, each a whole run with faults
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub(crate) seeds: u64,
}

/// Choices of `cargo xtask drill`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DrillOptions {
    /// How long the process works before its folder is lost
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) seconds: u64,
}

/// Measures; `true` when the program says that all is well.
pub(crate) fn bench(workspace: &Workspace, options: &Options) -> Result<bool> {
    run(workspace, &arguments(options))
}

/// Runs the simulator's seeds, then kills a real process under load, again and again; `true` when nothing was lost,
/// invented or out of order. What is set to 0 is left out.
pub(crate) fn soak(workspace: &Workspace, options: &SoakOptions) -> Result<bool> {
    let seeds = tests(workspace, "sim", "keeps_its_word", ("ONWARD_SIM_SEEDS", options.seeds))?;
    let kills = tests(workspace, "kill", "killed", ("ONWARD_KILL_ROUNDS", options.rounds))?;
    Ok(seeds && kills)
}

/// Runs the tests of the embedded engine that are named so, as often as the variable says.
fn tests(workspace: &Workspace, target: &str, name: &str, (variable, times): (&str, u64)) -> Result<bool> {
    if times == 0 {
        return Ok(true);
    }
    let mut command = workspace.cargo();
    command
        .args(["test", "--quiet", "-p", "onward-embedded", "--test", target, "--", "--nocapture", name])
        .env(variable, times.to_string());
    let status = command.status().context("cannot start cargo")?;
    Ok(status.success())
}

/// Loses a working process with its folder, four times, and prints what is missing afterwards and how long the way back
/// took; `true` when nothing is missing that must be there.
pub(crate) fn drill(workspace: &Workspace, options: &DrillOptions) -> Result<bool> {
    say("| drill | accepted | lost | accepted within the last | brought back | first message after |");
    say("|---|---|---|---|---|---|");
    let mut command = workspace.cargo();
    command
        .args([
            "test",
            "--quiet",
            "--release",
            "-p",
            "onward-keeping",
            "--test",
            "drill",
            "--",
            "--nocapture",
        ])
        .env("ONWARD_DRILL_SECONDS", options.seconds.to_string());
    Ok(command.status().context("cannot start cargo")?.success())
}

fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(name) = &options.only {
        arguments.extend(["--only".to_owned(), name.clone()]);
    }
    let flags = [("--check", options.check), ("--json", options.json)];
    arguments.extend(flags.iter().filter(|(_, given)| *given).map(|(flag, _)| (*flag).to_owned()));
    arguments.extend(options.rest.iter().cloned());
    arguments
}

fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool> {
    if workspace.package("onward-bench").and_then(|package| package.binary("bench")).is_none() {
        bail!("there is no crate onward-bench with a binary `bench` yet: nothing can be measured");
    }
    let mut command = workspace.cargo();
    command
        .args(["run", "--quiet", "--profile", "dist", "-p", "onward-bench", "--bin", "bench", "--"])
        .args(arguments);
    let status = command.stdout(Stdio::inherit()).status().context("cannot start cargo")?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_reaches_the_program() {
        let rest = vec!["--seconds".to_owned(), "5".to_owned()];
        let options = Options { only: Some("cycle".into()), check: true, json: true, rest };
        assert_eq!(arguments(&options), ["--only", "cycle", "--check", "--json", "--seconds", "5"]);
        assert!(arguments(&Options::default()).is_empty());
    }
}
