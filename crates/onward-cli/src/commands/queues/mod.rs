//! `onward queues`: list, show, declare, pause, resume, drop.

pub(super) mod declare;
pub(super) mod limits;
mod list;

use crate::{
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
};
use clap::Subcommand;
use onward_core::{Inlet, Op, TopologyChange, TopologyDiff};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward queues
  onward queues declare emails --attempts 3 --lease 10s
  onward queues pause emails";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List queues with depth, age and guarantee (this is what `onward queues` does)
    #[command(after_help = "Examples:\n  onward queues list\n  onward queues list --json")]
    List,
    /// Show every rule and bound of a queue as JSON
    #[command(after_help = "Examples:\n  onward queues show emails")]
    Show(One),
    /// Make a queue with rules and bounds, or change them
    #[command(after_help = declare::EXAMPLES)]
    Declare(Box<declare::Args>),
    /// Hand out nothing until resumed; accepting goes on
    #[command(after_help = "Examples:\n  onward queues pause emails")]
    Pause(One),
    /// Hand out again
    #[command(after_help = "Examples:\n  onward queues resume emails")]
    Resume(One),
    /// Remove a queue; refused unless it is empty, dead letters included
    #[command(
        after_help = "Examples:\n  onward queues drop emails\n  onward queues drop emails --with-messages"
    )]
    Drop(DropArgs),
}

#[derive(Debug, clap::Args)]
struct One {
    /// The queue
    #[arg(value_name = "QUEUE")]
    inlet: Inlet,
}

#[derive(Debug, clap::Args)]
struct DropArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    inlet: Inlet,
    /// Also when messages are in it; they are lost
    #[arg(long)]
    with_messages: bool,
}

/// Runs one action on queues.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action.unwrap_or(Action::List) {
        Action::List => list::run(context).await,
        Action::Show(one) => show(context, one.inlet).await,
        Action::Declare(args) => declare::run(context, *args).await,
        Action::Pause(one) => {
            operate(context, "paused", one.inlet.clone(), Op::Pause { inlet: one.inlet }).await
        }
        Action::Resume(one) => {
            operate(context, "resumed", one.inlet.clone(), Op::Resume { inlet: one.inlet }).await
        }
        Action::Drop(args) => drop_queue(context, args).await,
    }
}

async fn show(context: &Context, inlet: Inlet) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    require_inlet(&topology, &inlet)?;
    for (_, config) in topology.inlets.iter().filter(|(known, _)| *known == inlet) {
        match context.out.is_json() {
            true => context.out.object(config),
            false => context.out.line(serde_json::to_string_pretty(config).unwrap_or_default()),
        }
    }
    Ok(Exit::Ok)
}

async fn operate(context: &Context, done: &'static str, inlet: Inlet, op: Op) -> Outcome {
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, &inlet)?;
    engine.commit(engine.prepare(vec![op])?).await?;
    say(context, &inlet, done, &[]);
    Ok(Exit::Ok)
}

async fn drop_queue(context: &Context, args: DropArgs) -> Outcome {
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, &args.inlet)?;
    let change = TopologyChange::DropInlet { inlet: args.inlet.clone(), only_if_empty: !args.with_messages };
    engine.declare(change).await?;
    say(context, &args.inlet, "dropped", &[]);
    Ok(Exit::Ok)
}

/// What was done to a queue.
#[derive(Serialize)]
struct Done<'a> {
    queue: &'a Inlet,
    done: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    changed: &'a [String],
}

fn say(context: &Context, queue: &Inlet, done: &str, changed: &[String]) {
    match (context.out.is_json(), changed.is_empty()) {
        (true, _) => context.out.object(&Done { queue, done, changed }),
        (false, true) => context.out.line(format_args!("{queue}: {done}")),
        (false, false) => context.out.line(format_args!("{queue}: {done}: {}", changed.join(", "))),
    }
}

pub(super) fn said(diff: &TopologyDiff) -> &'static str {
    match (diff.created, diff.changed.is_empty()) {
        (true, _) => "created",
        (false, true) => "unchanged",
        (false, false) => "changed",
    }
}
