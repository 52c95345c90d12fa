//! `onward dead`: what was set aside, why, and how it goes on.

mod bulk;
mod edit;
mod list;

use crate::{context::Context, exit::Outcome};
use clap::Subcommand;
use onward_core::{Inlet, MessageId};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward dead list emails
  onward dead show emails msg-12345
  onward dead edit emails msg-12345 --set-data '{\"to\":\"ada@example.com\"}'
  onward dead redrive emails --all --rate 10/s";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List dead letters with their last error
    #[command(after_help = list::LIST_EXAMPLES)]
    List(list::ListArgs),
    /// Show a dead letter in full: message, every error, original
    #[command(after_help = list::SHOW_EXAMPLES)]
    Show(One),
    /// Change a dead letter: a new edition; the original is kept
    #[command(after_help = edit::EXAMPLES)]
    Edit(edit::Args),
    /// Move dead letters back to work, keeping id, history and correlation
    #[command(after_help = bulk::REDRIVE_EXAMPLES)]
    Redrive(bulk::RedriveArgs),
    /// Remove dead letters for good; they are counted as purged
    #[command(after_help = bulk::PURGE_EXAMPLES)]
    Purge(bulk::PurgeArgs),
}

/// One dead letter.
#[derive(Debug, clap::Args)]
struct One {
    /// The queue
    #[arg(value_name = "QUEUE")]
    inlet: Inlet,
    /// The message's id
    #[arg(value_parser = |text: &str| MessageId::try_from(text))]
    id: MessageId,
}

/// Runs one action on dead letters.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action {
        Action::List(args) => list::list(context, args).await,
        Action::Show(one) => list::show(context, one).await,
        Action::Edit(args) => edit::run(context, args).await,
        Action::Redrive(args) => bulk::redrive(context, args).await,
        Action::Purge(args) => bulk::purge(context, args).await,
    }
}
