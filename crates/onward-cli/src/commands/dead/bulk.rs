//! Redriving and purging many dead letters: counted first where asked, resumable, rate-limited.

use crate::{
    args::{
        Filters,
        values::{duration, rate},
    },
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
};
use onward_core::{BulkId, BulkReport, Engine, Error, Inlet, MessageId, Op, PurgeWhat, Receipt, Selection};
use serde::Serialize;
use std::time::Duration;

pub(super) const REDRIVE_EXAMPLES: &str = "\
Examples:
  onward dead redrive emails msg-12345 msg-12346
  onward dead redrive emails --cause timeout --dry-run
  onward dead redrive emails --all --rate 10/s";

pub(super) const PURGE_EXAMPLES: &str = "\
Examples:
  onward dead purge emails --before 30d --dry-run
  onward dead purge emails msg-12345
  onward dead purge emails --all";

/// Which dead letters.
#[derive(Debug, clap::Args)]
struct Which {
    /// The queue
    #[arg(value_name = "QUEUE")]
    inlet: Inlet,
    /// These ids
    #[arg(value_name = "ID", value_parser = |text: &str| MessageId::try_from(text))]
    ids: Vec<MessageId>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Only count
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    filters: Filters,
}

#[derive(Debug, clap::Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    which: Which,
    /// So long between one and the next
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "rate")]
    spacing: Option<Duration>,
    /// So many per second, minute or hour
    #[arg(long, value_name = "N/UNIT", value_parser = rate)]
    rate: Option<Duration>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PurgeArgs {
    #[command(flatten)]
    which: Which,
}

/// Moves dead letters back to work.
pub(super) async fn redrive(context: &Context, args: RedriveArgs) -> Outcome {
    let spacing = args.spacing.or(args.rate).unwrap_or_default();
    let make = |inlet, selection, bulk, dry_run| Op::Redrive { inlet, selection, spacing, bulk, dry_run };
    bulk(context, args.which, "redriven", make).await
}

/// Removes dead letters.
pub(super) async fn purge(context: &Context, args: PurgeArgs) -> Outcome {
    let make = |inlet, selection, bulk, dry_run| {
        let what = PurgeWhat::Dead;
        Op::Purge { inlet, what, selection, bulk, dry_run }
    };
    bulk(context, args.which, "purged", make).await
}

#[derive(Serialize)]
struct Line<'a> {
    queue: &'a Inlet,
    action: &'a str,
    dry_run: bool,
    #[serde(flatten)]
    report: BulkReport,
}

/// Repeats the operation with one id until it is finished. Exit code 1 when a named id was not among the dead.
async fn bulk(
    context: &Context,
    which: Which,
    done: &str,
    make: impl Fn(Inlet, Selection, BulkId, bool) -> Op,
) -> Outcome {
    let selection = which.filters.chosen(&which.ids, which.all, context.env.now())?;
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, &which.inlet)?;
    let op = make(which.inlet.clone(), selection, BulkId::generate(&*context.env), which.dry_run);
    let report = finish(context, &*engine, op, done, which.dry_run).await?;
    match (context.out.is_json(), which.dry_run) {
        (true, dry_run) => context.out.object(&Line { queue: &which.inlet, action: done, dry_run, report }),
        (false, true) => context.out.line(format_args!("{} would be {done}", report.matched)),
        (false, false) => context.out.line(format_args!("{} of {} {done}", report.done, report.matched)),
    }
    let missing = (which.ids.len() as u64).saturating_sub(report.matched);
    if missing > 0 {
        context.out.note(format_args!("{missing} of the ids named are not dead letters here"));
    }
    Ok(if missing > 0 { Exit::Failed } else { Exit::Ok })
}

async fn finish(
    context: &Context,
    engine: &dyn Engine,
    op: Op,
    done: &str,
    dry_run: bool,
) -> Outcome<BulkReport> {
    let progress = context.out.progress(None, done);
    loop {
        let receipts = engine.commit(engine.prepare(vec![op.clone()])?).await?;
        let Some(Receipt::Bulk(report)) = receipts.into_iter().next() else {
            return Err(Error::internal("the engine answered a bulk operation with something else").into());
        };
        progress.at(report.done);
        // A dry run has nothing to go on with.
        if report.finished || dry_run {
            return Ok(report);
        }
    }
}
