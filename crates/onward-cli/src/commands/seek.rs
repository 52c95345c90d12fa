//! `onward seek`: moves a subscription.

use crate::{
    args::values::{Moment, moment},
    context::{Context, require_inlet, subscription_name},
    exit::{Exit, Outcome},
};
use onward_core::{Error, Inlet, Op, Position, Receipt, SeekMode, SeekTo, Sought};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward seek orders:analytics --to-beginning --reprocess
  onward seek orders:analytics --to 2h --reprocess
  onward seek orders:emails --to-beginning --fill-gaps
  onward seek orders:emails --to-end --reprocess

--reprocess runs handlers again: a new replay epoch, which ends every lease; dead letters stay, and are redriven.
--fill-gaps brings only what was passed over: before it began, jumped over, purged or shed.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The subscription, with its topic
    #[arg(value_name = "TOPIC:NAME")]
    inlet: Inlet,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    mode: Mode,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// The oldest message that is kept
    #[arg(long)]
    to_beginning: bool,
    /// Behind the newest message
    #[arg(long)]
    to_end: bool,
    /// The first message since: RFC 3339, or how long ago as in 2h
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Moment>,
    /// The first message at or after this position
    #[arg(long, value_name = "N")]
    to_position: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Mode {
    /// What was processed is processed again
    #[arg(long)]
    reprocess: bool,
    /// What was processed is skipped
    #[arg(long)]
    fill_gaps: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    subscription: &'a Inlet,
    #[serde(flatten)]
    sought: Sought,
}

/// Moves one subscription.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    subscription_name(&args.inlet)?;
    let engine = context.open_existing().await?;
    require_inlet(&engine.topology().await?, &args.inlet)?;
    let to = match (args.place.to, args.place.to_position, args.place.to_end) {
        (Some(moment), ..) => SeekTo::Time(moment.at(context.env.now())),
        (None, Some(position), _) => SeekTo::Position(Position(position)),
        (None, None, true) => SeekTo::End,
        (None, None, false) => SeekTo::Beginning,
    };
    let mode = if args.mode.reprocess { SeekMode::Reprocess } else { SeekMode::FillGaps };
    let op = Op::Seek { inlet: args.inlet.clone(), to, mode };
    let receipts = engine.commit(engine.prepare(vec![op])?).await?;
    let Some(Receipt::Sought(sought)) = receipts.into_iter().next() else {
        return Err(Error::internal("the engine answered a seek with something else").into());
    };
    let name = &args.inlet;
    if context.out.is_json() {
        context.out.object(&Line { subscription: name, sought });
    } else {
        let again =
            if sought.replay > 0 { format!(", replay epoch {}", sought.replay) } else { String::new() };
        context.out.line(format_args!("{name}: moved; {} messages come{again}", sought.messages));
    }
    if sought.clipped {
        context.out.note("what lies before is not kept any more: it goes on with the oldest that is");
    }
    Ok(Exit::Ok)
}
