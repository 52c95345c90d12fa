//! The list of queues: depth, age, what they promise.

use super::limits;
use crate::{
    context::Context,
    exit::{Exit, Outcome},
    output::{Table, span},
};
use onward_core::{Books, DeliveryGuarantee, Inlet, InletConfig, OrderPolicy, Stats, StuckHead, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Line<'a> {
    queue: &'a Inlet,
    guarantee: DeliveryGuarantee,
    order: OrderPolicy,
    depth: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_waiting: Option<Timestamp>,
    #[serde(flatten)]
    books: Books,
    paused: bool,
    stopped_dead_full: bool,
    approximate: bool,
    limits: limits::Line,
}

/// Lists every queue and subscription.
pub(super) async fn run(context: &Context) -> Outcome {
    let engine = context.open_existing().await?;
    let configs: BTreeMap<Inlet, InletConfig> = engine.topology().await?.inlets.into_iter().collect();
    let stats = engine.stats(Vec::new()).await?;
    // One that was dropped between the two reads is left out.
    let rows = stats.iter().filter_map(|stats| configs.get(&stats.inlet).map(|config| (stats, config)));
    if context.out.is_json() {
        rows.map(|(stats, config)| line(stats, config)).for_each(|line| context.out.object(&line));
        return Ok(Exit::Ok);
    }
    let now = context.env.now();
    let style = context.out.style();
    let mut table = Table::new(&[
        "QUEUE",
        ">WAITING",
        ">DELAYED",
        ">LEASED",
        ">DEAD",
        ">DONE",
        ">OLDEST",
        "GUARANTEE",
        "ORDER",
        "LIMITS",
        "STATE",
    ]);
    for (stats, config) in rows {
        let b = &stats.books;
        let mut cells = vec![stats.inlet.to_string()];
        cells.extend([b.waiting, b.delayed, b.leased, b.dead, b.done].iter().map(ToString::to_string));
        cells.push(stats.oldest_waiting.map_or("-".to_owned(), |at| span(now.since(at))));
        cells.extend([guarantee(config), order(config)].map(str::to_owned));
        cells.extend([limits::shown(config).unwrap_or_else(|| "-".to_owned()), state(stats).to_owned()]);
        table.row(cells);
    }
    context.out.write(table.render(style).as_bytes());
    Ok(Exit::Ok)
}

fn line<'a>(stats: &'a Stats, config: &InletConfig) -> Line<'a> {
    Line {
        queue: &stats.inlet,
        guarantee: config.guarantee,
        order: config.order,
        depth: stats.books.waiting,
        oldest_waiting: stats.oldest_waiting,
        books: stats.books,
        paused: stats.paused,
        stopped_dead_full: stats.stopped_dead_full,
        approximate: stats.approximate,
        limits: config.into(),
    }
}

fn guarantee(config: &InletConfig) -> &'static str {
    match config.guarantee {
        DeliveryGuarantee::AtLeastOnce => "at least once",
        DeliveryGuarantee::AtMostOnce => "at most once",
    }
}

fn order(config: &InletConfig) -> &'static str {
    match config.order {
        OrderPolicy::Unordered => "none",
        OrderPolicy::ByKey { stuck_head: StuckHead::Wait } => "by key, wait",
        OrderPolicy::ByKey { stuck_head: StuckHead::SetAside } => "by key, set aside",
    }
}

fn state(stats: &Stats) -> &'static str {
    match (stats.stopped_dead_full, stats.paused) {
        (true, _) => "STOPPED: dead letters full",
        (false, true) => "paused",
        (false, false) => "open",
    }
}
