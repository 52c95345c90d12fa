//! Changing a dead letter. The bytes given are the bytes kept: no digit of a number is lost.

use super::{One, list::the_dead};
use crate::{
    args::values::pair,
    context::{Context, require_inlet},
    exit::{Exit, Failure, Outcome},
};
use onward_core::{
    BulkId, DeadEdit, Error, MessageId, Op, PAYLOAD_BYTES_CEILING, Payload, Receipt, Selection,
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  onward dead edit emails msg-12345 --set-data '{\"to\":\"ada@example.com\"}'
  onward dead edit emails msg-12345 --file fixed.json --redrive
  onward dead edit emails msg-12345 --set-type email.welcome --set-version 2 --header tenant=acme";

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
pub(super) struct Args {
    #[command(flatten)]
    one: One,
    /// New data, as JSON
    #[arg(long, value_name = "JSON", group = "change", conflicts_with = "file")]
    set_data: Option<String>,
    /// New data from a file (`-` is stdin)
    #[arg(long, value_name = "FILE", group = "change")]
    file: Option<PathBuf>,
    /// What the file holds, where it is not JSON
    #[arg(long, value_name = "TYPE", requires = "file")]
    content_type: Option<String>,
    /// New type
    #[arg(long, value_name = "TYPE", group = "change")]
    set_type: Option<String>,
    /// New schema version
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(u32).range(1..))]
    set_version: Option<u32>,
    /// Set a header
    #[arg(long, value_name = "NAME=VALUE", group = "change", value_parser = pair)]
    header: Vec<(String, String)>,
    /// Remove a header
    #[arg(long, value_name = "NAME", group = "change")]
    remove_header: Vec<String>,
    /// Move it back to work, once the new edition is durable
    #[arg(long)]
    redrive: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a MessageId,
    edition: u32,
    redriven: bool,
}

/// Edits one dead letter.
pub(super) async fn run(context: &Context, args: Args) -> Outcome {
    let edit = edit_of(&args)?;
    let One { inlet, id } = &args.one;
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, inlet)?;
    the_dead(&*engine, &args.one).await?;
    let edit = Op::EditDead { inlet: inlet.clone(), id: id.clone(), edit };
    let receipts = engine.commit(engine.prepare(vec![edit])?).await?;
    let Some(Receipt::Edited { edition }) = receipts.into_iter().next() else {
        return Err(Error::internal("the engine answered an edit with something else").into());
    };
    if args.redrive {
        // In a commit of its own: one commit changes a message once. Stopped in between, the edited one is still dead.
        let redrive = Op::Redrive {
            inlet: inlet.clone(),
            selection: Selection { ids: vec![id.clone()], ..Selection::default() },
            spacing: Duration::ZERO,
            bulk: BulkId::generate(&*context.env),
            dry_run: false,
        };
        engine.commit(engine.prepare(vec![redrive])?).await?;
    }
    let line = Line { id, edition, redriven: args.redrive };
    match (context.out.is_json(), args.redrive) {
        (true, _) => context.out.object(&line),
        (false, true) => context.out.line(format_args!("{id}: edition {edition}, redriven")),
        (false, false) => context.out.line(format_args!("{id}: edition {edition}")),
    }
    Ok(Exit::Ok)
}

fn edit_of(args: &Args) -> Outcome<DeadEdit> {
    let data = match (&args.set_data, &args.file) {
        (Some(text), _) => Some(Payload::json_text(text.clone()).map_err(|e| e.at("--set-data"))?),
        (None, Some(path)) => Some(from_file(path, args.content_type.as_deref())?),
        (None, None) => None,
    };
    let set = args.header.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let removed = args.remove_header.iter().map(|name| (name.clone(), None));
    let headers: BTreeMap<String, Option<String>> = set.chain(removed).collect();
    Ok(DeadEdit { data, kind: args.set_type.as_deref().map(Into::into), version: args.set_version, headers })
}

fn from_file(path: &Path, content_type: Option<&str>) -> Outcome<Payload> {
    let wrong =
        |e: std::io::Error| Failure::from(Error::invalid(format!("can't be read: {e}")).at(path.display()));
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(path).map_err(wrong)?),
    };
    let mut bytes = Vec::new();
    source.take(PAYLOAD_BYTES_CEILING as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() > PAYLOAD_BYTES_CEILING {
        return Err(Error::invalid(format!("has more than {PAYLOAD_BYTES_CEILING} bytes"))
            .at(path.display())
            .mend("put it into object storage and send a reference (claim check)")
            .into());
    }
    let payload = match content_type {
        Some(kind) => Payload::bytes(bytes, kind),
        None => Payload::json_text(bytes),
    };
    Ok(payload.map_err(|e| e.at(path.display()).mend("give JSON, or say what it is with --content-type"))?)
}
