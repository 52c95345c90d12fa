//! `onward work`: any program becomes a worker.

use crate::{
    args::values::duration,
    context::Context,
    exec::{Commands, Enough, Guard, Runner, Shown, Stopping},
    exit::{Exit, Outcome},
    output::span,
};
use onward::{
    Onward,
    work::{self, Report, Worker, handler},
};
use onward_core::{Engine, Inlet, LEASE_COUNT_MAX, TopologyChange};
use serde::Serialize;
use std::{sync::Arc, time::Duration};

pub(crate) const ABOUT: &str = "\
Work on a queue with any program.

For each message the command is run by /bin/sh, with the whole envelope as one JSON line on its stdin. It inherits \
the environment, and has ONWARD_ID, ONWARD_TYPE, ONWARD_VERSION, ONWARD_SOURCE, ONWARD_CORRELATION_ID, ONWARD_QUEUE, \
ONWARD_ATTEMPT and ONWARD_DATA_DIR besides.

Its exit code decides:
  0       done; the message is acknowledged
  65      the data is wrong; to the dead letters now
  75      try again later; so does every other exit code
  signal  a failed attempt too, with the cause `crashed`

A message that fails is tried again after a delay, and is a dead letter once its attempts are used up; the end of the \
command's output (4 KiB of stdout and stderr) is kept with each failure. The lease is extended as long as the command \
runs. The command has a process group of its own: it is killed, with everything that it started, when the command \
ends, at its timeout, when its lease is lost, and when the worker dies, even by SIGKILL. The message of a worker that \
died is handed to another one at once.

SIGTERM or Ctrl-C stops gracefully: what runs may end within --grace; what does not is killed and put back, which \
counts no attempt. A second signal does so at once.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward work emails --exec 'python3 send.py'
  onward work emails --drain --exec cat
  onward work thumbnails --concurrency 4 --timeout 2m --exec './thumbnail.sh'
  onward work emails --once --exec 'jq -e .data.to' --json

Exit code 0 after a graceful stop; with --once and --drain 1 when an attempt failed.";

/// Longer than anything that runs: the worker's own timeouts are set by options here.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The queues, or subscriptions as topic:name
    #[arg(value_name = "QUEUE", required = true)]
    inlets: Vec<Inlet>,
    /// The command, as /bin/sh takes it
    #[arg(long, short, value_name = "COMMAND", value_parser = command)]
    exec: String,
    /// How many commands run at once
    #[arg(long, short, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=LEASE_COUNT_MAX as i64))]
    concurrency: u32,
    /// Take one message, then end
    #[arg(long, conflicts_with_all = ["drain", "concurrency"])]
    once: bool,
    /// End when nothing waits any more
    #[arg(long)]
    drain: bool,
    /// Kill a command that takes longer; the attempt has failed
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long a lease lasts; it is extended as long as the command runs
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    lease: Duration,
    /// How long running commands may go on after SIGTERM
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "25s")]
    grace: Duration,
    /// Take messages of this type only, leaving others to other workers; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    kinds: Vec<String>,
    /// Stdout is the message's result, up to 1 MiB; the queue must keep results
    #[arg(long)]
    keep_output: bool,
    /// The worker's name, for people; need not be unique
    #[arg(long, value_name = "NAME", default_value = "exec")]
    worker: String,
}

#[derive(Serialize)]
struct Begin<'a> {
    event: &'static str,
    queues: &'a [Inlet],
    data_dir: &'a str,
    durability: onward_core::Durability,
    concurrency: u32,
    lease_ms: u64,
    worker: &'a str,
}

#[derive(Serialize)]
struct End {
    event: &'static str,
    done: u64,
    failed: u64,
    put_back: u64,
    cancelled: u64,
    lost: u64,
}

/// Runs commands until there is enough.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open().await?;
    let onward = Onward::new(engine.clone(), context.env.clone());
    let stopping = Stopping::new();
    stopping.follow_signals(context.env.clone(), args.grace)?;
    prepare(context, &onward, &args).await?;
    let worker = worker(context, &onward, &args, &stopping)?;
    let enough = match (args.once, args.drain) {
        (true, _) => Enough::Once,
        (_, true) => Enough::Empty,
        _ => Enough::Never,
    };
    begin(context, &onward, &args);
    let process = onward.process().id().clone();
    let stop = stopping.enough(enough, &*engine, &*context.env, args.inlets.clone(), &process);
    let report = worker.run_until(stop).await?;
    end(context, &report);
    if enough == Enough::Empty {
        remaining(context, &*engine, args.inlets).await?;
    }
    let failed = report.failed + report.lost > 0;
    Ok(if failed && enough != Enough::Never { Exit::Failed } else { Exit::Ok })
}

