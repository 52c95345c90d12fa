//! `onward balance`: whether everything that was accepted is accounted for.

use crate::{
    context::{Context, require_inlet},
    exit::{Exit, Outcome},
    output::Table,
};
use onward_core::{Books, Inlet, Stats};
use serde::Serialize;

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward balance
  onward balance emails --json

accepted = done + dead + waiting + leased + delayed + expired + cancelled + purged + shed, for each queue.
Exit code 1 when that does not hold.";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// These queues; all when none is named
    #[arg(value_name = "QUEUE")]
    inlets: Vec<Inlet>,
}

#[derive(Serialize)]
struct Line<'a> {
    queue: &'a Inlet,
    #[serde(flatten)]
    books: Books,
    accounted: u64,
    balanced: bool,
    approximate: bool,
}

/// Shows the books. Exit code 1 when those of one queue don't balance.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let engine = context.open_existing().await?;
    let topology = engine.topology().await?;
    args.inlets.iter().try_for_each(|inlet| require_inlet(&topology, inlet))?;
    let stats = engine.stats(args.inlets).await?;
    match context.out.is_json() {
        true => stats.iter().map(line).for_each(|line| context.out.object(&line)),
        false => context.out.write(table(&stats).render(context.out.style()).as_bytes()),
    }
    let wrong: Vec<&Stats> = stats.iter().filter(|s| !holds(s)).collect();
    for one in &wrong {
        let (accepted, accounted) = (one.books.accepted, one.books.accounted());
        context.out.note(format_args!("{}: {accepted} accepted, but {accounted} accounted for", one.inlet));
    }
    Ok(if wrong.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Estimates can't balance and are not held to it.
fn holds(stats: &Stats) -> bool {
    stats.approximate || stats.books.balance()
}

fn line(stats: &Stats) -> Line<'_> {
    Line {
        queue: &stats.inlet,
        books: stats.books,
        accounted: stats.books.accounted(),
        balanced: stats.books.balance(),
        approximate: stats.approximate,
    }
}

fn table(stats: &[Stats]) -> Table {
    let mut table = Table::new(&[
        "QUEUE",
        ">ACCEPTED",
        ">DONE",
        ">DEAD",
        ">WAITING",
        ">LEASED",
        ">DELAYED",
        ">EXPIRED",
        ">CANCELLED",
        ">PURGED",
        ">SHED",
        "BOOKS",
    ]);
    for one in stats {
        let b = &one.books;
        let verdict = match (one.approximate, b.balance()) {
            (true, _) => "estimated".to_owned(),
            (false, true) => "balance".to_owned(),
            (false, false) => format!("OFF BY {}", i128::from(b.accepted) - i128::from(b.accounted())),
        };
        let numbers = [
            b.accepted,
            b.done,
            b.dead,
            b.waiting,
            b.leased,
            b.delayed,
            b.expired,
            b.cancelled,
            b.purged,
            b.shed,
        ];
        let mut cells = vec![one.inlet.to_string()];
        cells.extend(numbers.iter().map(ToString::to_string));
        cells.push(verdict);
        table.row(cells);
    }
    table
}
