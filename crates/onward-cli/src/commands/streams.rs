//! `onward streams`: what streams there are, and how far each goes.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
    output::{Table, one_line, span},
};
use onward_core::{EVENTS_MAX, EventRead, EventScope, Position, StreamName, Timestamp};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward streams
  onward streams account- --limit 10 --json";

/// Most characters of a name or type in the table.
const WIDTH: usize = 60;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only streams whose names begin with this
    #[arg(value_name = "PREFIX", default_value = "")]
    prefix: String,
    /// At most so many, those with the oldest newest event first
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// One stream.
#[derive(Serialize)]
struct Line<'a> {
    stream: &'a StreamName,
    revision: u64,
    position: Position,
    recorded_at: Timestamp,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Lists streams by the places of their newest events.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let mut read = EventRead::all_of(EventScope::Heads { prefix: args.prefix });
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut table = Table::new(&["STREAM", ">REVISION", ">POSITION", "LAST TYPE", ">LAST"]);
    let now = context.env.now();
    let mut found = false;
    while left > 0 && !context.out.closed() {
        read.limit = usize::try_from(left).unwrap_or(EVENTS_MAX).min(EVENTS_MAX);
        let slice = engine.read_events(read.clone()).await?;
        for head in &slice.events {
            found = true;
            let (stream, kind) = (&head.stream, &*head.event.message.kind);
            let (revision, position, recorded_at) = (head.revision, head.position, head.recorded_at);
            match context.out.is_json() {
                true => context.out.object(&Line { stream, revision, position, recorded_at, kind }),
                false => table.row(vec![
                    one_line(&stream.to_string(), WIDTH),
                    revision.to_string(),
                    position.to_string(),
                    one_line(kind, WIDTH),
                    span(now.since(recorded_at)),
                ]),
            }
        }
        left = left.saturating_sub(slice.events.len() as u64);
        match slice.next {
            Some(next) => read.from = next,
            None => break,
        }
    }
    match (found, context.out.is_json()) {
        (false, _) => context.out.note("there is no such stream"),
        (true, false) => context.out.write(table.render(context.out.style()).as_bytes()),
        (true, true) => {}
    }
    Ok(Exit::Ok)
}
