//! `onward truncate`: removes a stream's older events.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
};
use onward_core::{Op, StreamName};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward truncate account-4711 --before 100
  onward truncate account-4711 --before 100 --json

Events before the revision are gone from every read and every condition by tags, for good; their space is given back in \
time. The stream's revisions go on where they were. `onward export` first keeps a copy.
Exit code 1 where there is no such stream, 65 for a revision that is not there yet.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The stream
    #[arg(value_name = "STREAM")]
    stream: StreamName,
    /// The first revision that is kept; the one behind the last event removes all
    #[arg(long, value_name = "REVISION")]
    before: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    stream: &'a StreamName,
    before: u64,
}

/// Truncates one stream.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let Args { stream, before } = args;
    engine.commit(engine.prepare(vec![Op::Truncate { stream: stream.clone(), before }])?).await?;
    match context.out.is_json() {
        true => context.out.object(&Line { stream: &stream, before }),
        false => context.out.line(format_args!("{stream}: truncated before revision {before}")),
    }
    Ok(Exit::Ok)
}
