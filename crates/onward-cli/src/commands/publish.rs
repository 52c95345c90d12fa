//! `onward publish`: messages from arguments, files and stdin into a topic.

use super::enqueue::{Given, Target, send};
use crate::{context::Context, exit::Outcome};
use onward_core::Name;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward publish orders '{\"type\":\"order.placed\",\"data\":{\"order\":4711}}'
  onward publish orders --type order.paid --order-key 4711 --data '{\"order\":4711}'
  onward publish orders --file events.jsonl --json

A message is written as for `onward enqueue`. It is stored once, whatever the number of subscriptions. The topic is made \
with default rules when it is not there; one that keeps nothing (no retention) and has no subscription lets a message \
go at once.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic; made with default rules when it is not there
    #[arg(value_name = "TOPIC")]
    topic: Name,
    #[command(flatten)]
    given: Given,
}

/// Publishes what was given.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    send(context, Target::Topic(args.topic), args.given).await
}
