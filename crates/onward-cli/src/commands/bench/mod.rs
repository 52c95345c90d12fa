//! `onward bench`: a short measurement of durable work on this disk, with what it was measured on.

mod device;
mod load;

use crate::{
    args::values::duration,
    context::Context,
    exit::{Exit, Outcome},
    output::Table,
};
use device::Device;
use load::{Figures, Load};
use onward::FolderOptions;
use onward_core::{Durability, Engine, Error};
use serde::Serialize;
use std::{path::PathBuf, sync::Arc, time::Duration};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward bench
  onward bench --dir /var/lib --for 10s --producers 1
  onward bench --bytes 4096 --json

It works in a folder of its own, which it removes. Deduplication is on, as it is by default.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to make the folder that is measured; it is removed afterwards
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// How long each measurement takes
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "3s")]
    span: Duration,
    /// Producers and workers at once
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    producers: u32,
    /// Payload of each message
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = clap::value_parser!(u32).range(2..=262_144))]
    bytes: u32,
}

#[derive(Serialize)]
struct On<'a> {
    event: &'static str,
    #[serde(flatten)]
    device: &'a Device,
    durability: Durability,
    producers: u32,
    payload_bytes: u32,
}

#[derive(Serialize)]
struct Measured<'a> {
    event: &'static str,
    measured: &'a str,
    #[serde(flatten)]
    figures: Figures,
}

/// Measures, and says on what.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let wrong = |e: std::io::Error| {
        let error = Error::unavailable(format!("can't be used: {e}")).at(args.dir.display());
        error.mend("name a folder that can be written with --dir")
    };
    let folder = tempfile::Builder::new().prefix("onward-bench-").tempdir_in(&args.dir).map_err(wrong)?;
    let device = Device::of(folder.path(), &*context.env).map_err(wrong)?;
    let data = folder.path().join("data");
    let opened = onward::open_folder(&data, FolderOptions::default(), context.env.clone()).await?;
    let engine: Arc<dyn Engine> = opened.clone();
    begin(context, &args, &device, engine.capabilities().durability);
    let load = Load::new(engine.clone(), context.env.clone(), args.bytes as usize, args.span);
    let mut rows = Vec::new();
    let one = load.enqueue(1).await?;
    rows.push(("enqueue, 1 producer".to_owned(), one));
    rows.push((format!("enqueue, {} producers", args.producers), load.enqueue(args.producers).await?));
    rows.push((format!("lease and ack, {} workers", args.producers), load.cycle(args.producers).await?));
    engine.close(Duration::from_secs(5)).await?;
    show(context, &rows);
    Ok(Exit::Ok)
}

fn begin(context: &Context, args: &Args, device: &Device, durability: Durability) {
    let (producers, payload_bytes) = (args.producers, args.bytes);
    if context.out.is_json() {
        context.out.object(&On { event: "begin", device, durability, producers, payload_bytes });
        return;
    }
    let Device { source, filesystem, volatile, fsync_micros } = device;
    context.out.line(format_args!("device:     {source} ({filesystem})"));
    context.out.line(format_args!("fsync:      {fsync_micros} us for 4 KiB appended (median)"));
    context.out.line(format_args!("durability: {durability}"));
    context.out.line(format_args!("payload:    {payload_bytes} bytes"));
    if *volatile {
        context.out.note("this filesystem is in memory: a sync costs nothing here and keeps nothing");
    }
}

fn show(context: &Context, rows: &[(String, Figures)]) {
    if context.out.is_json() {
        for (measured, figures) in rows {
            context.out.object(&Measured { event: "measured", measured, figures: *figures });
        }
        return;
    }
    let mut table = Table::new(&["MEASURED", ">PER SECOND", ">P50 us", ">P99 us", ">COUNT"]);
    for (name, f) in rows {
        let numbers = [f.per_second, f.p50_micros, f.p99_micros, f.count];
        let mut cells = vec![name.clone()];
        cells.extend(numbers.iter().map(ToString::to_string));
        table.row(cells);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
}
