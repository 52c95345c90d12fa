//! `onward verify`: checks a data folder without changing it.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
    output::bytes,
};
use onward::{Verified, keeping};
use onward_core::{ErrorKind, Position};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward verify /var/lib/onward
  onward verify /mnt/backups/shop --json
  onward verify s3://backups/shop

The folder is brought back as an opening would, every message, event and record is read, and the books are checked; nothing \
is written to it. A folder that a process has open is refused: stop that process, or check a copy.
Of a backup, every object is read and checked, and the log walked group by group.
Exit code 74 for damage, 1 for books that don't balance.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data folder or backup; --data-dir where none is named
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct Line<'a> {
    folder: &'a str,
    sound: bool,
    queues: usize,
    messages: u64,
    topic_messages: u64,
    events: u64,
    records: u64,
    replayed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<Position>,
    passed_over: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Cut<'a>>,
    out_of_balance: Vec<String>,
}

/// What a power cut left that was never reported durable.
#[derive(Serialize)]
struct Cut<'a> {
    at: &'a str,
    bytes: u64,
}

/// Checks one folder.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let dir = args.dir.unwrap_or_else(|| context.data_dir.clone());
    if is_backup(&dir) {
        return backup(context, &dir.display().to_string()).await;
    }
    let found = onward::verify(&dir, context.env.clone()).await.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => error.mend("stop that process, or check a copy of the folder"),
        _ => error,
    })?;
    let unbalanced = found.inlets.iter().filter(|stats| !stats.books.balance());
    let out_of_balance: Vec<String> = unbalanced.map(|stats| stats.inlet.to_string()).collect();
    let sound = out_of_balance.is_empty();
    let folder = dir.display().to_string();
    let line = line(&folder, &found, out_of_balance);
    match context.out.is_json() {
        true => context.out.object(&line),
        false => show(context, &line),
    }
    Ok(if sound { Exit::Ok } else { Exit::Failed })
}

/// A destination has claims where a data folder has a log.
fn is_backup(dir: &Path) -> bool {
    let url = dir.to_str().is_some_and(|place| place.contains("://"));
    url || (dir.join("claims").is_dir() && !dir.join("log").is_dir())
}

async fn backup(context: &Context, place: &str) -> Outcome {
    let found = keeping::check(&keeping::Destination::existing(place)?).await?;
    if context.out.is_json() {
        #[derive(Serialize)]
        struct Line<'a> {
            backup: &'a str,
            sound: bool,
            #[serde(flatten)]
            found: keeping::Checked,
        }
        context.out.object(&Line { backup: place, sound: true, found });
        return Ok(Exit::Ok);
    }
    context.out.line(format_args!("{place}: sound"));
    let (objects, size) = (found.objects, bytes(found.bytes));
    context
        .out
        .line(format_args!("  read {objects} objects, {size}, with {} groups of the log", found.groups));
    let last = found.last_at.map_or_else(String::new, |last| format!(", last written to at {last}"));
    context.out.line(format_args!("  restores up to position {}{last}", found.end));
    Ok(Exit::Ok)
}

fn line<'a>(folder: &'a str, found: &'a Verified, out_of_balance: Vec<String>) -> Line<'a> {
    let opening = &found.opening;
    Line {
        folder,
        sound: out_of_balance.is_empty(),
        queues: found.inlets.len(),
        messages: found.messages,
        topic_messages: found.topic_messages,
        events: found.events,
        records: found.records,
        replayed: opening.facts,
        snapshot: opening.snapshot,
        passed_over: &opening.passed_over,
        cut: opening.cut.as_ref().map(|(at, bytes)| Cut { at, bytes: *bytes }),
        out_of_balance,
    }
}

fn show(context: &Context, line: &Line<'_>) {
    let from = line.snapshot.map_or("the log alone".to_owned(), |at| format!("the snapshot of {at}"));
    context.out.line(format_args!("{}: {}", line.folder, if line.sound { "sound" } else { "NOT SOUND" }));
    context.out.line(format_args!("  brought back from {from} and {} facts behind it", line.replayed));
    context.out.line(format_args!(
        "  read {} messages in {} queues, and {} records",
        line.messages, line.queues, line.records
    ));
    if line.topic_messages > 0 {
        context.out.line(format_args!("  read {} messages that topics keep", line.topic_messages));
    }
    if line.events > 0 {
        context.out.line(format_args!("  read {} events of streams", line.events));
    }
    for problem in line.passed_over {
        context.out.line(format_args!("  a snapshot can't be read and is not needed: {problem}"));
    }
    if let Some(Cut { at, bytes }) = &line.cut {
        context
            .out
            .line(format_args!("  {bytes} bytes behind {at} were never reported durable and are cut off"));
    }
    for queue in &line.out_of_balance {
        context.out.line(format_args!("  the books of {queue} don't balance: see `onward balance`"));
    }
}
