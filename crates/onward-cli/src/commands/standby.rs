//! `onward standby` and `onward promote`: a folder that follows another one, and takes its place.

use crate::{
    args::values,
    context::Context,
    exit::{Exit, Outcome},
    output::span,
};
use onward::keeping::{self, Destination, Followed, Promoted, Standby};
use onward_core::ErrorKind;
use serde::Serialize;
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward standby /mnt/backups/shop --data-dir /var/lib/onward-standby
  onward standby s3://backups/shop --every 500ms --json --data-dir ./standby

The folder holds what `onward ship` has shipped, checked and durable, and tells how far it lags. No engine opens it \
before `onward promote --data-dir DIR` makes it the one that is worked on; this command then ends.
Exit code 1 once another folder was promoted, 74 for damaged copies.";

pub(crate) const PROMOTE_EXAMPLES: &str = "\
Examples:
  onward promote --data-dir /var/lib/onward-standby
  onward promote --data-dir ./standby --json

The original is fenced first: it can't ship any more, and takes no more writes once it learns of it. Stop it all the \
same if you can reach it: until then it accepts work that nobody will find here. Then the last of what was shipped is \
fetched, an epoch begins in which no token of the original is good, and the folder can be worked on.
Exit code 1 for a folder that is no standby, or when another one was promoted.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where `onward ship` ships to
    #[arg(value_name = "SRC")]
    from: String,
    /// From one look to the next
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = values::duration)]
    every: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PromoteArgs {}

/// Follows until it is stopped or promoted.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let from = Destination::existing(&args.from)?;
    let mut standby = Standby::open(&from, &context.data_dir, context.env.clone()).await?;
    context.out.note(format_args!("following {} in {}", from.name(), context.data_dir.display()));
    loop {
        if standby.is_called() {
            tell(context, &standby.promote().await?);
            return Ok(Exit::Ok);
        }
        match standby.step().await {
            Ok(followed) => show(context, &followed),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                context.out.note(format_args!("not followed, and tried again: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = context.env.sleep(args.every) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Ok),
        }
    }
}

fn show(context: &Context, followed: &Followed) {
    if context.out.is_json() {
        context.out.object(followed);
    } else if followed.bytes > 0 {
        let lag = followed.lag_ms.map_or("unknown".to_owned(), |lag| span(Duration::from_millis(lag)));
        context.out.line(format_args!("at position {}, {lag} behind", followed.position));
    }
}

/// Promotes the standby in the data folder.
pub(crate) async fn promote(context: &Context, _: &PromoteArgs) -> Outcome {
    context.require_folder()?;
    match keeping::promote(&context.data_dir, context.env.clone()).await? {
        Some(promoted) => tell(context, &promoted),
        None => {
            #[derive(Serialize)]
            struct Line {
                promoted: bool,
            }
            match context.out.is_json() {
                true => context.out.object(&Line { promoted: true }),
                false => context.out.line("promoted by the process that followed; it says what it came to"),
            }
        }
    }
    Ok(Exit::Ok)
}

fn tell(context: &Context, promoted: &Promoted) {
    if context.out.is_json() {
        context.out.object(promoted);
        return;
    }
    let folder = context.data_dir.display();
    context.out.line(format_args!("{folder}: promoted, up to position {}", promoted.position));
    if let Some(last) = promoted.last_at {
        context.out.line(format_args!("  last written to at {last}: what was accepted later is not in it"));
    }
    context.out.line(format_args!(
        "  {} leases of the original are void; ready after {:.2} s",
        promoted.leases_voided,
        promoted.took_ms as f64 / 1000.0
    ));
}
