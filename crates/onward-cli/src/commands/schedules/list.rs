//! `onward schedules list` and `preview`: which tick comes when, by the clock of its zone.

use super::when::{self, When};
use crate::{
    context::Context,
    exit::{Exit, Failure, Outcome},
    output::{Table, span},
};
use onward_core::{CatchUp, MessageId, Name, Overlap, ScheduleView, ScheduleWhen, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

pub(super) const PREVIEW_EXAMPLES: &str = "\
Examples:
  onward schedules preview nightly --count 10
  onward schedules preview --cron '30 2 * * *' --zone Europe/Zurich --after 2024-03-30T00:00:00Z
  onward schedules preview --every 90s --json";

/// Most ticks of one preview.
const COUNT_MAX: u32 = 1_000;

#[derive(Debug, clap::Args)]
pub(super) struct PreviewArgs {
    /// A schedule that was put
    #[arg(value_name = "SCHEDULE", conflicts_with_all = ["cron", "every"])]
    name: Option<Name>,
    #[command(flatten)]
    when: When,
    /// So many ticks, up to 1000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,
    /// Those after this time; otherwise after now
    #[arg(long, value_name = "TIME", value_parser = crate::args::values::timestamp)]
    after: Option<Timestamp>,
}

/// A schedule as JSON; `message` is the template's envelope.
#[derive(Serialize)]
struct Line<'a> {
    schedule: &'a Name,
    queue: &'a Name,
    when: &'a ScheduleWhen,
    catch_up: CatchUp,
    overlap: Overlap,
    until: Option<Timestamp>,
    since: Timestamp,
    next: Option<Timestamp>,
    next_local: Option<String>,
    last: Option<Timestamp>,
    last_message: &'a Option<MessageId>,
    fired: u64,
    missed: u64,
    overlapped: u64,
    problem: &'a Option<String>,
    message: Box<RawValue>,
}

impl<'a> Line<'a> {
    fn of(view: &'a ScheduleView) -> Outcome<Self> {
        let schedule = &view.schedule;
        let message = RawValue::from_string(schedule.template.to_json());
        Ok(Self {
            schedule: &view.name,
            queue: &schedule.queue,
            when: &schedule.when,
            catch_up: schedule.catch_up,
            overlap: schedule.overlap,
            until: schedule.until,
            since: view.since,
            next: view.next,
            next_local: local(&schedule.when, view.next)?,
            last: view.last,
            last_message: &view.last_message,
            fired: view.fired,
            missed: view.missed,
            overlapped: view.overlapped,
            problem: &view.problem,
            message: message.unwrap_or_else(|_| RawValue::NULL.to_owned()),
        })
    }
}

fn local(when: &ScheduleWhen, tick: Option<Timestamp>) -> Outcome<Option<String>> {
    let Some(tick) = tick else { return Ok(None) };
    Ok(Some(when.ticks()?.local(tick)))
}

/// Lists all schedules.
pub(super) async fn run(context: &Context) -> Outcome {
    let engine = context.open_existing().await?;
    let schedules = engine.topology().await?.schedules;
    if context.out.is_json() {
        for view in &schedules {
            context.out.object(&Line::of(view)?);
        }
        return Ok(Exit::Ok);
    }
    if schedules.is_empty() {
        context.out.note("there are no schedules; `onward schedules put --help` shows how to make one");
        return Ok(Exit::Ok);
    }
    let now = context.env.now();
    let mut table = Table::new(&["SCHEDULE", "QUEUE", "WHEN", "NEXT", ">IN", ">FIRED", ">MISSED"]);
    for view in &schedules {
        table.row(vec![
            view.name.to_string(),
            view.schedule.queue.to_string(),
            when::text(&view.schedule.when),
            local(&view.schedule.when, view.next)?.unwrap_or_else(|| "never".to_owned()),
            view.next.map_or_else(String::new, |next| span(next.since(now))),
            view.fired.to_string(),
            view.missed.to_string(),
        ]);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
    for view in schedules.iter().filter(|view| view.problem.is_some()) {
        let problem = view.problem.as_deref().unwrap_or_default();
        context.out.note(format_args!("{}: its tick is due and can't be fired: {problem}", view.name));
    }
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Tick {
    tick: Timestamp,
    local: String,
}

/// Shows the next ticks, of a schedule that was put or of what is written.
pub(super) async fn preview(context: &Context, args: PreviewArgs) -> Outcome {
    let now = context.env.now();
    let (when, until) = match (&args.name, args.when.given(now)) {
        (Some(name), _) => {
            let engine = context.open_existing().await?;
            let schedule = super::find(&*engine, name).await?.schedule;
            (schedule.when, schedule.until)
        }
        (None, Some(when)) => (when, None),
        (None, None) => {
            return Err(Failure::usage("no ticks were given", "name a schedule, or give --cron or --every"));
        }
    };
    let ticks = when.ticks()?;
    let after = ticks.iter_after(args.after.unwrap_or(now));
    let shown = after.take(args.count as usize).take_while(|tick| until.is_none_or(|until| *tick <= until));
    let mut any = false;
    for tick in shown {
        any = true;
        let local = ticks.local(tick);
        match context.out.is_json() {
            true => context.out.object(&Tick { tick, local }),
            false => context.out.line(format_args!("{local}  {tick}")),
        }
    }
    if !any {
        context.out.note("no tick is left");
    }
    Ok(Exit::Ok)
}