/// Makes queues that are not there, and says what will not work as one might think.
async fn prepare(context: &Context, onward: &Onward, args: &Args) -> Outcome<()> {
    let topology = onward.engine().topology().await?;
    for inlet in &args.inlets {
        let known = topology.inlets.iter().find(|(known, _)| known == inlet);
        match (known, inlet) {
            (None, Inlet::Queue(name)) => {
                let change =
                    TopologyChange::Queue { name: name.clone(), config: Box::default(), update: false };
                onward.engine().declare(change).await?;
                context.out.note(format_args!("the queue {inlet} is new: made with default rules"));
            }
            (None, Inlet::Subscription { .. }) => crate::context::require_inlet(&topology, inlet)?,
            (Some((_, config)), _) if args.keep_output && config.result_retention_ms == 0 => {
                context.out.note(format_args!(
                    "{inlet} keeps no results: `onward queues declare {inlet} --update --keep-results 1d` makes it"
                ));
            }
            (Some(_), _) => {}
        }
    }
    Ok(())
}

fn worker(context: &Context, onward: &Onward, args: &Args, stopping: &Arc<Stopping>) -> Outcome<Worker> {
    let runner = Runner {
        command: args.exec.clone(),
        keep_output: args.keep_output,
        guard: Guard::start()?,
        env: context.env.clone(),
    };
    let shown = if context.out.is_json() { Shown::Json } else { Shown::Text };
    let data_dir = std::path::absolute(&context.data_dir).unwrap_or_else(|_| context.data_dir.clone());
    let commands = Arc::new(Commands::new(runner, stopping.clone(), context.out.clone(), shown, data_dir));
    let run = move |context: work::Context| {
        let commands = commands.clone();
        async move { commands.handle(context).await }
    };
    let handling = handler(run).timeout(args.timeout.unwrap_or(FOR_EVER));
    let handling = args.kinds.iter().fold(handling, |handling, kind| handling.kind(kind));
    let out = context.out.clone();
    let mut worker = Worker::new(onward)
        .name(&args.worker)
        .concurrency(args.concurrency)
        .lease(args.lease)
        // Draining is timed by the signal, not by the worker: --once and --drain wait for what runs.
        .drain(FOR_EVER)
        .on_dead(move |alarm| {
            out.note(format_args!(
                "dead letters in {}: {}, new ones: {}; `onward dead list {}` shows why",
                alarm.inlet, alarm.dead, alarm.new, alarm.inlet
            ));
        });
    if !args.kinds.is_empty() {
        worker = worker.leave_other_types();
    }
    Ok(args.inlets.iter().fold(worker, |worker, inlet| worker.handle(&inlet.to_string(), handling.clone())))
}

fn begin(context: &Context, onward: &Onward, args: &Args) {
    let durability = onward.engine().capabilities().durability;
    let data_dir = context.data_dir.display().to_string();
    if context.out.is_json() {
        context.out.object(&Begin {
            event: "begin",
            queues: &args.inlets,
            data_dir: &data_dir,
            durability,
            concurrency: args.concurrency,
            lease_ms: u64::try_from(args.lease.as_millis()).unwrap_or(u64::MAX),
            worker: &args.worker,
        });
        return;
    }
    let queues: Vec<String> = args.inlets.iter().map(ToString::to_string).collect();
    let (queues, count, lease) = (queues.join(", "), args.concurrency, span(args.lease));
    context.out.note(format_args!(
        "working on {queues} in {data_dir} (durability: {durability}), {count} at a time, lease {lease}"
    ));
}

/// What is there although nothing could be handed out any more.
async fn remaining(context: &Context, engine: &dyn Engine, inlets: Vec<Inlet>) -> Outcome<()> {
    for stats in engine.stats(inlets).await? {
        let (waiting, delayed) = (stats.books.waiting, stats.books.delayed);
        if waiting + delayed > 0 {
            context.out.note(format_args!("left in {}: {waiting} waiting, {delayed} delayed", stats.inlet));
        }
    }
    Ok(())
}

fn end(context: &Context, report: &Report) {
    let end = End {
        event: "end",
        done: report.done + report.skipped,
        failed: report.failed,
        put_back: report.released + report.interrupted,
        cancelled: report.cancelled,
        lost: report.lost,
    };
    if context.out.is_json() {
        context.out.object(&end);
        return;
    }
    let End { done, failed, put_back, cancelled, lost, .. } = end;
    let parts = [
        Some(format!("done: {done}")),
        Some(format!("failed attempts: {failed}")),
        (put_back > 0).then(|| format!("put back: {put_back}")),
        (cancelled > 0).then(|| format!("cancelled: {cancelled}")),
        (lost > 0).then(|| format!("lost their lease and come again: {lost}")),
    ];
    context.out.note(parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
}

/// Refuses an empty command (an unset variable): a shell would succeed at it, and every message be acknowledged undone.
fn command(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => {
            Err("the command is empty, and would acknowledge every message without doing anything".into())
        }
        false => Ok(text.to_owned()),
    }
}
