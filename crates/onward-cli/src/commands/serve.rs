//! `onward serve`: the HTTP API of a data folder.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
};
use onward::Onward;
use onward_core::Error;
use onward_server::{Grants, ServerOptions};
use serde::Serialize;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward serve
  onward serve --listen 127.0.0.1:8080 --data-dir /var/lib/onward
  onward serve --listen 0.0.0.0:7070 --tokens tokens.json
  onward serve --openapi > openapi.json

Then, from anywhere on this machine:
  curl -d '{\"name\":\"Ada\"}' -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' 127.0.0.1:7070/v1/jobs/welcome

Without --tokens only this machine is served. SIGTERM and Ctrl-C let running requests end.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address to listen on; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7070", env = "ONWARD_LISTEN")]
    listen: SocketAddr,
    /// Who may do what: a JSON list of tokens by their hashes, as `onward token` prints them
    #[arg(long, value_name = "FILE", env = "ONWARD_TOKENS")]
    tokens: Option<PathBuf>,
    /// Print the API's OpenAPI description and end
    #[arg(long)]
    openapi: bool,
}

#[derive(Serialize)]
struct Listening {
    listening: SocketAddr,
    durability: onward_core::Durability,
    tokens: bool,
}

/// Serves until it is told to stop.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    if args.openapi {
        context.out.write(onward_server::openapi_json().as_bytes());
        return Ok(Exit::Ok);
    }
    let grants = args.tokens.as_deref().map(read_tokens).transpose()?.unwrap_or_default();
    let options = ServerOptions { grants, ..ServerOptions::default() };
    let taken = |e: std::io::Error| Error::unavailable(format!("can't be listened on: {e}")).at(args.listen);
    let listener =
        TcpListener::bind(args.listen).await.map_err(|e| taken(e).mend("choose another with --listen"))?;
    let engine = context.open().await?;
    let listening = Listening {
        listening: listener.local_addr().map_err(taken)?,
        durability: engine.capabilities().durability,
        tokens: !options.grants.is_open(),
    };
    let onward = Onward::new(engine, context.env.clone());
    say(context, &listening);
    onward_server::serve(listener, onward, options, asked_to_stop()).await?;
    Ok(Exit::Ok)
}

fn say(context: &Context, listening: &Listening) {
    if context.out.is_json() {
        return context.out.object(listening);
    }
    let Listening { listening: address, durability, tokens } = listening;
    let durability = serde_json::to_value(durability).ok().and_then(|text| text.as_str().map(str::to_owned));
    context
        .out
        .line(format_args!("listening on http://{address}, durability {}", durability.unwrap_or_default()));
    if !tokens {
        context.out.note(format_args!("no token is asked for; --tokens FILE changes that"));
    }
}

fn read_tokens(path: &Path) -> Outcome<Grants> {
    let wrong = |e: std::io::Error| Error::not_found(format!("can't be read: {e}")).at(path.display());
    let text =
        std::fs::read(path).map_err(|e| wrong(e).mend("name a file that `onward token` helped to write"))?;
    let grants = Grants::from_json(&text)?;
    if grants.is_open() {
        return Err(Error::invalid("has no token")
            .at(path.display())
            .mend("make one with `onward token`")
            .into());
    }
    Ok(grants)
}

async fn asked_to_stop() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
