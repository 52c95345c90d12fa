//! `onward trace`: everything that belongs to one business action, in time order.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
    output::{Table, one_line},
};
use onward::{event_json, view_json};
use onward_core::{
    Engine, Error, EventRead, EventScope, FindBy, Inlet, MessageQuery, MessageState, MessageView, PAGE_MAX,
    RecordedEvent, Result, Timestamp,
};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward trace order-4711
  onward trace order-4711 --json

What bears the correlation id is shown: messages in every state, dead letters with their last error, and events. A \
message that has none bears its own id. Finished messages are there where their queue keeps results. It reads \
everything that is stored once.";

/// Most characters of an error or type in the table.
const WIDTH: usize = 60;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The correlation id
    #[arg(value_name = "CORRELATION_ID")]
    correlation_id: String,
}

/// What bears the id.
enum Found {
    Message(Box<MessageView>),
    Event(Box<RecordedEvent>),
}

impl Found {
    fn at(&self) -> Timestamp {
        match self {
            Self::Message(view) => view.accepted_at,
            Self::Event(recorded) => recorded.recorded_at,
        }
    }
}

/// Shows everything of one correlation id.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let id = &*args.correlation_id;
    let mut found = Vec::new();
    for (inlet, _) in &engine.topology().await?.inlets {
        messages(&*engine, inlet, id, &mut found).await?;
    }
    events(&*engine, id, &mut found).await?;
    if found.is_empty() {
        return Err(Error::not_found("nothing bears this correlation id")
            .at(format!("`{id}`"))
            .mend("finished messages are shown only where the queue keeps results")
            .into());
    }
    // Of the same time, messages come before events as they were found.
    found.sort_by_key(Found::at);
    show(context, &found);
    Ok(Exit::Ok)
}

/// Unfinished messages and dead letters, then those that are kept for their results.
async fn messages(engine: &dyn Engine, inlet: &Inlet, id: &str, found: &mut Vec<Found>) -> Result<()> {
    let states = [MessageState::Done, MessageState::Expired, MessageState::Cancelled].map(FindBy::State);
    for by in [FindBy::Correlation(id.into())].into_iter().chain(states) {
        let mut query = MessageQuery { inlet: inlet.clone(), by, after: None, limit: PAGE_MAX };
        loop {
            let page = engine.find(query.clone()).await?;
            let bears = |view: &MessageView| view.message.correlation() == id;
            found.extend(page.items.into_iter().filter(bears).map(|view| Found::Message(Box::new(view))));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

async fn events(engine: &dyn Engine, id: &str, found: &mut Vec<Found>) -> Result<()> {
    let mut read = EventRead::all_of(EventScope::All);
    loop {
        let slice = engine.read_events(read.clone()).await?;
        let bears = |recorded: &RecordedEvent| recorded.event.message.correlation() == id;
        found.extend(slice.events.into_iter().filter(bears).map(|one| Found::Event(Box::new(one))));
        match slice.next {
            Some(next) => read.from = next,
            None => return Ok(()),
        }
    }
}

/// One line of JSON: what it is, then what is known of it.
#[derive(Serialize)]
struct Line<T> {
    at: Timestamp,
    what: &'static str,
    #[serde(flatten)]
    known: T,
}

fn show(context: &Context, found: &[Found]) {
    if context.out.is_json() {
        for one in found {
            let at = one.at();
            match one {
                Found::Message(view) => {
                    context.out.object(&Line { at, what: "message", known: view_json(view) });
                }
                Found::Event(recorded) => {
                    context.out.object(&Line { at, what: "event", known: event_json(recorded) });
                }
            }
        }
        return;
    }
    let mut table = Table::new(&["TIME", "WHERE", "STATE", "ID", "TYPE", "CAUSED BY", "ERROR"]);
    for one in found {
        let (place, state, message, error) = match one {
            Found::Message(view) => {
                let error = view.causes.last().map(|cause| one_line(&cause.failure.error, WIDTH));
                (view.inlet.to_string(), view.state.to_string(), &view.message, error)
            }
            Found::Event(recorded) => {
                let state = format!("event {}", recorded.revision);
                (recorded.stream.to_string(), state, &recorded.event.message, None)
            }
        };
        table.row(vec![
            one.at().to_string(),
            one_line(&place, WIDTH),
            state,
            message.id.to_string(),
            one_line(&message.kind, WIDTH),
            message.causation_id.as_deref().unwrap_or("-").to_owned(),
            error.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
}
