//! `onward subscriptions`: the list, with lag, filter and replay epoch.

use crate::{
    context::{Context, require_topic},
    exit::{Exit, Outcome},
    output::{Table, one_line, span},
};
use onward_core::{Filter, Inlet, Lag, Name, Stats};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward subscriptions
  onward subscriptions orders
  onward subscriptions --json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Of this topic; of all when none is named
    #[arg(value_name = "TOPIC")]
    topic: Option<Name>,
}

#[derive(Serialize)]
struct Line<'a> {
    subscription: &'a Inlet,
    filter: &'a Filter,
    #[serde(flatten)]
    stats: &'a Stats,
    lag: Lag,
}

/// Lists subscriptions.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    if let Some(topic) = &args.topic {
        require_topic(&topology, topic)?;
    }
    let wanted = |inlet: &Inlet| match inlet {
        Inlet::Subscription { topic, .. } => args.topic.as_ref().is_none_or(|wanted| wanted == topic),
        Inlet::Queue(_) => false,
    };
    let inlets: Vec<Inlet> =
        topology.inlets.iter().map(|(inlet, _)| inlet).filter(|i| wanted(i)).cloned().collect();
    let stats = if inlets.is_empty() { Vec::new() } else { engine.stats(inlets).await? };
    let all = Filter::default();
    let filter_of = |inlet: &Inlet| {
        topology.filters.iter().find(|(known, _)| known == inlet).map_or(&all, |(_, filter)| filter)
    };
    let now = context.env.now();
    let mut table = Table::new(&[
        "SUBSCRIPTION",
        ">LAG",
        ">OLDEST",
        ">LEASED",
        ">DEAD",
        ">DONE",
        ">SHED",
        ">REPLAY",
        "TAKES",
    ]);
    for one in &stats {
        let (lag, filter) = (one.lag.unwrap_or_default(), filter_of(&one.inlet));
        if context.out.is_json() {
            context.out.object(&Line { subscription: &one.inlet, filter, stats: one, lag });
            continue;
        }
        table.row(vec![
            one.inlet.to_string(),
            lag.messages.to_string(),
            lag.oldest.map_or("-".to_owned(), |at| span(now.since(at))),
            one.books.leased.to_string(),
            one.books.dead.to_string(),
            one.books.done.to_string(),
            one.books.shed.to_string(),
            lag.replay.to_string(),
            takes(filter),
        ]);
    }
    if !context.out.is_json() {
        context.out.write(table.render(context.out.style()).as_bytes());
    }
    Ok(Exit::Ok)
}

fn takes(filter: &Filter) -> String {
    if filter.is_all() {
        return "all".to_owned();
    }
    let headers = filter.headers.iter().map(|(name, value)| format!("{name}={value}"));
    let parts: Vec<String> = filter
        .types
        .iter()
        .map(ToString::to_string)
        .chain(filter.sources.iter().map(|source| format!("from {source}")))
        .chain(headers)
        .collect();
    one_line(&parts.join(", "), 60)
}
