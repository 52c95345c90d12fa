//! `onward subscribe`: makes a subscription of a topic, or changes it.

use super::queues::declare::{Rules, configured};
use crate::{
    args::values::{Moment, moment, pair},
    context::{Context, require_topic, subscription_name},
    exit::{Exit, Outcome},
};
use onward_core::{Filter, Inlet, InletConfig, Position, StartFrom, Topology, TopologyChange, TopologyDiff};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward subscribe orders:analytics
  onward subscribe orders:emails --from beginning --type 'order.*'
  onward subscribe orders:ledger --from 2h --order-by-key wait --attempts 5
  onward subscribe orders:eu --header region=eu --source shop
  onward subscribe orders:emails --update --lease 1m

A subscription is worked on, looked at and counted as a queue is: `onward work orders:emails --exec ...`.
`onward queues drop orders:emails` removes it.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The subscription, with its topic
    #[arg(value_name = "TOPIC:NAME")]
    inlet: Inlet,
    /// Where a new one begins: `now`, `beginning`, RFC 3339, how long ago as in 2h, or a position as in @123
    #[arg(long, value_name = "PLACE", default_value = "now", value_parser = start, conflicts_with = "update")]
    from: Start,
    /// Take this type, or a prefix as in order.*; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    kinds: Vec<String>,
    /// Take this source; may be repeated
    #[arg(long, value_name = "NAME")]
    source: Vec<String>,
    /// Take messages with this header; may be repeated, and then all must hold
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// Change one that exists; what is not given stays
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    rules: Rules,
}

/// Where a new subscription begins, before times are counted from now.
#[derive(Debug, Clone, Copy)]
enum Start {
    Now,
    Beginning,
    Moment(Moment),
    Position(Position),
}

fn start(text: &str) -> Result<Start, String> {
    match text {
        "now" => Ok(Start::Now),
        "beginning" => Ok(Start::Beginning),
        text => match text.strip_prefix('@') {
            Some(position) => position
                .parse()
                .map(|position| Start::Position(Position(position)))
                .map_err(|_| format!("`{text}` is not a position; write @ and a number, as in @123")),
            None => moment(text).map(Start::Moment).map_err(|_| {
                format!(
                    "`{text}` is not a place; write now, beginning, a time, how long ago as in 2h, or @123"
                )
            }),
        },
    }
}

/// Makes or changes a subscription.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let (topic, name) = subscription_name(&args.inlet)?;
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    require_topic(&topology, &topic)?;
    let (config, filter) = asked(&topology, &args)?;
    let start = match args.from {
        Start::Now => StartFrom::Now,
        Start::Beginning => StartFrom::Beginning,
        Start::Moment(moment) => StartFrom::Time(moment.at(context.env.now())),
        Start::Position(position) => StartFrom::Position(position),
    };
    let update = args.update;
    let change =
        TopologyChange::Subscription { topic, name, config: Box::new(config), filter, start, update };
    let diff = engine.declare(change).await?;
    say(context, &args.inlet, &diff);
    Ok(Exit::Ok)
}

/// The rules and the filter that were asked for: of one that is changed, what was not given stays.
fn asked(topology: &Topology, args: &Args) -> Outcome<(InletConfig, Filter)> {
    let known = topology.inlets.iter().find(|(inlet, _)| *inlet == args.inlet).filter(|_| args.update);
    let base = known.map_or_else(InletConfig::default, |(_, config)| config.clone());
    let filters = topology.filters.iter().find(|(inlet, _)| *inlet == args.inlet).filter(|_| args.update);
    let mut filter = filters.map_or_else(Filter::default, |(_, filter)| filter.clone());
    if !args.kinds.is_empty() {
        filter.types = args.kinds.iter().map(|kind| kind.as_str().into()).collect();
    }
    if !args.source.is_empty() {
        filter.sources = args.source.iter().map(|source| source.as_str().into()).collect();
    }
    if !args.header.is_empty() {
        filter.headers = args.header.iter().cloned().collect();
    }
    Ok((configured(base, &args.rules)?, filter))
}

/// What was done to a subscription.
#[derive(Serialize)]
struct Done<'a> {
    subscription: &'a Inlet,
    done: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    changed: &'a [String],
    clipped: bool,
}

fn say(context: &Context, subscription: &Inlet, diff: &TopologyDiff) {
    let (done, changed) = (super::queues::said(diff), diff.changed.as_slice());
    match (context.out.is_json(), changed.is_empty()) {
        (true, _) => {
            context.out.object(&Done { subscription, done, changed, clipped: diff.clipped });
        }
        (false, true) => context.out.line(format_args!("{subscription}: {done}")),
        (false, false) => context.out.line(format_args!("{subscription}: {done}: {}", changed.join(", "))),
    }
    if diff.clipped {
        context.out.note("what it was to begin with is not kept any more: it begins with the oldest that is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    #[test]
    #[proves("T53")]
    fn a_start_is_a_word_a_time_or_a_position_and_anything_else_is_refused_with_the_mend() {
        assert!(matches!(start("now"), Ok(Start::Now)));
        assert!(matches!(start("beginning"), Ok(Start::Beginning)));
        assert!(matches!(start("2h"), Ok(Start::Moment(Moment::Ago(_)))));
        assert!(matches!(start("@77"), Ok(Start::Position(Position(77)))));
        assert!(start("@x").unwrap_err().contains("@123"));
        assert!(start("yesterday").unwrap_err().contains("beginning"));
    }
}
