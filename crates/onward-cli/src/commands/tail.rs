//! `onward tail`: what a topic keeps, and what is published from now on. It takes nothing.

use crate::{
    context::{Context, require_topic},
    exit::{Exit, Outcome},
    output::one_line,
};
use onward_core::{
    Direction, Engine, EventRead, EventScope, Message, Name, PAGE_MAX, Position, ReadFrom, RecordedEvent,
    Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// How often it looks again. A hint may come sooner in a later version; a poll is enough.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Most bytes of one read.
const READ_BYTES_MAX: u64 = 8 << 20;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward tail orders
  onward tail orders --last 100 --no-follow
  onward tail orders --last 10 --json

It reads what the topic keeps: with no retention, what every subscription has reached is gone at once. \
It takes nothing from anybody.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC")]
    topic: Name,
    /// Begin with so many of the newest messages
    #[arg(long, short = 'n', value_name = "N", default_value = "10", value_parser = clap::value_parser!(u64).range(0..=PAGE_MAX as u64))]
    last: u64,
    /// Show what is there and end
    #[arg(long)]
    no_follow: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    topic: &'a Name,
    position: Position,
    number: u64,
    published_at: Timestamp,
    message: Box<RawValue>,
}

/// Shows messages of a topic until it is interrupted.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    require_topic(&engine.topology().await?, &args.topic)?;
    let (mut events, head) = newest(&*engine, &args).await?;
    events.reverse();
    events.iter().for_each(|event| show(context, &args.topic, event));
    let mut next = events.last().map(|event| event.position).or(head).map_or(0, |at| at.0 + 1);
    while !args.no_follow && !context.out.closed() {
        let read = read(&args.topic, ReadFrom::Position(Position(next)), Direction::Forward, PAGE_MAX);
        let slice = tokio::select! {
            slice = engine.read_events(read) => slice?,
            _ = tokio::signal::ctrl_c() => break,
        };
        slice.events.iter().for_each(|event| show(context, &args.topic, event));
        next = slice.events.last().map_or(next, |event| event.position.0 + 1);
        if slice.next.is_none() {
            tokio::select! {
                () = context.env.sleep(LOOK_AGAIN) => {}
                _ = tokio::signal::ctrl_c() => break,
            }
        }
    }
    Ok(Exit::Ok)
}

async fn newest(engine: &dyn Engine, args: &Args) -> Outcome<(Vec<RecordedEvent>, Option<Position>)> {
    let last = usize::try_from(args.last).unwrap_or(PAGE_MAX);
    let slice =
        engine.read_events(read(&args.topic, ReadFrom::End, Direction::Backward, last.max(1))).await?;
    let events = if last == 0 { Vec::new() } else { slice.events };
    Ok((events, slice.head))
}

fn read(topic: &Name, from: ReadFrom, direction: Direction, limit: usize) -> EventRead {
    let scope = EventScope::Topic(topic.clone());
    EventRead { scope, from, direction, limit, bytes_max: READ_BYTES_MAX, as_of: None }
}

fn show(context: &Context, topic: &Name, event: &RecordedEvent) {
    let message = &event.event.message;
    if context.out.is_json() {
        let message = RawValue::from_string(message.to_json()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let (position, number, published_at) = (event.position, event.revision, event.recorded_at);
        context.out.object(&Line { topic, position, number, published_at, message });
    } else {
        let (at, id) = (event.recorded_at, &message.id);
        context.out.line(format_args!(
            "{at}  @{}  {}  {id}  {}",
            event.position.0,
            message.kind,
            data(message)
        ));
    }
}

fn data(message: &Message) -> String {
    match message.data.is_json() {
        true => one_line(&String::from_utf8_lossy(message.data.as_bytes()), 120),
        false => format!("{} bytes of {}", message.data.as_bytes().len(), message.data.content_type()),
    }
}
