//! `onward restore`: makes a data folder of a backup.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
    output::{bytes, span},
};
use onward::keeping::{self, Destination, Restored, Target};
use onward_core::{Error, Position, Timestamp};
use serde::Serialize;
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward restore /mnt/backups/shop --data-dir /var/lib/onward
  onward restore /mnt/backups/shop --data-dir ./yesterday --to 2024-03-15T10:23:45Z
  onward restore s3://backups/shop --data-dir ./copy --to 8589961248

The folder must be new or empty. It begins an epoch of its own: leases and tokens of the original are void, and what was \
leased is handed out again. `--to` takes a time or a position; whole groups, as they were written, are kept or left out. \
What is restored and how much is lost is told.
Exit code 74 for a damaged backup, 1 for a folder that is not empty or a time before the backup.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The backup: a folder, or the URL of an object store
    #[arg(value_name = "SRC")]
    from: String,
    /// Nothing later than this time (RFC 3339) or position
    #[arg(long, value_name = "TIME|POSITION", value_parser = target)]
    to: Option<Target>,
}

#[derive(Serialize)]
struct Line<'a> {
    folder: String,
    #[serde(flatten)]
    made: &'a Restored,
}

fn target(text: &str) -> Result<Target, Error> {
    match text.parse::<u64>() {
        Ok(position) => Ok(Target::Position(Position(position))),
        Err(_) => text.parse::<Timestamp>().map(Target::Time),
    }
}

/// Restores one folder.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let from = Destination::existing(&args.from)?;
    let (dir, target) = (&context.data_dir, args.to.unwrap_or_default());
    let made = keeping::restore(&from, dir, target, context.env.clone()).await?;
    let folder = dir.display().to_string();
    if context.out.is_json() {
        context.out.object(&Line { folder, made: &made });
        return Ok(Exit::Ok);
    }
    context.out.line(format_args!("{folder}: restored up to position {}", made.position));
    if let (Some(last), Some(lost)) = (made.last_at, made.lost_ms_max) {
        let ago = span(Duration::from_millis(lost));
        context.out.line(format_args!(
            "  last written to at {last}: what was accepted in the {ago} since is not in it"
        ));
    }
    if made.groups_left_out > 0 {
        context.out.line(format_args!("  {} groups behind the target were left out", made.groups_left_out));
    }
    context.out.line(format_args!(
        "  {} leases of the original are void; their messages are handed out again",
        made.leases_voided
    ));
    context.out.line(format_args!(
        "  {} in {:.2} s, {:.2} s of it for opening",
        bytes(made.bytes),
        made.took_ms as f64 / 1000.0,
        made.opening_ms as f64 / 1000.0
    ));
    Ok(Exit::Ok)
}
