//! `onward upgrade`: activates the newest format of a data folder.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
};
use onward::keeping;
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward upgrade
  onward upgrade --data-dir /var/lib/onward --json

A new version works on a folder in the format that it has, so that the old version can still open it. This command makes \
the folder's format the newest that this version knows; older versions then refuse it, and write nothing to it. Make a \
backup first: there is no way back but to restore it. No process may have the folder open.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Line {
    folder: String,
    before: u32,
    format: u32,
}

/// Upgrades the data folder.
pub(crate) fn run(context: &Context, _: &Args) -> Outcome {
    context.require_folder()?;
    let upgraded = keeping::upgrade(&context.data_dir)?;
    let folder = context.data_dir.display().to_string();
    let line = Line { folder, before: upgraded.before, format: upgraded.now };
    match (context.out.is_json(), line.before == line.format) {
        (true, _) => context.out.object(&line),
        (false, true) => {
            context.out.line(format_args!(
                "{}: has format {}, the newest this version knows",
                line.folder, line.format
            ));
        }
        (false, false) => {
            context.out.line(format_args!("{}: format {}, was {}", line.folder, line.format, line.before));
        }
    }
    Ok(Exit::Ok)
}
