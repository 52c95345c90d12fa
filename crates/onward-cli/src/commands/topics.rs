//! `onward topics`: list, declare, drop.

use super::queues::{declare::set_all, said};
use crate::{
    args::values::{duration, pair},
    context::{Context, require_topic},
    exit::{Exit, Outcome},
    output::{Table, bytes, span},
};
use clap::Subcommand;
use onward_core::{Name, TopicConfig, TopicKeeps, TopologyChange};
use serde::Serialize;
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward topics
  onward topics declare orders --keep 7d
  onward topics drop orders";

const DECLARE_EXAMPLES: &str = "\
Examples:
  onward topics declare orders --keep 7d
  onward topics declare clicks --keep-bytes 1000000000
  onward topics declare orders --update --set dedup_window_ms=3600000

With neither --keep nor --keep-bytes a message is kept until every subscription has reached it.";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List topics with what they keep (this is what `onward topics` does)
    #[command(after_help = "Examples:\n  onward topics list\n  onward topics list --json")]
    List,
    /// Make a topic with rules and bounds, or change them
    #[command(after_help = DECLARE_EXAMPLES)]
    Declare(DeclareArgs),
    /// Remove a topic with what it keeps; refused while it has subscriptions
    #[command(after_help = "Examples:\n  onward topics drop orders")]
    Drop(One),
}

#[derive(Debug, clap::Args)]
struct One {
    /// The topic
    #[arg(value_name = "TOPIC")]
    topic: Name,
}

#[derive(Debug, clap::Args)]
struct DeclareArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    topic: Name,
    /// Change a topic that exists; what is not given stays
    #[arg(long)]
    update: bool,
    /// Keep messages so long, whether subscriptions have reached them or not
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    keep: Option<Duration>,
    /// Keep at most so many bytes, whether subscriptions have reached them or not
    #[arg(long, value_name = "BYTES")]
    keep_bytes: Option<u64>,
    /// Any rule or bound, as in dedup_window_ms=60000; the value is JSON, or text
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

/// Runs one action on topics.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action.unwrap_or(Action::List) {
        Action::List => list(context).await,
        Action::Declare(args) => declare(context, args).await,
        Action::Drop(one) => drop_topic(context, one.topic).await,
    }
}

async fn declare(context: &Context, args: DeclareArgs) -> Outcome {
    let engine = context.open().await?;
    let known = engine.topology().await?.topics.into_iter().find(|(name, _)| *name == args.topic);
    let mut config = match known {
        Some((_, config)) if args.update => config,
        _ => TopicConfig::default(),
    };
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    config.retention_ms = args.keep.map(millis).or(config.retention_ms);
    config.retention_bytes = args.keep_bytes.or(config.retention_bytes);
    let config = set_all(config, &args.set)?;
    let change = TopologyChange::Topic { name: args.topic.clone(), config, update: args.update };
    let diff = engine.declare(change).await?;
    say(context, &args.topic, said(&diff), &diff.changed);
    Ok(Exit::Ok)
}

async fn drop_topic(context: &Context, topic: Name) -> Outcome {
    let engine = context.open_existing().await?;
    require_topic(&engine.topology().await?, &topic)?;
    engine.declare(TopologyChange::DropTopic { name: topic.clone() }).await?;
    say(context, &topic, "dropped", &[]);
    Ok(Exit::Ok)
}

/// What was done to a topic.
#[derive(Serialize)]
struct Done<'a> {
    topic: &'a Name,
    done: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    changed: &'a [String],
}

fn say(context: &Context, topic: &Name, done: &str, changed: &[String]) {
    match (context.out.is_json(), changed.is_empty()) {
        (true, _) => context.out.object(&Done { topic, done, changed }),
        (false, true) => context.out.line(format_args!("{topic}: {done}")),
        (false, false) => context.out.line(format_args!("{topic}: {done}: {}", changed.join(", "))),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    keeps: &'a TopicKeeps,
    config: &'a TopicConfig,
}

async fn list(context: &Context) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    let rows = topology.topics.iter().filter_map(|(name, config)| {
        topology.kept.iter().find(|keeps| keeps.topic == *name).map(|keeps| (keeps, config))
    });
    if context.out.is_json() {
        rows.for_each(|(keeps, config)| context.out.object(&Line { keeps, config }));
        return Ok(Exit::Ok);
    }
    let now = context.env.now();
    let mut table =
        Table::new(&["TOPIC", ">PUBLISHED", ">KEPT", ">BYTES", ">OLDEST", ">SUBSCRIPTIONS", "KEEPS"]);
    for (keeps, config) in rows {
        table.row(vec![
            keeps.topic.to_string(),
            keeps.published.to_string(),
            keeps.messages.to_string(),
            bytes(keeps.bytes),
            keeps.oldest_at.map_or("-".to_owned(), |at| span(now.since(at))),
            keeps.subscriptions.to_string(),
            retention(config),
        ]);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
    Ok(Exit::Ok)
}

fn retention(config: &TopicConfig) -> String {
    let age = config.retention_ms.map(|ms| span(Duration::from_millis(ms)));
    let size = config.retention_bytes.map(bytes);
    match (age, size) {
        (None, None) => "until all have reached it".to_owned(),
        (age, size) => age.into_iter().chain(size).collect::<Vec<_>>().join(", "),
    }
}
