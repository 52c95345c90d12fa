//! Looking at dead letters.

use super::One;
use crate::{
    args::{Filters, matches},
    commands::{peek::page, view},
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
};
use onward_core::{Engine, Error, Inlet, MessageQuery, MessageState, MessageView, PAGE_MAX};

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  onward dead list
  onward dead list emails --cause timeout --before 2h
  onward dead list emails --error 'connection refused' --json";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  onward dead show emails msg-12345
  onward dead show emails msg-12345 --json";

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The queue; all when none is named
    #[arg(value_name = "QUEUE")]
    inlet: Option<Inlet>,
    #[command(flatten)]
    filters: Filters,
}

/// Lists dead letters, oldest first.
pub(super) async fn list(context: &Context, args: ListArgs) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    let inlets = match args.inlet {
        Some(inlet) => {
            require_inlet(&topology, &inlet)?;
            vec![inlet]
        }
        None => topology.inlets.into_iter().map(|(inlet, _)| inlet).collect(),
    };
    let selection = args.filters.selection(&[], context.env.now());
    let most = selection.limit.unwrap_or(u64::MAX);
    let mut left = most;
    for inlet in inlets {
        let mut query = MessageQuery::state(inlet, MessageState::Dead, PAGE_MAX);
        let mut more = true;
        while more && left > 0 && !context.out.closed() {
            let items;
            (items, more) = page(&*engine, &mut query).await?;
            let room = usize::try_from(left).unwrap_or(usize::MAX);
            let found: Vec<MessageView> =
                items.into_iter().filter(|item| matches(&selection, item)).take(room).collect();
            left -= found.len() as u64;
            if !found.is_empty() {
                view::dead(context, &found);
            }
        }
    }
    if left == most {
        context.out.note("no dead letters");
    }
    Ok(Exit::Ok)
}

/// Shows one dead letter in full.
pub(super) async fn show(context: &Context, one: One) -> Outcome {
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, &one.inlet)?;
    view::full(context, &the_dead(&*engine, &one).await?);
    Ok(Exit::Ok)
}

/// The dead letter of an id.
///
/// # Errors
/// `NotFound` when there is none, saying what state the message is in instead.
pub(super) async fn the_dead(engine: &dyn Engine, one: &One) -> Outcome<MessageView> {
    let found = engine.find(MessageQuery::id(one.inlet.clone(), one.id.clone())).await?.items.pop();
    let what = match found {
        Some(view) if view.state == MessageState::Dead => return Ok(view),
        Some(view) => format!("the message is not a dead letter: it is {}", view.state),
        None => "there is no message of this id".to_owned(),
    };
    Err(Error::not_found(what)
        .at(format!("{} in {}", one.id, one.inlet))
        .mend(format!("`onward dead list {}` lists them", one.inlet))
        .into())
}
