//! The `onward` command: messages, workers, dead letters and books from the shell.

mod args;
mod commands;
mod context;
mod exec;
mod exit;
mod journal;
mod output;

use clap::{Parser, error::ErrorKind};
use context::Context;
use exit::{Exit, Failure};
use onward_core::Error;
use onward_env::SystemEnv;
use output::Output;
use std::{process::ExitCode, sync::Arc};

fn main() -> ExitCode {
    match args::Cli::try_parse() {
        Ok(cli) => run(cli).into(),
        Err(error) => refuse(&error).into(),
    }
}

fn run(cli: args::Cli) -> Exit {
    let out = Arc::new(Output::new(cli.global.json, cli.global.quiet));
    journal::write_to_stderr(&cli.global);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            let error = Error::internal(format!("the runtime can't be started: {e}"));
            out.error(&error.into());
            return Exit::Internal;
        }
    };
    let context = Context::new(cli.global.data_dir, SystemEnv::shared(), out);
    let outcome = runtime.block_on(async {
        let outcome = commands::run(&context, cli.command).await;
        context.close().await;
        outcome
    });
    match outcome {
        Ok(exit) => exit,
        Err(failure) => {
            context.out.error(&failure);
            failure.exit
        }
    }
}

/// Help and version are answers; everything else about the command line is an error, in the form asked for.
fn refuse(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // A reader that went away has seen what it wanted.
        let _ = error.print();
        return Exit::Ok;
    }
    let json = std::env::args_os().any(|arg| arg == "--json");
    if json && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let text = error.render().to_string();
        let what = text.trim_start_matches("error: ").split("\n\nUsage:").next().unwrap_or_default();
        let failure = Failure::usage(what.split_whitespace().collect::<Vec<_>>().join(" "), "see --help");
        Output::new(true, false).error(&failure);
    } else {
        let _ = error.print();
    }
    Exit::Usage
}
