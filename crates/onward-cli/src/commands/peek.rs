//! `onward peek`: looks at messages without taking them.

use super::view;
use crate::{
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
};
use clap::ValueEnum;
use onward_core::{Engine, FindBy, Inlet, Key, MessageQuery, MessageState, MessageView, PAGE_MAX};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward peek emails
  onward peek emails --state delayed --limit 100
  onward peek emails --correlation-id order-4711 --json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    inlet: Inlet,
    /// In this state
    #[arg(long, value_enum, default_value = "waiting", conflicts_with_all = ["correlation_id", "order_key"])]
    state: StateArg,
    /// Unfinished messages and dead letters of this correlation id
    #[arg(long, value_name = "ID", conflicts_with = "order_key")]
    correlation_id: Option<String>,
    /// Unfinished messages and dead letters of this order key, in order
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    order_key: Option<Key>,
    /// At most so many
    #[arg(long, short = 'n', default_value = "20", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

/// A [`MessageState`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateArg {
    Waiting,
    Delayed,
    Leased,
    Dead,
    Done,
    Expired,
    Cancelled,
}

impl From<StateArg> for MessageState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Waiting => Self::Waiting,
            StateArg::Delayed => Self::Delayed,
            StateArg::Leased => Self::Leased,
            StateArg::Dead => Self::Dead,
            StateArg::Done => Self::Done,
            StateArg::Expired => Self::Expired,
            StateArg::Cancelled => Self::Cancelled,
        }
    }
}

/// Shows messages of one queue.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, &args.inlet)?;
    let by = match (args.correlation_id, args.order_key) {
        (Some(id), _) => FindBy::Correlation(id.as_str().into()),
        (_, Some(key)) => FindBy::OrderKey(key),
        _ => FindBy::State(args.state.into()),
    };
    let (mut left, name) = (args.limit, args.inlet.clone());
    let mut query = MessageQuery { inlet: args.inlet, by, after: None, limit: 0 };
    while left > 0 && !context.out.closed() {
        query.limit = usize::try_from(left).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let (items, more) = page(&*engine, &mut query).await?;
        if items.is_empty() && left == args.limit {
            context.out.note(format_args!("nothing of that kind is in {name}"));
            break;
        }
        left = left.saturating_sub(items.len() as u64);
        view::list(context, &items);
        if !more {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// One page, and whether there is another; the query then stands at its begin.
pub(super) async fn page(
    engine: &dyn Engine,
    query: &mut MessageQuery,
) -> Result<(Vec<MessageView>, bool), onward_core::Error> {
    let page = engine.find(query.clone()).await?;
    query.after = page.next;
    Ok((page.items, query.after.is_some()))
}
