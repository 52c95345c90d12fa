//! How the ticks of a schedule are written on the command line.

use crate::args::values;
use onward_core::{CatchUp, Overlap, ScheduleWhen, Timestamp};
use std::time::Duration;

/// A cron line in a zone, or an interval.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct When {
    /// A cron line of 5 or 6 fields, or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "LINE", conflicts_with = "every")]
    pub(super) cron: Option<String>,
    /// The time zone of the line, by its IANA name
    #[arg(long, value_name = "ZONE", default_value = "UTC", conflicts_with = "every")]
    zone: String,
    /// An interval of at least 1s instead of a line
    #[arg(long, value_name = "SPAN", value_parser = values::duration)]
    pub(super) every: Option<Duration>,
    /// The first tick of the interval; otherwise one span from now
    #[arg(long, value_name = "TIME", value_parser = values::timestamp, requires = "every")]
    from: Option<Timestamp>,
}

impl When {
    /// What was written, if anything was.
    pub(super) fn given(&self, now: Timestamp) -> Option<ScheduleWhen> {
        if let Some(line) = &self.cron {
            return Some(ScheduleWhen::Cron { line: line.as_str().into(), zone: self.zone.as_str().into() });
        }
        let every = self.every?;
        let every_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        Some(ScheduleWhen::Every { every_ms, first: self.from.unwrap_or(now.plus(every)) })
    }
}

/// Ticks as they would be written.
pub(super) fn text(when: &ScheduleWhen) -> String {
    match when {
        ScheduleWhen::Cron { line, zone } => format!("{line} ({zone})"),
        ScheduleWhen::Every { every_ms, .. } => {
            format!("every {}", crate::output::span(Duration::from_millis(*every_ms)))
        }
    }
}

/// Reads `skip`, `coalesce`, `backfill:10`.
pub(super) fn catch_up(text: &str) -> Result<CatchUp, String> {
    let wrong = || format!("`{text}` is not known; write skip, coalesce, or backfill:N as in backfill:10");
    match text.split_once(':') {
        None if text == "skip" => Ok(CatchUp::Skip),
        None if text == "coalesce" => Ok(CatchUp::Coalesce),
        Some(("backfill", most)) => most.parse().map(CatchUp::Backfill).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

/// Reads `allow`, `skip`.
pub(super) fn overlap(text: &str) -> Result<Overlap, String> {
    match text {
        "allow" => Ok(Overlap::Allow),
        "skip" => Ok(Overlap::Skip),
        _ => Err(format!("`{text}` is not known; write allow or skip")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_words_and_an_unknown_one_is_told_those_there_are() {
        assert_eq!(catch_up("skip"), Ok(CatchUp::Skip));
        assert_eq!(catch_up("coalesce"), Ok(CatchUp::Coalesce));
        assert_eq!(catch_up("backfill:12"), Ok(CatchUp::Backfill(12)));
        for wrong in ["backfill", "backfill:", "backfill:x", "all", ""] {
            assert!(catch_up(wrong).unwrap_err().contains("backfill:N"));
        }
        assert_eq!(overlap("skip"), Ok(Overlap::Skip));
        assert!(overlap("never").unwrap_err().contains("allow or skip"));
    }
}
