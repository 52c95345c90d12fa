//! The project's own tasks: `cargo xtask test`, `checklist`, `tidy`, `conformance`, `bench`, `soak`, `drill`, `ci`.
//!
//! Exit codes: 0 all well, 1 a check failed (or could not be made), 2 the command line was wrong.

mod bench;
mod checklist;
mod ci;
mod claims;
mod conformance;
mod matrix;
mod results;
mod servers;
mod statements;
mod test;
mod tidy;
mod ui;
mod workspace;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use workspace::Workspace;

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build and run every test; ends with `N passed, N failed`
    Test(test::Options),
    /// Join each statement of docs/checklist.md with the tests that claim it and their last results
    Checklist(checklist::Options),
    /// Run the conformance suite on every engine
    Conformance(conformance::Options),
    /// Check layers, banned names, file sizes, manifests, links and licences
    Tidy(tidy::Options),
    /// Measure speed with the program of onward-bench, built for speed
    Bench(bench::Options),
    /// Run the simulator for long, and kill a real process under load again and again
    Soak(bench::SoakOptions),
    /// Lose a working folder and measure what is missing after the way back, and how long it took
    Drill(bench::DrillOptions),
    /// Everything that must hold before a change lands
    Ci(ci::Options),
    /// Say which servers for tests answer on this machine
    Servers,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            ui::note(format!("error: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn run(task: Task) -> Result<bool> {
    let workspace = Workspace::load()?;
    match task {
        Task::Test(options) => test::test(&workspace, &options),
        Task::Checklist(options) => checklist::checklist(&workspace, &options),
        Task::Conformance(options) => conformance::conformance(&workspace, &options),
        Task::Tidy(options) => tidy::tidy(&workspace, &options),
        Task::Bench(options) => bench::bench(&workspace, &options),
        Task::Soak(options) => bench::soak(&workspace, &options),
        Task::Drill(options) => bench::drill(&workspace, &options),
        Task::Ci(options) => ci::ci(&workspace, options),
        Task::Servers => {
            servers::show();
            Ok(true)
        }
    }
}
