//! `onward demo`: the media pipeline, with what goes wrong in real life.

use crate::{
    context::Context,
    exit::{Exit, Failure, Outcome},
};
use media_pipeline::demo::{self, Options};
use onward_core::{Error, ErrorKind, RetryHint};
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward demo
  onward demo --images ./photos --workers 4
  onward demo --keep ./demo-data
  onward demo --json

Formats that are taken: PNG, JPEG, GIF, WebP, BMP. Exit code 0 once every upload is final, failed ones included.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder of pictures to upload; without it, a few are drawn
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,
    /// Keep queue, records, pictures and thumbnails in this folder; without it, they are gone afterwards
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Worker processes, besides the one that is killed
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=16))]
    workers: u64,
}

/// Runs the demo. Exit code 1 when it did not come to its end.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let Args { images, keep, workers } = args;
    let workers = usize::try_from(workers).unwrap_or(1);
    let options = Options { images, data_dir: keep, json: context.out.is_json(), workers };
    match demo::run(options).await {
        Ok(_) => Ok(Exit::Ok),
        Err(error) => Err(match error.downcast::<Error>() {
            Ok(error) => error.into(),
            Err(error) => {
                let error =
                    Error::new(ErrorKind::Internal, RetryHint::Never, format!("{error:#}")).at("the demo");
                Failure { error, exit: Exit::Failed }
            }
        }),
    }
}
