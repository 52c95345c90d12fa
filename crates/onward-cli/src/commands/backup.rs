//! `onward backup`: copies the data folder while it is worked on.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
    output::{Progress, bytes},
};
use onward::keeping::{self, BackedUp, Destination};
use serde::Serialize;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward backup /mnt/backups/shop
  onward backup s3://backups/shop --data-dir /var/lib/onward
  onward backup /mnt/backups/shop --json

Workers and producers go on meanwhile: the folder is read beside whatever process has it open. The backup restores to \
what had been acknowledged when the command began, or later. A second backup to the same place copies only what is new, \
and one that was interrupted goes on. `onward verify DEST` checks it; `onward restore DEST` makes a folder of it.
Exit code 74 for damage in the folder, 1 where another folder's backups are.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder, or the URL of an object store
    #[arg(value_name = "DEST")]
    to: String,
}

#[derive(Serialize)]
struct Line<'a> {
    destination: &'a str,
    #[serde(flatten)]
    made: &'a BackedUp,
}

/// Makes one backup.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    context.require_folder()?;
    let to = Destination::open(&args.to)?;
    let watch = watch(context, "copied, in bytes");
    let made = keeping::backup(&context.data_dir, &to, watch, context.env.clone()).await?;
    if context.out.is_json() {
        context.out.object(&Line { destination: to.name(), made: &made });
        return Ok(Exit::Ok);
    }
    let last = made.last_at.map_or_else(String::new, |last| format!(", last written to at {last}"));
    context.out.line(format_args!("{}: everything before position {}{last}", to.name(), made.position));
    context.out.line(format_args!(
        "  {} copied, {} were there, {} segments, {:.1} s",
        bytes(made.bytes),
        bytes(made.kept_bytes),
        made.segments,
        Duration::from_millis(made.took_ms).as_secs_f64()
    ));
    Ok(Exit::Ok)
}

/// A progress bar for copying, made when the first object is there.
pub(crate) fn watch(context: &Context, what: &'static str) -> keeping::Watch {
    let (out, shown) = (context.out.clone(), Mutex::new(None::<Progress>));
    Arc::new(move |progress| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = shown.get_or_insert_with(|| out.progress(Some(progress.total_bytes), what));
        bar.at(progress.bytes + progress.kept_bytes);
    })
}
