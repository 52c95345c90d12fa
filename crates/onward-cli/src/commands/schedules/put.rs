//! `onward schedules put`: what is enqueued, and when.

use super::when::{self, When};
use crate::{
    args::values,
    context::{Context, queue_name},
    exit::{Exit, Failure, Outcome},
};
use onward_core::{CatchUp, Inlet, Key, Message, Name, Op, Overlap, Payload, Priority, Schedule, Timestamp};
use serde::Serialize;

pub(super) const EXAMPLES: &str = "\
Examples:
  onward schedules put nightly --queue reports --cron '30 2 * * *' --zone Europe/Zurich --data '{\"kind\":\"sales\"}'
  onward schedules put sweep --queue cleanup --every 5m --overlap skip
  onward schedules put hourly --queue sync --cron @hourly --catch-up backfill:24 --until 2030-01-01T00:00:00Z";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The schedule; one of the same name is replaced, and fires no tick again that it has fired
    #[arg(value_name = "SCHEDULE")]
    name: Name,
    /// The queue
    #[arg(long, value_name = "QUEUE")]
    queue: Inlet,
    #[command(flatten)]
    when: When,
    /// What happens to ticks that were missed: skip, coalesce (one for all), backfill:N (the latest N)
    #[arg(long, value_name = "POLICY", default_value = "coalesce", value_parser = when::catch_up)]
    catch_up: CatchUp,
    /// What happens while the last message is unfinished: allow, skip
    #[arg(long, value_name = "POLICY", default_value = "allow", value_parser = when::overlap)]
    overlap: Overlap,
    /// No tick after this
    #[arg(long, value_name = "TIME", value_parser = values::timestamp)]
    until: Option<Timestamp>,
    /// The message's type; otherwise the schedule's name
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The message's data, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    data: String,
    /// A header of the message
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::pair)]
    header: Vec<(String, String)>,
    /// 0 (lowest) to 9
    #[arg(long, value_name = "N", value_parser = priority)]
    priority: Option<Priority>,
    /// Handled one at a time, in order, with others of this key
    #[arg(long, value_name = "KEY", value_parser = |text: &str| Key::try_from(text))]
    order_key: Option<Key>,
}

fn priority(text: &str) -> Result<Priority, String> {
    let number: u8 = text.parse().map_err(|_| format!("`{text}` is not 0 to 9"))?;
    Priority::try_from(number).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Line<'a> {
    schedule: &'a Name,
    queue: String,
    done: &'static str,
    next: Option<Timestamp>,
}

/// Puts one schedule, and says when it fires next.
pub(super) async fn run(context: &Context, args: Args) -> Outcome {
    let queue = queue_name(&args.queue)?;
    let Some(when) = args.when.given(context.env.now()) else {
        return Err(Failure::usage("no ticks were given", "give --cron LINE, or --every SPAN"));
    };
    let schedule = Schedule {
        queue,
        template: template(context, &args)?,
        when,
        catch_up: args.catch_up,
        overlap: args.overlap,
        until: args.until,
    };
    let engine = context.open().await?;
    let op = Op::PutSchedule { name: args.name.clone(), schedule: Some(Box::new(schedule)) };
    engine.commit(engine.prepare(vec![op])?).await?;
    let view = super::find(&*engine, &args.name).await?;
    let line = Line { schedule: &args.name, queue: args.queue.to_string(), done: "put", next: view.next };
    if context.out.is_json() {
        context.out.object(&line);
        return Ok(Exit::Ok);
    }
    let next = match view.next {
        Some(next) => view.schedule.when.ticks()?.local(next),
        None => "never".to_owned(),
    };
    context.out.line(format_args!("{}: next tick {next}", args.name));
    Ok(Exit::Ok)
}

fn template(context: &Context, args: &Args) -> Outcome<Message> {
    let kind = args.kind.as_deref().unwrap_or(args.name.local());
    let mut builder = Message::builder(kind).data(Payload::json_text(args.data.clone())?);
    for (name, value) in &args.header {
        builder = builder.header(name, value);
    }
    let mut message = builder.build(&*context.env)?;
    message.priority = args.priority.unwrap_or_default();
    message.order_key = args.order_key.clone();
    Ok(message)
}
