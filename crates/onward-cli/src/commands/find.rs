//! `onward find`: one message by its id, in whatever state.

use super::view;
use crate::{
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
};
use onward_core::{Engine, Error, Inlet, MessageId, MessageQuery, MessageView};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward find 018e4123-5c3a-7000-8000-000000000001
  onward find msg-12345 --queue emails --json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message's id
    #[arg(value_parser = |text: &str| MessageId::try_from(text))]
    id: MessageId,
    /// Look in this queue only
    #[arg(long, value_name = "QUEUE")]
    queue: Option<Inlet>,
}

/// Shows the message in every queue that has it.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let found = everywhere(&*engine, &args.id, args.queue.as_ref()).await?;
    found.iter().for_each(|message| view::full(context, message));
    Ok(Exit::Ok)
}

/// The message of an id in one queue or in all.
///
/// # Errors
/// `NotFound` when none has it.
pub(super) async fn everywhere(
    engine: &dyn Engine,
    id: &MessageId,
    only: Option<&Inlet>,
) -> Outcome<Vec<MessageView>> {
    let topology = engine.topology().await?;
    if let Some(inlet) = only {
        require_inlet(&topology, inlet)?;
    }
    let mut found = Vec::new();
    for (inlet, _) in &topology.inlets {
        if only.is_none_or(|wanted| wanted == inlet) {
            found.extend(engine.find(MessageQuery::id(inlet.clone(), id.clone())).await?.items);
        }
    }
    if found.is_empty() {
        return Err(Error::not_found("there is no message of this id")
            .at(id)
            .mend("finished messages are shown only where the queue keeps results (`queues declare --keep-results`)")
            .into());
    }
    Ok(found)
}
