//! Declaring a queue: friendly options for what is set often, `--set` for every rule and bound.

use super::{limits::Limits, said, say};
use crate::{
    args::values::{duration, pair},
    context::{Context, nearest, queue_name},
    exit::{Exit, Failure, Outcome},
};
use clap::ValueEnum;
use onward_core::{DeliveryGuarantee, Error, Inlet, InletConfig, OrderPolicy, StuckHead, TopologyChange};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  onward queues declare emails --attempts 3 --lease 10s
  onward queues declare payments --order-by-key wait --dedup-window 1d
  onward queues declare clicks --at-most-once
  onward queues declare emails --concurrency-max 20 --rate 10/s --rate-per-key 100/m
  onward queues declare emails --update --set retry.delay_max_ms=60000

`onward queues show QUEUE` lists every rule and bound that --set takes, with its value.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: Inlet,
    /// Change a queue that exists; what is not given stays
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    rules: Rules,
}

/// Rules and bounds of a queue or a subscription.
#[derive(Debug, clap::Args)]
pub(crate) struct Rules {
    /// Acknowledge before the worker sees it: never twice, but a failure loses the message
    #[arg(long)]
    at_most_once: bool,
    /// Keep the order of each order key; what happens behind a dead letter must be said
    #[arg(long, value_name = "STUCK-HEAD")]
    order_by_key: Option<Stuck>,
    /// Attempts in all, before a message is a dead letter
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempts: Option<u32>,
    /// How long a lease lasts
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    lease: Option<Duration>,
    /// How long a finished id is remembered
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    dedup_window: Option<Duration>,
    /// Most unfinished messages
    #[arg(long, value_name = "N")]
    depth_max: Option<u64>,
    /// How long results of finished messages are kept
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    keep_results: Option<Duration>,
    #[command(flatten)]
    limits: Limits,
    /// Any rule or bound, as in retry.attempts_max=3; the value is JSON, or text
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Stuck {
    /// The key is blocked until the dead letter is redriven or purged
    Wait,
    /// Later messages of the key follow it to the dead letters
    SetAside,
}

/// Makes or changes a queue.
pub(super) async fn run(context: &Context, args: Args) -> Outcome {
    let name = queue_name(&args.queue)?;
    let engine = context.open().await?;
    let known = engine.topology().await?.inlets.into_iter().find(|(inlet, _)| *inlet == args.queue);
    let base = match known {
        Some((_, config)) if args.update => config,
        _ => InletConfig::default(),
    };
    let config = configured(base, &args.rules)?;
    config.check()?;
    let change = TopologyChange::Queue { name, config: Box::new(config), update: args.update };
    let diff = engine.declare(change).await?;
    say(context, &args.queue, said(&diff), &diff.changed);
    Ok(Exit::Ok)
}

/// Rules with what was given in their place.
pub(crate) fn configured(mut config: InletConfig, args: &Rules) -> Outcome<InletConfig> {
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if args.at_most_once {
        config.guarantee = DeliveryGuarantee::AtMostOnce;
    }
    if let Some(stuck) = args.order_by_key {
        let stuck_head = match stuck {
            Stuck::Wait => StuckHead::Wait,
            Stuck::SetAside => StuckHead::SetAside,
        };
        config.order = OrderPolicy::ByKey { stuck_head };
    }
    config.retry.attempts_max = args.attempts.unwrap_or(config.retry.attempts_max);
    config.lease_ms = args.lease.map_or(config.lease_ms, millis);
    config.dedup_window_ms = args.dedup_window.map_or(config.dedup_window_ms, millis);
    config.depth_max = args.depth_max.unwrap_or(config.depth_max);
    config.result_retention_ms = args.keep_results.map_or(config.result_retention_ms, millis);
    args.limits.set(&mut config);
    set_all(config, &args.set)
}

/// Sets rules and bounds by their names.
pub(crate) fn set_all<T: Serialize + DeserializeOwned>(config: T, all: &[(String, String)]) -> Outcome<T> {
    all.iter().try_fold(config, |config, (path, value)| set(&config, path, value))
}

/// Sets one rule or bound by its name. Unknown names are refused with the nearest known one.
fn set<T: Serialize + DeserializeOwned>(config: &T, path: &str, value: &str) -> Outcome<T> {
    let wrong = |e: serde_json::Error| Error::invalid(format!("`{value}` does not fit: {e}")).at(path);
    let mut whole = serde_json::to_value(config).map_err(wrong)?;
    let mut place = &mut whole;
    for part in path.split('.') {
        let fields = place.as_object_mut();
        let known: Vec<String> = fields.iter().flat_map(|f| f.keys().cloned()).collect();
        place = match fields.and_then(|fields| fields.get_mut(part)) {
            Some(place) => place,
            None => return Err(unknown(path, part, known)),
        };
    }
    *place = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok(serde_json::from_value(whole).map_err(wrong)?)
}

fn unknown(path: &str, part: &str, known: Vec<String>) -> Failure {
    let mend = match nearest(part, known.iter().cloned()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    };
    Failure::usage(format!("--set {path}: there is no rule or bound `{part}`"), mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    #[test]
    fn every_rule_and_bound_can_be_set_by_its_name() {
        let config = InletConfig::default();
        let config = set(&config, "retry.attempts_max", "3").unwrap();
        let config = set(&config, "guarantee", "at_most_once").unwrap();
        let config = set(&config, "rate", r#"{"count":10,"per_ms":1000,"burst":20}"#).unwrap();
        assert_eq!(config.retry.attempts_max, 3);
        assert_eq!(config.guarantee, DeliveryGuarantee::AtMostOnce);
        assert_eq!(config.rate.map(|r| r.burst), Some(20));
    }

    #[test]
    #[proves("T53")]
    fn an_unknown_rule_is_refused_with_the_nearest_one_and_a_value_that_does_not_fit_with_its_reason() {
        let config = InletConfig::default();
        let unknown = set(&config, "retry.atempts_max", "3").unwrap_err();
        assert!(unknown.error.to_string().contains("did you mean `attempts_max`?"), "{}", unknown.error);
        assert_eq!(unknown.exit, Exit::Usage);
        let inner = set(&config, "rate", r#"{"count":1,"per_ms":1,"bursts":1}"#).unwrap_err();
        assert!(inner.error.to_string().contains("bursts"), "{}", inner.error);
        assert!(set(&config, "lease_ms", "soon").unwrap_err().error.to_string().contains("lease_ms"));
    }
}
