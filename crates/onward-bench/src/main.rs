//! Benchmarks beside a bare log on the same disk in the same run.
//!
//! Each contestant of each round runs in a process of its own, in turn, so that neither has the other's memory or cache.
//! Ratios hold; absolute numbers are this machine's. Figures are never asserted by tests: `--check` compares the medians
//! with the goals that stand beside each benchmark.

mod delayed;
mod floor;
mod latency;
mod limits;
mod load;
mod ours;
mod plan;
mod raw;
mod report;
mod streams;
mod topics;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use plan::{BENCHES, Bench, Contestant, Sizes};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Benchmarks of the embedded engine beside a bare log.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// Only benchmarks whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Compare with the goals; exit 1 when one is missed.
    #[arg(long)]
    check: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
    /// The folder to measure in: on a real disk, not tmpfs.
    #[arg(long, default_value = "bench-data")]
    dir: PathBuf,
    /// Rounds; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Messages waiting, where a benchmark is about a backlog.
    #[arg(long, default_value_t = 500_000)]
    backlog: u64,
    /// Runs one contestant and prints its figures: how each measurement is started.
    #[arg(long, hide = true, num_args = 2, value_names = ["BENCH", "CONTESTANT"])]
    one: Option<Vec<String>>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<bool> {
    let sizes = Sizes { seconds: args.seconds, backlog: args.backlog };
    if let Some(one) = &args.one {
        let measured = plan::measure(&one[0], &one[1], &args.dir, &sizes)?;
        println!("{}", serde_json::to_string(&measured)?);
        return Ok(true);
    }
    ensure!((1..=50).contains(&args.rounds), "use 1 to 50 rounds");
    ensure!((0.5..=600.0).contains(&args.seconds), "use 0.5 to 600 seconds");
    std::fs::create_dir_all(&args.dir)
        .with_context(|| format!("the folder {} can't be made", args.dir.display()))?;
    let wanted = |bench: &&Bench| args.only.as_ref().is_none_or(|only| bench.name.contains(only.as_str()));
    let benches: Vec<&Bench> = BENCHES.iter().filter(wanted).collect();
    ensure!(!benches.is_empty(), "no benchmark of that name; there are: {}", plan::names());
    let floor = floor::measure(&args.dir)?;
    report::floor(&floor, args.json)?;
    let mut held = true;
    for bench in benches {
        let rows = contest(bench, args)?;
        held &= report::bench(bench, &rows, args.json)?;
    }
    Ok(held || !args.check)
}

/// All rounds of a benchmark, the contestants in turn.
fn contest(bench: &Bench, args: &Args) -> Result<Vec<(Contestant, Vec<plan::Measured>)>> {
    let mut rows: Vec<_> = bench.contestants.iter().map(|c| (*c, Vec::new())).collect();
    let rounds = if bench.once { 1 } else { args.rounds };
    for round in 0..rounds {
        for (contestant, measured) in &mut rows {
            eprintln!("{} {contestant} {}/{rounds}", bench.name, round + 1);
            measured.push(one(bench, *contestant, args)?);
        }
    }
    Ok(rows)
}

fn one(bench: &Bench, contestant: Contestant, args: &Args) -> Result<plan::Measured> {
    let dir = args.dir.join("run");
    let _ = std::fs::remove_dir_all(&dir);
    let output = Command::new(std::env::current_exe()?)
        .args(["--one", bench.name, &contestant.to_string()])
        .arg("--dir")
        .arg(&dir)
        .args(["--seconds", &args.seconds.to_string(), "--backlog", &args.backlog.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    let _ = std::fs::remove_dir_all(&dir);
    ensure!(output.status.success(), "{} {contestant} ended with {}", bench.name, output.status);
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} {contestant} printed no figures", bench.name))
}
