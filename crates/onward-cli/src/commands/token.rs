//! `onward token`: a new token for the HTTP API.

use crate::{
    context::Context,
    exit::{Exit, Outcome},
};
use clap::ValueEnum;
use onward_server::{Action, Grant, new_token, token_hash};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward token shop --allow publish --allow read --names 'shop/*'
  onward token thumbnailer --allow work --names shop/uploads --json

The token is shown once. What belongs into the file that `onward serve --tokens` reads is the line with its hash: a \
list of such lines, `[LINE, LINE]`. To change a token, add the new hash to the old one's `hashes`, and take the old one \
out when nobody uses it any more.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name, for logs and the audit
    #[arg(value_name = "NAME")]
    name: String,
    /// What it allows; may be given several times
    #[arg(long, required = true, value_name = "ACTION")]
    allow: Vec<Allow>,
    /// Queues and topics with their namespace, `*` at the end for any rest; everywhere where none is given
    #[arg(long, value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Allow {
    /// Enqueue and submit jobs
    Publish,
    /// Lease, extend and settle
    Work,
    /// Look at messages and numbers
    Read,
    /// Redrive, edit, purge, cancel, pause and resume
    Operate,
    /// See private fields in clear
    Reveal,
    /// Declare and drop, and all of the above
    Admin,
}

#[derive(Serialize)]
struct Made<'a> {
    token: &'a str,
    grant: &'a Grant,
}

/// Makes a token and the line for the file of tokens.
pub(crate) fn run(context: &Context, args: Args) -> Outcome {
    let token = new_token(&*context.env);
    let grant = Grant {
        name: args.name.into(),
        hashes: vec![token_hash(&token)],
        actions: args.allow.into_iter().map(action).collect(),
        names: args.names,
    };
    if context.out.is_json() {
        context.out.object(&Made { token: &token, grant: &grant });
        return Ok(Exit::Ok);
    }
    context.out.line(format_args!("token: {token}"));
    context.out.line(format_args!("line:  {}", serde_json::to_string(&grant).unwrap_or_default()));
    Ok(Exit::Ok)
}

fn action(allow: Allow) -> Action {
    match allow {
        Allow::Publish => Action::Publish,
        Allow::Work => Action::Work,
        Allow::Read => Action::Read,
        Allow::Operate => Action::Operate,
        Allow::Reveal => Action::Reveal,
        Allow::Admin => Action::Admin,
    }
}
