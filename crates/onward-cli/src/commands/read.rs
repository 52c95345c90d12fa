//! `onward read`: events of a stream, a category, by type and tag, or all; backward, as of a time, and following.

use super::view;
use crate::{
    args::values::{Moment, moment},
    context::Context,
    exit::{Exit, Failure, Outcome},
};
use futures::future::{Either, select};
use onward_core::{
    Direction, EVENTS_MAX, EventQuery, EventRead, EventScope, EventSlice, Position, ReadFrom, StreamName, Tag,
};
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward read account-4711
  onward read account-4711 --backward --limit 1
  onward read --category account --as-of 2024-03-15T10:23:45Z
  onward read --tag course:7 --type student.enrolled --json
  onward read --all --follow

--as-of shows what stood at a time, --since begins there. A time is RFC 3339, or how long ago (`2h`).";

/// How long a follower that has seen everything waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Events asked for at once.
const AT_ONCE: usize = 500;

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)
    .args(["stream", "category", "tag", "kind", "all"])))]
pub(crate) struct Args {
    /// The stream
    #[arg(value_name = "STREAM", conflicts_with_all = ["category", "tag", "kind", "all"])]
    stream: Option<StreamName>,
    /// Every stream of this category (`account`, or `shop/account` in a namespace)
    #[arg(long, value_name = "CATEGORY", conflicts_with_all = ["tag", "kind", "all"])]
    category: Option<StreamName>,
    /// Events with this tag (with all of them, when repeated)
    #[arg(long, value_name = "TAG", conflicts_with = "all", value_parser = |text: &str| Tag::try_from(text))]
    tag: Vec<Tag>,
    /// Events of this type (of any of them, when repeated)
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "all")]
    kind: Vec<String>,
    /// Every event of every stream
    #[arg(long)]
    all: bool,
    /// What stood at this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    as_of: Option<Moment>,
    /// Newest first
    #[arg(long, conflicts_with = "follow")]
    backward: bool,
    /// Begin at this revision of the stream
    #[arg(long, value_name = "N", requires = "stream", group = "begin")]
    #[arg(conflicts_with_all = ["category", "tag", "kind", "all"])]
    from_revision: Option<u64>,
    /// Begin at this position
    #[arg(long, value_name = "N", group = "begin")]
    from_position: Option<u64>,
    /// Begin at this time
    #[arg(long, value_name = "TIME", value_parser = moment, group = "begin")]
    since: Option<Moment>,
    /// Begin behind the newest event: only what is appended from now on
    #[arg(long, requires = "follow", group = "begin")]
    new: bool,
    /// At most so many
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Go on with what is appended later, until interrupted
    #[arg(long, short = 'F', conflicts_with = "as_of")]
    follow: bool,
}

/// Shows events, a slice at a time.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let mut read = asked(context, &args);
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut shown = 0u64;
    while left > 0 && !context.out.closed() {
        read.limit = usize::try_from(left).unwrap_or(EVENTS_MAX).min(AT_ONCE);
        let slice = engine.read_events(read.clone()).await?;
        view::events(context, &slice.events, shown == 0);
        shown += slice.events.len() as u64;
        left = left.saturating_sub(slice.events.len() as u64);
        let whole = slice.next.is_none() || slice.events.is_empty();
        if let Some(next) = following(&read, &slice) {
            read.from = next;
        }
        if whole && (!args.follow || !wait(context).await?) {
            break;
        }
    }
    if shown == 0 && !args.follow {
        context.out.note("no such event");
    }
    Ok(Exit::Ok)
}

/// Waits a moment; answers whether to go on, which an interruption ends.
async fn wait(context: &Context) -> Outcome<bool> {
    let stop = std::pin::pin!(tokio::signal::ctrl_c());
    match select(context.env.sleep(LOOK_AGAIN), stop).await {
        Either::Left(_) => Ok(true),
        Either::Right((Ok(()), _)) => Ok(false),
        Either::Right((Err(error), _)) => {
            Err(Failure::from(onward_core::Error::internal(format!("can't hear an interruption: {error}"))))
        }
    }
}

/// Where to go on, also when this was all for now.
fn following(read: &EventRead, slice: &EventSlice) -> Option<ReadFrom> {
    let behind =
        slice.events.last().filter(|_| read.direction == Direction::Forward).map(|last| match read.scope {
            EventScope::Stream(_) => ReadFrom::Revision(last.revision + 1),
            _ => ReadFrom::Position(Position(last.position.0 + 1)),
        });
    slice.next.or(behind)
}

fn asked(context: &Context, args: &Args) -> EventRead {
    let now = context.env.now();
    let scope = match (&args.stream, &args.category) {
        (Some(stream), _) => EventScope::Stream(stream.clone()),
        (_, Some(category)) => {
            EventScope::Category { namespace: category.namespace().into(), category: category.local().into() }
        }
        _ if args.all => EventScope::All,
        _ => EventScope::Query(EventQuery {
            types: args.kind.iter().map(|kind| kind.as_str().into()).collect(),
            tags: args.tag.clone(),
        }),
    };
    let direction = if args.backward { Direction::Backward } else { Direction::Forward };
    let from = match (args.from_revision, args.from_position, args.since) {
        (Some(revision), ..) => ReadFrom::Revision(revision),
        (_, Some(position), _) => ReadFrom::Position(Position(position)),
        (.., Some(since)) => ReadFrom::Time(since.at(now)),
        _ if args.backward || args.new => ReadFrom::End,
        _ => ReadFrom::Start,
    };
    let as_of = args.as_of.map(|moment| moment.at(now));
    EventRead { from, direction, as_of, ..EventRead::all_of(scope) }
}
