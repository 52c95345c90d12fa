//! `onward stats`: numbers of queues, live leases, health.

use super::queues::limits;
use crate::{
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
    output::{Table, ago, bytes, span, until},
};
use onward_core::{Inlet, InletConfig, Lag, Stats, Timestamp};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward stats
  onward stats emails
  onward stats --json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// These queues; all when none is named
    #[arg(value_name = "QUEUE")]
    inlets: Vec<Inlet>,
}

/// Shows the numbers of queues. Exit code 1 when the engine is not well.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    args.inlets.iter().try_for_each(|inlet| require_inlet(&topology, inlet))?;
    let stats = engine.stats(args.inlets).await?;
    for one in &stats {
        match context.out.is_json() {
            true => context.out.object(one),
            false => {
                let config = topology.inlets.iter().find(|(inlet, _)| *inlet == one.inlet);
                show(context, one, config.map(|(_, config)| config));
            }
        }
    }
    let health = engine.health();
    for problem in &health.problems {
        context
            .out
            .note(format_args!("not well since {}: {}; {}", problem.since, problem.what, problem.mend));
    }
    Ok(if health.readable && health.writable { Exit::Ok } else { Exit::Failed })
}

fn show(context: &Context, stats: &Stats, config: Option<&InletConfig>) {
    let now = context.env.now();
    let books = &stats.books;
    context.out.line(context.out.style().bold(&stats.inlet.to_string()));
    let counted = |count: u64, name: &str| (count > 0).then(|| format!("{count} {name}"));
    let depth = [
        Some(format!("{} waiting", books.waiting)),
        counted(stats.blocked, "of them blocked by their order key"),
        Some(format!("{} delayed, {} leased, {} dead", books.delayed, books.leased, books.dead)),
    ];
    let ended = [
        Some(format!("{} done of {} accepted", books.done, books.accepted)),
        counted(books.expired, "expired"),
        counted(books.cancelled, "cancelled"),
        counted(books.purged, "purged"),
        counted(books.shed, "shed"),
        counted(stats.lost_at_most_once, "lost (at most once)"),
    ];
    let lines = [
        ("now", Some(joined(&depth))),
        ("so far", Some(joined(&ended))),
        ("attempts", Some(format!("{} handed out, {} failed", stats.deliveries, stats.failures))),
        ("limits", config.and_then(limits::shown)),
        ("lag", stats.lag.map(|lag| lag_of(&lag, now))),
        ("bytes", Some(bytes(stats.bytes))),
        ("oldest waits", stats.oldest_waiting.map(|at| ago(at, now).replace(" ago", ""))),
        ("next due", stats.next_due.map(|at| until(at, now))),
        (
            "duplicates",
            Some(format!("{} recognised, {} ids remembered", stats.duplicates, stats.dedup_entries)),
        ),
        ("state", state(stats)),
    ];
    for (name, text) in lines.into_iter().filter_map(|(name, text)| text.map(|text| (name, text))) {
        context.out.line(format_args!("  {:<13} {text}", format!("{name}:")));
    }
    leases(context, stats);
}

fn lag_of(lag: &Lag, now: Timestamp) -> String {
    let oldest = lag.oldest.map(|at| format!("the oldest published {}", ago(at, now)));
    let replay = (lag.replay > 0).then(|| format!("replay epoch {}", lag.replay));
    let messages = format!("{} messages, {} of them not reached yet", lag.messages, lag.unreached);
    joined(&[Some(messages), oldest, replay])
}

fn joined(parts: &[Option<String>]) -> String {
    parts.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn state(stats: &Stats) -> Option<String> {
    let marks = [
        (stats.paused, "paused: `onward queues resume` lets it hand out again"),
        (stats.stopped_dead_full, "stopped: its dead letters are full; redrive or purge them"),
        (stats.approximate, "the counts are the server's estimate"),
    ];
    let set: Vec<&str> = marks.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
    (!set.is_empty()).then(|| set.join(", "))
}

fn leases(context: &Context, stats: &Stats) {
    if stats.leases.is_empty() {
        return;
    }
    let now = context.env.now();
    let mut table = Table::new(&["  HELD", "BY", ">ATTEMPT", ">FOR", ">LEASE ENDS IN"]);
    for lease in &stats.leases {
        table.row(vec![
            format!("  {}", lease.id),
            lease.holder.worker.to_string(),
            lease.attempt.to_string(),
            span(now.since(lease.since)),
            span(lease.until.since(now)),
        ]);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
}
