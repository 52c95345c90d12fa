//! `onward ship`: copies the data folder's log all the time.

use crate::{
    args::values,
    context::Context,
    exit::{Exit, Outcome},
    output::bytes,
};
use onward::keeping::{self, Destination, ShipOptions, Shipped};
use onward_core::Result;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward ship /mnt/backups/shop
  onward ship s3://backups/shop --every 500ms --keep 30d --data-dir /var/lib/onward
  onward ship /mnt/backups/shop --once --json

What was written is at the destination `--every` later, and can be restored to any moment of the last `--keep`. It runs \
until it is stopped, beside whatever process has the folder open; while the destination can't be reached, it tries again \
and skips nothing.
Exit code 1 once another folder took over: this one then takes no more writes.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder, or the URL of an object store
    #[arg(value_name = "DEST")]
    to: String,
    /// From one pass to the next
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = values::duration)]
    every: Duration,
    /// How far back a moment can be restored
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = values::duration)]
    keep: Duration,
    /// Take over a destination that another folder ships to: that folder is stopped
    #[arg(long)]
    take_over: bool,
    /// One pass, then end
    #[arg(long)]
    once: bool,
}

/// Ships until it is stopped.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    context.require_folder()?;
    let to = Destination::open(&args.to)?;
    let options = ShipOptions { every: args.every, keep: args.keep, take_over: args.take_over };
    let out = context.out.clone();
    let done = Arc::new(AtomicBool::new(false));
    let (told_done, once) = (done.clone(), args.once);
    let told = move |passed: Result<Shipped>| match passed {
        Ok(shipped) => {
            told_done.store(once, Ordering::Relaxed);
            match out.is_json() {
                true => out.object(&shipped),
                false if shipped.bytes > 0 || once => {
                    out.line(format_args!(
                        "shipped up to position {}, {}",
                        shipped.position,
                        bytes(shipped.bytes)
                    ));
                }
                false => {}
            }
            if shipped.gap {
                out.note(
                    "segments were released before they were shipped: moments between can't be restored",
                );
            }
        }
        Err(error) => out.note(format_args!("not shipped, and tried again: {error}")),
    };
    context.out.note(format_args!("shipping to {}", to.name()));
    let go_on = move || !done.load(Ordering::Relaxed);
    let shipping = keeping::ship(&context.data_dir, &to, options, context.env.clone(), &told, &go_on);
    tokio::select! {
        ended = shipping => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Exit::Ok)
}
