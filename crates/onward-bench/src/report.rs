//! Figures for people and for scripts, with the goal beside them.

use crate::floor::Floor;
use crate::plan::{Bench, Contestant, Goal, Measured};
use anyhow::Result;
use serde_json::json;

/// Prints where and on what the figures were measured.
pub(crate) fn floor(floor: &Floor, json: bool) -> Result<()> {
    if json {
        println!("{}", json!({ "floor": floor }));
        return Ok(());
    }
    println!("Folder {} on {} ({})", floor.folder, floor.filesystem, floor.device);
    println!(
        "One sync of 4 KiB, prewritten, O_DIRECT: p50 {:.0} us, p99 {:.0} us",
        floor.sync_p50_us, floor.sync_p99_us
    );
    println!("Durability: fsync before the answer. Deduplication: on, by source and id, window 10 minutes.");
    println!(
        "{} cores; the bare log writes groups as they come (gather 0), prewritten O_DIRECT segments.\n",
        floor.cores
    );
    Ok(())
}

/// Prints one benchmark; says whether its goal holds.
pub(crate) fn bench(bench: &Bench, rows: &[(Contestant, Vec<Measured>)], json: bool) -> Result<bool> {
    let ours = median_row(rows, Contestant::Onward);
    let raw = median_row(rows, Contestant::Raw);
    let (figure, holds, goal) = judge(bench.goal, &ours, &raw);
    if json {
        let rows: Vec<_> =
            rows.iter().map(|(who, m)| json!({ "contestant": who.to_string(), "rounds": m })).collect();
        println!(
            "{}",
            json!({ "bench": bench.name, "what": bench.what, "figure": figure, "goal": goal, "holds": holds, "rows": rows })
        );
        return Ok(holds);
    }
    println!("{:<15} {}", bench.name, bench.what);
    for (who, measured) in rows {
        let m = median(measured);
        if m.per_second > 0.0 {
            println!(
                "  {:<8} {:>10.0}/s   p50 {:>6.0} us   p99 {:>7.0} us   p99.9 {:>7.0} us   cpu {:>5.2} us each",
                who.to_string(),
                m.per_second,
                m.p50_us,
                m.p99_us,
                m.p999_us,
                m.cpu_us
            );
        }
    }
    println!("  {figure:.2} (goal: {goal}) {}\n", if holds { "ok" } else { "MISSED" });
    Ok(holds)
}

fn judge(goal: Goal, ours: &Measured, raw: &Measured) -> (f64, bool, String) {
    match goal {
        Goal::ShareOfRaw(least) => {
            let share = ours.per_second / raw.per_second.max(1.0);
            (share, share >= least, format!("at least {least} of the bare log"))
        }
        Goal::AtMost(most, unit) => (ours.value, ours.value <= most, format!("at most {most} {unit}")),
        Goal::AtLeast(least, unit) => (ours.value, ours.value >= least, format!("at least {least} {unit}")),
        Goal::Syncs(most) => {
            let syncs = ours.p50_us / raw.p50_us.max(1.0);
            (syncs, syncs <= most, format!("p50 at most {most} syncs at the same pace"))
        }
    }
}

fn median_row(rows: &[(Contestant, Vec<Measured>)], who: Contestant) -> Measured {
    rows.iter().find(|(c, _)| *c == who).map(|(_, measured)| median(measured)).unwrap_or_default()
}

/// The median of each figure over the rounds.
fn median(rounds: &[Measured]) -> Measured {
    let of = |pick: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Measured {
        per_second: of(|m| m.per_second),
        p50_us: of(|m| m.p50_us),
        p99_us: of(|m| m.p99_us),
        p999_us: of(|m| m.p999_us),
        cpu_us: of(|m| m.cpu_us),
        value: of(|m| m.value),
    }
}
