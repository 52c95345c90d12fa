//! `onward append`: events to the end of a stream, all of them or none.

use super::enqueue::lines::{Item, Lines};
use crate::{
    context::Context,
    exit::{Exit, Failure, Outcome},
};
use onward_core::{
    AppendCondition, Error, Event, EventQuery, Expected, Message, MessageBuilder, MessageId, OPS_MAX, Op,
    Payload, Position, Receipt, StreamName, Tag,
};
use serde::Serialize;
use std::{
    io::{IsTerminal, stdin},
    path::PathBuf,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward append account-4711 --type account.opened --data '{\"owner\":\"Ada\"}' --expect none
  onward append account-4711 '{\"type\":\"money.deposited\",\"data\":{\"cents\":5000}}' --expect 0
  onward append course-7 --type student.enrolled --data '{\"student\":1}' --tag course:7 --tag student:1
  onward append course-7 --type course.full --data null --tag course:7 --unless-tag course:7 --unless-type course.full
  onward append account-4711 --file events.jsonl --json

An event is one JSON object a line, as `onward enqueue` takes it. All events of one call are appended together or not \
at all. Give ids of your own, and a repeat after a lost answer adds nothing.

When the stream does not stand as expected, nothing is appended, the error says which revision stands there, and the \
exit code is 1.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The stream, as in `account-4711`: the category stands before the first `-`
    #[arg(value_name = "STREAM")]
    stream: StreamName,
    /// Events, each one JSON object; without any, and without --file and --data, they are read from stdin
    #[arg(value_name = "JSON")]
    events: Vec<String>,
    /// Read events from a file, one a line (`-` is stdin); may be repeated
    #[arg(long, short, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// One event with this JSON as its data, without an envelope around it
    #[arg(long, value_name = "JSON", conflicts_with_all = ["events", "file"])]
    data: Option<String>,
    /// Type of events that do not say it; without it, the stream's category
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The event's id, where --data gives one event
    #[arg(long, value_name = "ID", requires = "data", value_parser = |text: &str| MessageId::try_from(text))]
    id: Option<MessageId>,
    /// The business action that events belong to that do not say it
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// A tag of every event given; may be repeated
    #[arg(long, value_name = "TAG", value_parser = |text: &str| Tag::try_from(text))]
    tag: Vec<Tag>,
    /// What the stream must be: `any`, `none` (new), `exists`, or the revision of its last event
    #[arg(long, value_name = "REVISION", default_value = "any", value_parser = expected)]
    expect: Expected,
    /// Append nothing when an event with this tag stands (with all of them, when repeated)
    #[arg(long, value_name = "TAG", value_parser = |text: &str| Tag::try_from(text))]
    unless_tag: Vec<Tag>,
    /// Append nothing when an event of this type stands (with the tags of --unless-tag); may be repeated
    #[arg(long, value_name = "TYPE")]
    unless_type: Vec<String>,
    /// Look for those behind this position only: what the decision was based on
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
}

fn expected(text: &str) -> Result<Expected, String> {
    match text {
        "any" => Ok(Expected::Any),
        "none" => Ok(Expected::NoStream),
        "exists" => Ok(Expected::Exists),
        number => number.parse().map(Expected::Revision).map_err(|_| {
            format!("`{number}` is not `any`, `none`, `exists` or the number of the stream's last event")
        }),
    }
}

/// What was appended.
#[derive(Serialize)]
struct Line<'a> {
    stream: &'a StreamName,
    first_revision: u64,
    last_revision: u64,
    position: Position,
    duplicate: bool,
}

/// Appends what was given.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let events = events(context, &args)?;
    let engine = context.open().await?;
    let op = Op::Append {
        stream: args.stream.clone(),
        events,
        expected: args.expect,
        condition: condition(&args),
    };
    let receipt = engine.commit(engine.prepare(vec![op])?).await?.into_iter().next();
    let Some(Receipt::Appended(appended)) = receipt else {
        return Err(Error::internal("an append answered something else").into());
    };
    let (first, last) = (appended.first_revision, appended.last_revision);
    if context.out.is_json() {
        context.out.object(&Line {
            stream: &args.stream,
            first_revision: first,
            last_revision: last,
            position: appended.position,
            duplicate: appended.duplicate,
        });
        return Ok(Exit::Ok);
    }
    let revisions =
        if first == last { format!("revision {last}") } else { format!("revisions {first} to {last}") };
    context.out.line(format_args!("{} {revisions}, position {}", args.stream, appended.position));
    if appended.duplicate {
        context.out.note("they were appended before; nothing was added");
    }
    Ok(Exit::Ok)
}

fn condition(args: &Args) -> Option<AppendCondition> {
    let asked = !args.unless_tag.is_empty() || !args.unless_type.is_empty();
    let types = args.unless_type.iter().map(|kind| kind.as_str().into()).collect();
    let query = EventQuery { types, tags: args.unless_tag.clone() };
    asked.then_some(AppendCondition { query, after: args.after.map(Position) })
}

/// Every event, read and checked before anything is sent.
fn events(context: &Context, args: &Args) -> Outcome<Vec<Event>> {
    let kind = args.kind.as_deref().unwrap_or_else(|| args.stream.category());
    let mut defaults = Message::builder(kind);
    if let Some(id) = &args.correlation_id {
        defaults = defaults.correlation_id(id);
    }
    if let Some(id) = &args.id {
        defaults = defaults.id(id.clone());
    }
    let mut events = Vec::new();
    for source in sources(args)? {
        for item in source {
            if events.len() == OPS_MAX {
                return Err(Failure::usage(
                    format!("more than {OPS_MAX} events in one append"),
                    "append them in several calls, each with the revision of the one before",
                ));
            }
            let message = read(context, item, args, &defaults)?;
            events.push(Event { message, tags: args.tag.clone() });
        }
    }
    Ok(events)
}

fn read(context: &Context, item: Item, args: &Args, defaults: &MessageBuilder) -> Outcome<Message> {
    let Item { place, text } = item;
    let placed = |error: Error| {
        let inner = error.place().map(|inner| format!(", {inner}")).unwrap_or_default();
        Failure::from(error.at(format!("{place}{inner}")))
    };
    let text = text.map_err(placed)?;
    let message = match args.data {
        Some(_) => Payload::json_text(text).and_then(|data| defaults.clone().data(data).build(&*context.env)),
        None => Message::from_json_with(&text, defaults.clone(), &*context.env),
    };
    message.map_err(placed)
}

fn sources(args: &Args) -> Outcome<Vec<Lines>> {
    let mut sources = Vec::new();
    let given = args.data.iter().chain(&args.events).cloned().collect::<Vec<_>>();
    if !given.is_empty() {
        sources.push(Lines::arguments(given));
    }
    for path in &args.file {
        sources.push(Lines::file(path)?);
    }
    if sources.is_empty() {
        if stdin().is_terminal() {
            return Err(Failure::usage(
                "no event was given",
                "give JSON, --file FILE, --data JSON, or events on stdin, one a line",
            ));
        }
        sources.push(Lines::stdin());
    }
    Ok(sources)
}
