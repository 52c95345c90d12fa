//! `onward cancel`: a waiting message is gone, a running one is asked to stop.

use super::find::everywhere;
use crate::{
    context::Context,
    exit::{Exit, Outcome},
};
use onward_core::{CancelOutcome, Error, Inlet, MessageId, Op, Receipt};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward cancel 018e4123-5c3a-7000-8000-000000000001
  onward cancel msg-12345 --queue emails --json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message's id
    #[arg(value_parser = |text: &str| MessageId::try_from(text))]
    id: MessageId,
    /// The queue it is in; needed where several have this id
    #[arg(long, value_name = "QUEUE")]
    queue: Option<Inlet>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a MessageId,
    queue: &'a Inlet,
    outcome: CancelOutcome,
}

/// Cancels one message. Exit code 1 when it is finished already.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let found = everywhere(&*engine, &args.id, args.queue.as_ref()).await?;
    let [message] = found.as_slice() else {
        let queues: Vec<String> = found.iter().map(|m| m.inlet.to_string()).collect();
        return Err(Error::conflict(format!("several queues have this id: {}", queues.join(", ")))
            .at(&args.id)
            .mend("name one with --queue")
            .into());
    };
    let inlet = message.inlet.clone();
    let op = Op::Cancel { inlet: inlet.clone(), id: args.id.clone() };
    let receipts = engine.commit(engine.prepare(vec![op])?).await?;
    let Some(Receipt::Cancelled(outcome)) = receipts.into_iter().next() else {
        return Err(Error::internal("the engine answered a cancellation with something else").into());
    };
    let line = Line { id: &args.id, queue: &inlet, outcome };
    let text = match outcome {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::Requested => "it is being worked on; its worker is asked to stop",
        CancelOutcome::AlreadyFinished => "it is finished already; nothing changed",
    };
    match context.out.is_json() {
        true => context.out.object(&line),
        false => context.out.line(format_args!("{} in {inlet}: {text}", args.id)),
    }
    Ok(if outcome == CancelOutcome::AlreadyFinished { Exit::Failed } else { Exit::Ok })
}
