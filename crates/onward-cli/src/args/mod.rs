//! The command line: what may be written, with examples for each command.

mod filter;
pub(crate) mod values;

pub(crate) use filter::{Filters, matches};

use crate::{commands, exit::EXIT_CODES};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Asynchronous work that doesn't get lost: queues, workers and dead letters from the shell.
///
/// Everything is kept in one data folder. Any number of terminals and programs may work on it at the same time: the
/// first one holds it, the others reach it through a socket in the folder.
#[derive(Debug, Parser)]
#[command(name = "onward", version, after_help = EXIT_CODES, propagate_version = true)]
#[command(max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "ONWARD_DATA_DIR", default_value = "onward-data")]
    pub(crate) data_dir: PathBuf,
    /// Write one JSON object a line, to stdout and to stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No notes, no progress; results and errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Tell more of what goes on inside, to stderr; twice for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it at work: pictures become thumbnails while an event is lost and a worker is killed
    #[command(after_help = commands::demo::EXAMPLES)]
    Demo(commands::demo::Args),
    /// Put messages into a queue; prints the id of each once it is durable
    #[command(after_help = commands::enqueue::EXAMPLES)]
    Enqueue(commands::enqueue::Args),
    /// Work on a queue with any program
    #[command(after_help = commands::work::EXAMPLES, long_about = commands::work::ABOUT)]
    Work(commands::work::Args),
    /// List queues, declare, pause, resume and drop them
    #[command(after_help = commands::queues::EXAMPLES)]
    Queues(commands::queues::Args),
    /// Enqueue messages by the clock: list schedules, put, remove, preview
    #[command(after_help = commands::schedules::EXAMPLES)]
    Schedules(commands::schedules::Args),
    /// List topics, declare and drop them
    #[command(after_help = commands::topics::EXAMPLES)]
    Topics(commands::topics::Args),
    /// Publish messages to a topic, once for all its subscriptions; prints the id of each once it is durable
    #[command(after_help = commands::publish::EXAMPLES)]
    Publish(commands::publish::Args),
    /// Make a subscription of a topic, or change it
    #[command(after_help = commands::subscribe::EXAMPLES)]
    Subscribe(commands::subscribe::Args),
    /// List subscriptions with their lag, filter and replay epoch
    #[command(after_help = commands::subscriptions::EXAMPLES)]
    Subscriptions(commands::subscriptions::Args),
    /// Move a subscription: back to process again, back to fill gaps, or ahead
    #[command(after_help = commands::seek::EXAMPLES)]
    Seek(commands::seek::Args),
    /// Show what a topic keeps, and what is published from now on
    #[command(after_help = commands::tail::EXAMPLES)]
    Tail(commands::tail::Args),
    /// Look at messages without taking them
    #[command(after_help = commands::peek::EXAMPLES)]
    Peek(commands::peek::Args),
    /// Find a message by its id, in whatever state
    #[command(after_help = commands::find::EXAMPLES)]
    Find(commands::find::Args),
    /// Cancel a message by its id
    #[command(after_help = commands::cancel::EXAMPLES)]
    Cancel(commands::cancel::Args),
    /// Dead letters: list, show, edit, redrive, purge
    #[command(after_help = commands::dead::EXAMPLES)]
    Dead(commands::dead::Args),
    /// Append events to a stream, all of them or none
    #[command(after_help = commands::append::EXAMPLES)]
    Append(commands::append::Args),
    /// Read events: of a stream, a category, by type and tag, or all
    #[command(after_help = commands::read::EXAMPLES)]
    Read(commands::read::Args),
    /// List streams, and how far each goes
    #[command(after_help = commands::streams::EXAMPLES)]
    Streams(commands::streams::Args),
    /// Remove a stream's events before a revision, for good
    #[command(after_help = commands::truncate::EXAMPLES)]
    Truncate(commands::truncate::Args),
    /// Everything that bears a correlation id, in time order
    #[command(after_help = commands::trace::EXAMPLES)]
    Trace(commands::trace::Args),
    /// Numbers of queues, and who works on what
    #[command(after_help = commands::stats::EXAMPLES)]
    Stats(commands::stats::Args),
    /// The books: whether everything accepted is accounted for
    #[command(after_help = commands::balance::EXAMPLES)]
    Balance(commands::balance::Args),
    /// Check a data folder or a backup without changing it
    #[command(after_help = commands::verify::EXAMPLES)]
    Verify(commands::verify::Args),
    /// Copy the data folder somewhere safe, while it is worked on
    #[command(after_help = commands::backup::EXAMPLES)]
    Backup(commands::backup::Args),
    /// Make a data folder of a backup, in an epoch of its own
    #[command(after_help = commands::restore::EXAMPLES)]
    Restore(commands::restore::Args),
    /// Copy the data folder's log somewhere safe all the time, a moment behind the work
    #[command(after_help = commands::ship::EXAMPLES)]
    Ship(commands::ship::Args),
    /// Follow a shipped folder, ready to take its place
    #[command(after_help = commands::standby::EXAMPLES)]
    Standby(commands::standby::Args),
    /// Make a standby the folder that is worked on, and stop the original
    #[command(after_help = commands::standby::PROMOTE_EXAMPLES)]
    Promote(commands::standby::PromoteArgs),
    /// Write everything as lines of JSON
    #[command(after_help = commands::export::EXAMPLES)]
    Export(commands::export::Args),
    /// Take what `onward export` wrote
    #[command(after_help = commands::import::EXAMPLES)]
    Import(commands::import::Args),
    /// Make the folder's format the newest that this version knows
    #[command(after_help = commands::upgrade::EXAMPLES)]
    Upgrade(commands::upgrade::Args),
    /// Serve queues and jobs over HTTP, for programs in any language
    #[command(after_help = commands::serve::EXAMPLES)]
    Serve(commands::serve::Args),
    /// Make a token for the HTTP API
    #[command(after_help = commands::token::EXAMPLES)]
    Token(commands::token::Args),
    /// Measure durable work on this disk
    #[command(after_help = commands::bench::EXAMPLES)]
    Bench(commands::bench::Args),
    /// Print the completions of a shell
    #[command(after_help = commands::shell::COMPLETIONS_EXAMPLES)]
    Completions(commands::shell::CompletionsArgs),
    /// Print the man page, or write one for each command into a folder
    #[command(after_help = commands::shell::MAN_EXAMPLES)]
    Man(commands::shell::ManArgs),
    /// Kills the commands of a worker that died
    #[command(name = crate::exec::guard::COMMAND, hide = true)]
    Guard,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use onward_proves::proves;

    fn leaves(command: &clap::Command, found: &mut Vec<clap::Command>) {
        let mut subs =
            command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").peekable();
        if subs.peek().is_none() {
            found.push(command.clone());
        }
        subs.for_each(|sub| leaves(sub, found));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    #[proves("T58")]
    fn every_command_shows_an_example_that_its_own_parser_accepts() {
        let mut found = Vec::new();
        leaves(&Cli::command(), &mut found);
        assert!(found.len() >= 12, "only {} commands", found.len());
        for command in found {
            let name = command.get_name().to_owned();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> = help.lines().filter(|l| l.starts_with("  onward ")).collect();
            assert!(!examples.is_empty(), "`{name}` shows no example");
            for example in examples {
                let call = &example[example.find("onward ").unwrap()..];
                let words = shell_words(call);
                let parsed = Cli::try_parse_from(&words);
                assert!(
                    parsed.is_ok(),
                    "`{name}` shows `{call}`, which does not parse: {}",
                    parsed.unwrap_err()
                );
            }
        }
    }

    /// The words of a shell line up to a pipe or redirection, with single quotes as the only quoting.
    fn shell_words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                '|' | '>' | '#' if !quoted => break,
                ' ' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|w| !w.is_empty());
        words
    }
}
