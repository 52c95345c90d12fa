//! `onward schedules`: list, put, remove, preview.

mod list;
mod put;
mod when;

use crate::{
    context::{Context, nearest},
    exit::{Exit, Outcome},
};
use clap::Subcommand;
use onward_core::{Engine, Error, Name, Op, ScheduleView};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward schedules
  onward schedules put nightly --queue reports --cron '30 2 * * *' --zone Europe/Zurich
  onward schedules put sweep --queue cleanup --every 5m --overlap skip
  onward schedules preview --cron '0 9 * * MON-FRI' --zone America/New_York";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List schedules with their next tick in their zone (this is what `onward schedules` does)
    #[command(after_help = "Examples:\n  onward schedules list\n  onward schedules list --json")]
    List,
    /// Set a schedule, new or with other content
    #[command(after_help = put::EXAMPLES)]
    Put(Box<put::Args>),
    /// Remove a schedule; messages that it gave stay
    #[command(after_help = "Examples:\n  onward schedules remove nightly")]
    Remove(One),
    /// Show the next ticks of a schedule, or of a cron line before it is put
    #[command(after_help = list::PREVIEW_EXAMPLES)]
    Preview(list::PreviewArgs),
}

#[derive(Debug, clap::Args)]
struct One {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: Name,
}

/// Runs one action on schedules.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action.unwrap_or(Action::List) {
        Action::List => list::run(context).await,
        Action::Put(args) => put::run(context, *args).await,
        Action::Remove(one) => remove(context, one.name).await,
        Action::Preview(args) => list::preview(context, args).await,
    }
}

#[derive(Serialize)]
struct Removed<'a> {
    schedule: &'a Name,
    done: &'static str,
}

async fn remove(context: &Context, name: Name) -> Outcome {
    let engine = context.open_existing().await?;
    find(&*engine, &name).await?;
    let op = Op::PutSchedule { name: name.clone(), schedule: None };
    engine.commit(engine.prepare(vec![op])?).await?;
    match context.out.is_json() {
        true => context.out.object(&Removed { schedule: &name, done: "removed" }),
        false => context.out.line(format_args!("{name}: removed")),
    }
    Ok(Exit::Ok)
}

/// The schedule of a name, or an error with the nearest one there is.
async fn find(engine: &dyn Engine, name: &Name) -> Outcome<ScheduleView> {
    let schedules = engine.topology().await?.schedules;
    let names: Vec<String> = schedules.iter().map(|view| view.name.to_string()).collect();
    if let Some(view) = schedules.into_iter().find(|view| view.name == *name) {
        return Ok(view);
    }
    let mend = match nearest(&name.to_string(), names) {
        Some(near) => format!("did you mean `{near}`? `onward schedules` lists them"),
        None => "`onward schedules` lists them".to_owned(),
    };
    Err(Error::not_found("there is no such schedule").at(name).mend(mend).into())
}
