//! `conformance`: runs the suite and says how each check ended on each engine.

use anyhow::{Context, Result, bail};
use clap::Parser;
use onward_conformance::{
    Check, Harness, Options, Status, Suite, Verdict,
    doubles::{DOUBLES, catch},
    run,
};
use onward_conformance_run::{ONLY_BY_NAME, SERVE, harnesses, serve};
use std::{collections::BTreeMap, io::Write, process::ExitCode, sync::Arc, time::Duration};

/// Runs the conformance suite: each check on each engine.
///
/// Exits with 0 when nothing failed, with 1 when a check failed, with 2 when the call was wrong.
#[derive(Debug, Parser)]
#[command(name = "conformance", after_help = "Example: conformance --engine memory --check dedup --json")]
struct Cli {
    /// Only this engine
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Only checks whose group is this or whose name has this in it
    #[arg(long, value_name = "TEXT")]
    check: Option<String>,
    /// Print one JSON object a line on stdout, nothing else
    #[arg(long)]
    json: bool,
    /// Print the checks with their groups, sentences and the statements that they prove, and run nothing
    #[arg(long)]
    list: bool,
    /// Run every faulty double around an engine (the reference model, or `--engine memory`), and say who is caught
    #[arg(long)]
    doubles: bool,
    /// Messages of the stress check
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    messages: u64,
    /// Random sequences compared with the reference model
    #[arg(long, default_value_t = 200, value_name = "COUNT")]
    seeds: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match arguments.split_first() {
        Some((first, rest)) if first == SERVE => serve(rest).map(|()| true),
        _ => suite(),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn suite() -> Result<bool> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(work(&cli))
}

async fn work(cli: &Cli) -> Result<bool> {
    let checks = chosen_checks(cli)?;
    if cli.list {
        list(&checks, cli.json)?;
        return Ok(true);
    }
    if cli.doubles {
        return doubles(cli).await;
    }
    let options = Options { messages: cli.messages, seeds: cli.seeds, ..Options::default() };
    let mut verdicts = Vec::new();
    for harness in chosen_engines(cli)? {
        for check in &checks {
            let verdict = run(&*harness, check, &options).await;
            show(&verdict, cli.json)?;
            verdicts.push(verdict);
        }
    }
    if !cli.json {
        summary(&verdicts)?;
    }
    Ok(verdicts.iter().all(|v| v.status != Status::Fail))
}

/// Each double must fail the check of its own rule, and pass the others but those that rest on the same rule.
async fn doubles(cli: &Cli) -> Result<bool> {
    let options = Options { messages: cli.messages.min(400), seeds: 1, check_max: Duration::from_secs(20) };
    let name = cli.engine.as_deref().unwrap_or(ONLY_BY_NAME);
    let found = harnesses(std::env::current_exe()?).into_iter().find(|h| h.name() == name);
    let harness: Arc<dyn Harness> = found.with_context(|| format!("there is no engine `{name}`"))?.into();
    let mut right = true;
    for rule in DOUBLES {
        let caught = catch(harness.clone(), rule, &options).await;
        right &= caught.is_right();
        let mut out = std::io::stdout().lock();
        if cli.json {
            let line = serde_json::json!({
                "double": rule.name, "caught_by": rule.caught_by, "caught": caught.caught, "strays": caught.strays,
            });
            writeln!(out, "{line}")?;
        } else {
            let word = if caught.is_right() { "caught" } else { "WRONG" };
            writeln!(out, "{word:<8} {:<32} {} {}", rule.name, rule.caught_by, caught.strays.join("; "))?;
        }
    }
    Ok(right)
}

fn chosen_checks(cli: &Cli) -> Result<Vec<&'static Check>> {
    let fits =
        |check: &&Check| cli.check.as_ref().is_none_or(|t| check.group == t || check.name.contains(&**t));
    let checks: Vec<_> = Suite::checks().filter(fits).collect();
    if checks.is_empty() {
        bail!("no check fits `{}`; `--list` shows them all", cli.check.as_deref().unwrap_or_default());
    }
    Ok(checks)
}

fn chosen_engines(cli: &Cli) -> Result<Vec<Box<dyn Harness>>> {
    let all = harnesses(std::env::current_exe()?);
    let names: Vec<String> = all.iter().map(|h| h.name().to_owned()).collect();
    let wanted = |name: &str| cli.engine.as_ref().map_or(name != ONLY_BY_NAME, |wanted| wanted == name);
    let chosen: Vec<_> = all.into_iter().filter(|h| wanted(h.name())).collect();
    match &cli.engine {
        Some(name) if chosen.is_empty() => bail!("no engine `{name}`; there are {}", names.join(", ")),
        _ => Ok(chosen),
    }
}

fn list(checks: &[&Check], json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for check in checks {
        if json {
            let line = serde_json::json!({
                "check": check.name, "group": check.group, "proves": check.proves, "sentence": check.sentence,
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{:<12} {:<52} {}", check.group, check.name, check.sentence)?;
        }
    }
    Ok(())
}

fn show(verdict: &Verdict, json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(verdict)?)?;
    } else {
        let reason = verdict.reason.as_deref().unwrap_or_default();
        writeln!(out, "{:<8} {:<9} {:<52} {reason}", word(verdict.status), verdict.engine, verdict.check)?;
    }
    out.flush()?;
    Ok(())
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "FAIL",
        Status::Refused => "refused",
        Status::NotRun => "not run",
    }
}

fn summary(verdicts: &[Verdict]) -> Result<()> {
    let mut engines: BTreeMap<&str, BTreeMap<Status, usize>> = BTreeMap::new();
    for verdict in verdicts {
        *engines.entry(&verdict.engine).or_default().entry(verdict.status).or_default() += 1;
    }
    let mut out = std::io::stdout().lock();
    for (engine, counts) in engines {
        let counts: Vec<String> = counts.iter().map(|(s, count)| format!("{count} {}", word(*s))).collect();
        writeln!(out, "{engine}: {}", counts.join(", "))?;
    }
    Ok(())
}
