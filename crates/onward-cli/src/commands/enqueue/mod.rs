//! `onward enqueue`: messages from arguments, files and stdin into a queue.

pub(in crate::commands) mod lines;
mod options;
mod send;
mod target;

use crate::{
    context::{Context, queue_name},
    exit::{Failure, Outcome},
};
use lines::{Item, Lines};
use onward_core::{Error, Inlet, Message, Payload};
use options::Envelope;
use send::{Batch, Sender};
use std::{
    io::{IsTerminal, stdin},
    path::PathBuf,
};
pub(crate) use target::Target;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward enqueue emails '{\"type\":\"email.welcome\",\"data\":{\"to\":\"ada@example.com\"}}'
  onward enqueue emails --type email.welcome --data '{\"to\":\"ada@example.com\"}'
  onward enqueue emails --file messages.jsonl --json
  onward enqueue emails --delay 10m --type report.daily --data null
  onward enqueue emails --file - --all-or-nothing

A message is one JSON object a line. What it leaves out is filled in: id (a new one), type (--type, or the queue's \
name), version (1), timestamp (now), source. Give ids of your own, and a repeat after a lost answer adds nothing.

A line that is wrong is reported with its file, line and reason; the others go on, and the exit code is 65.
An id is printed once its message is durable; with --json, the whole receipt.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The queue; made with default rules when it is not there
    #[arg(value_name = "QUEUE")]
    queue: Inlet,
    #[command(flatten)]
    given: Given,
}

/// Messages as they are given, to a queue or to a topic.
#[derive(Debug, clap::Args)]
pub(crate) struct Given {
    /// Messages, each one JSON object; without any, and without --file and --data, they are read from stdin
    #[arg(value_name = "JSON")]
    messages: Vec<String>,
    /// Read messages from a file, one a line (`-` is stdin); may be repeated
    #[arg(long, short, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// One message with this JSON as its data, without an envelope around it
    #[arg(long, value_name = "JSON", conflicts_with_all = ["messages", "file"])]
    data: Option<String>,
    /// Accept all messages in one commit, or none
    #[arg(long)]
    all_or_nothing: bool,
    #[command(flatten)]
    envelope: Envelope,
}

/// Enqueues what was given.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    send(context, Target::Queue(queue_name(&args.queue)?), args.given).await
}

/// Sends what was given.
pub(crate) async fn send(context: &Context, target: Target, args: Given) -> Outcome {
    if args.envelope.names_one() && args.data.is_none() && (args.messages.len() != 1 || !args.file.is_empty())
    {
        return Err(Failure::usage("--id names one message, but several may be given", "give one message"));
    }
    // Sources are opened before anything is sent: a misspelt file must not be found out half-way.
    let sources = open_sources(&args)?;
    let engine = context.open().await?;
    let defaults = args.envelope.defaults(target.name().local(), context.env.now());
    let mut sender = Sender::new(context, engine, target, args.all_or_nothing);
    let mut batch = Batch::default();
    for source in sources {
        for item in source {
            let message = read(item, &args, &defaults, context);
            match message {
                Ok((place, message)) => batch.push(place, message),
                Err(failure) => sender.refuse(failure)?,
            }
            // One commit can't be split: beyond its bounds it is refused there, before more is read.
            let send = if args.all_or_nothing { batch.is_over() } else { batch.is_full() };
            if send {
                sender.send(std::mem::take(&mut batch)).await?;
            }
        }
    }
    sender.send(batch).await?;
    sender.finish()
}

fn open_sources(args: &Given) -> Outcome<Vec<Lines>> {
    let mut sources = Vec::new();
    if let Some(data) = &args.data {
        sources.push(Lines::arguments(vec![data.clone()]));
    }
    if !args.messages.is_empty() {
        sources.push(Lines::arguments(args.messages.clone()));
    }
    for path in &args.file {
        sources.push(Lines::file(path)?);
    }
    if sources.is_empty() {
        if stdin().is_terminal() {
            return Err(Failure::usage(
                "no message was given",
                "give JSON, --file FILE, --data JSON, or messages on stdin, one a line",
            ));
        }
        sources.push(Lines::stdin());
    }
    Ok(sources)
}

/// One message, or why it is not one, with its place.
fn read(
    item: Item,
    args: &Given,
    defaults: &onward_core::MessageBuilder,
    context: &Context,
) -> Result<(String, Message), Failure> {
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
    let message = message.map_err(placed)?;
    Ok((place, message))
}
