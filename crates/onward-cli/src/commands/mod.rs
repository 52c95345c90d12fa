//! One file for each command.

pub(crate) mod append;
pub(crate) mod backup;
pub(crate) mod balance;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod enqueue;
pub(crate) mod export;
pub(crate) mod find;
pub(crate) mod import;
pub(crate) mod peek;
pub(crate) mod publish;
pub(crate) mod queues;
pub(crate) mod read;
pub(crate) mod restore;
pub(crate) mod schedules;
pub(crate) mod seek;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod ship;
pub(crate) mod standby;
pub(crate) mod stats;
pub(crate) mod streams;
pub(crate) mod subscribe;
pub(crate) mod subscriptions;
pub(crate) mod tail;
pub(crate) mod token;
pub(crate) mod topics;
pub(crate) mod trace;
pub(crate) mod truncate;
pub(crate) mod upgrade;
pub(crate) mod verify;
pub(crate) mod work;

mod view;

use crate::{args::Command, context::Context, exec, exit::Outcome};

/// Runs one command.
pub(crate) async fn run(context: &Context, command: Command) -> Outcome {
    match command {
        Command::Enqueue(args) => enqueue::run(context, args).await,
        Command::Work(args) => work::run(context, args).await,
        Command::Topics(args) => topics::run(context, args).await,
        Command::Publish(args) => publish::run(context, args).await,
        Command::Subscribe(args) => subscribe::run(context, args).await,
        Command::Subscriptions(args) => subscriptions::run(context, args).await,
        Command::Seek(args) => seek::run(context, args).await,
        Command::Tail(args) => tail::run(context, args).await,
        Command::Queues(args) => queues::run(context, args).await,
        Command::Schedules(args) => schedules::run(context, args).await,
        Command::Peek(args) => peek::run(context, args).await,
        Command::Find(args) => find::run(context, args).await,
        Command::Cancel(args) => cancel::run(context, args).await,
        Command::Dead(args) => dead::run(context, args).await,
        Command::Append(args) => append::run(context, args).await,
        Command::Read(args) => read::run(context, args).await,
        Command::Streams(args) => streams::run(context, args).await,
        Command::Truncate(args) => truncate::run(context, args).await,
        Command::Trace(args) => trace::run(context, args).await,
        Command::Stats(args) => stats::run(context, args).await,
        Command::Balance(args) => balance::run(context, args).await,
        Command::Serve(args) => serve::run(context, args).await,
        Command::Token(args) => token::run(context, args),
        Command::Verify(args) => verify::run(context, args).await,
        Command::Backup(args) => backup::run(context, args).await,
        Command::Restore(args) => restore::run(context, args).await,
        Command::Ship(args) => ship::run(context, args).await,
        Command::Standby(args) => standby::run(context, args).await,
        Command::Promote(args) => standby::promote(context, &args).await,
        Command::Export(args) => export::run(context, args).await,
        Command::Import(args) => import::run(context, args).await,
        Command::Upgrade(args) => upgrade::run(context, &args),
        Command::Demo(args) => demo::run(context, args).await,
        Command::Bench(args) => bench::run(context, args).await,
        Command::Completions(args) => shell::completions(context, &args),
        Command::Man(args) => shell::man(context, &args),
        Command::Guard => exec::guard::run(),
    }
}
