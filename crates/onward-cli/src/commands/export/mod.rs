//! `onward export`: everything in the folder as lines of JSON.

mod kept;

use crate::{
    commands::peek::page,
    context::Context,
    exit::{Exit, Outcome},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use onward_core::{
    AUDIT_PREFIX, Cause, Engine, Inlet, InletConfig, MessageQuery, MessageState, MessageView, Name, PAGE_MAX,
    Record, RecordKey, RecordQuery, Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward export > everything.ndjson
  onward export emails --data-dir /var/lib/onward > emails.ndjson

One JSON object a line: first the queues with their rules, then messages that are not finished, dead letters with their \
causes, topics with what they keep and their subscriptions, streams, records, and schedules. `onward import` reads it. It \
shows each queue as it is when it comes to it: for one moment of all of them, export a restored backup.";

/// Unfinished messages are work; what is leased is work too, wherever it is imported.
const UNFINISHED: [MessageState; 4] =
    [MessageState::Waiting, MessageState::Delayed, MessageState::Leased, MessageState::Dead];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// These queues, and nothing else; everything when none is named
    #[arg(value_name = "QUEUE")]
    queues: Vec<Name>,
}

#[derive(Serialize)]
struct QueueLine<'a> {
    queue: &'a Name,
    config: &'a InletConfig,
    paused: bool,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    in_queue: Option<&'a Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_subscription: Option<&'a Inlet>,
    state: MessageState,
    attempts: u32,
    accepted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    causes: &'a [Cause],
    message: Box<RawValue>,
}

#[derive(Serialize)]
struct RecordLine<'a> {
    record: &'a RecordKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

/// Writes everything.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    let wanted = |name: &Name| args.queues.is_empty() || args.queues.contains(name);
    let mut queues = Vec::new();
    for (inlet, config) in &topology.inlets {
        if let Inlet::Queue(queue) = inlet
            && wanted(queue)
        {
            context.out.object(&QueueLine { queue, config, paused: topology.paused.contains(inlet) });
            queues.push(queue);
        }
    }
    for queue in args.queues.iter().filter(|queue| !queues.contains(queue)) {
        crate::context::require_inlet(&topology, &Inlet::Queue(queue.clone()))?;
    }
    for queue in queues {
        for state in UNFINISHED {
            messages(context, &*engine, queue, state).await?;
        }
    }
    if args.queues.is_empty() {
        kept::topics(context, &*engine, &topology).await?;
        kept::streams(context, &*engine).await?;
        records(context, &*engine).await?;
        kept::schedules(context, &topology);
    }
    Ok(Exit::Ok)
}

async fn messages(context: &Context, engine: &dyn Engine, queue: &Name, state: MessageState) -> Outcome<()> {
    let inlet = Inlet::Queue(queue.clone());
    let mut query = MessageQuery::state(inlet.clone(), state, PAGE_MAX);
    let mut more = true;
    while more && !context.out.closed() {
        let (items, next) = page(engine, &mut query).await?;
        items.iter().for_each(|view| context.out.object(&MessageLine::of(&inlet, view)));
        more = next;
    }
    Ok(())
}

impl<'a> MessageLine<'a> {
    fn of(inlet: &'a Inlet, view: &'a MessageView) -> Self {
        let (in_queue, in_subscription) = match inlet {
            Inlet::Queue(queue) => (Some(queue), None),
            Inlet::Subscription { .. } => (None, Some(inlet)),
        };
        Self {
            in_queue,
            in_subscription,
            state: view.state,
            attempts: view.attempts,
            accepted_at: view.accepted_at,
            due: view.due,
            causes: &view.causes,
            message: onward::envelope_json(&view.message),
        }
    }
}

async fn records(context: &Context, engine: &dyn Engine) -> Outcome<()> {
    let mut after = None;
    loop {
        let query = RecordQuery::Prefix { prefix: String::new(), after, limit: PAGE_MAX };
        let page = engine.get_records(query).await?;
        // The audit is the engine's own: no import may write it.
        let own = page.items.iter().filter(|record| !record.key.as_str().starts_with(AUDIT_PREFIX));
        own.for_each(|record| context.out.object(&record_line(record)));
        after = page.next;
        if after.is_none() || context.out.closed() {
            return Ok(());
        }
    }
}

fn record_line(record: &Record) -> RecordLine<'_> {
    let text = std::str::from_utf8(&record.value).ok();
    let base64 = text.is_none().then(|| STANDARD.encode(&record.value));
    RecordLine { record: &record.key, text, base64, expires: record.expires }
}
