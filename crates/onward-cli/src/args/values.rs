//! How values of options are written: durations, points in time, `key=value`, rates.

use onward_core::Timestamp;
use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `500ms`, `10s`, `5m`, `2h`, `7d` and sums of them (`1h30m`).
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is not a duration; write it with a unit, as in 500ms, 10s, 5m, 2h or 1h30m");
    let mut rest = text;
    let mut millis: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?;
        rest = &rest[letters..];
        let part = count.checked_mul(unit.1).ok_or_else(wrong)?;
        millis = millis.checked_add(part).ok_or_else(wrong)?;
    }
    Ok(Duration::from_millis(millis))
}

/// A point in time: RFC 3339, or how long ago.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// Exactly then.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl Moment {
    /// The point in time, given what time it is.
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(span) => now.minus(span),
        }
    }
}

/// Reads a [`Moment`]: `2024-03-15T10:23:45Z`, or `2h` for two hours ago.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    if let Ok(span) = duration(text) {
        return Ok(Moment::Ago(span));
    }
    text.parse().map(Moment::At).map_err(|_| {
        format!(
            "`{text}` is not a time; write RFC 3339, as in 2024-03-15T10:23:45Z, or how long ago, as in 2h"
        )
    })
}

/// Reads RFC 3339.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|e: onward_core::Error| e.to_string())
}

/// Reads `key=value`; the value may be empty and may hold `=`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not key=value")),
    }
}

/// Reads `10/s`, `100/m`, `5000/h`: so many per second, minute or hour.
pub(crate) fn per(text: &str) -> Result<(u32, Duration), String> {
    let wrong = || format!("`{text}` is not a rate; write 10/s, 100/m or 5000/h");
    let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
    let count: u32 = count.parse().ok().filter(|&n| n > 0).ok_or_else(wrong)?;
    let span = UNITS[1..4].iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    Ok((count, Duration::from_millis(span.1)))
}

/// Reads a rate; answers the time between one and the next.
pub(crate) fn rate(text: &str) -> Result<Duration, String> {
    per(text).map(|(count, span)| span / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    #[test]
    fn durations_are_numbers_with_units_and_their_sums() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
    }

    #[test]
    #[proves("T53")]
    fn a_duration_without_a_unit_or_beyond_all_bounds_is_refused_with_the_mend() {
        for wrong in
            ["", "10", "s", "10 s", "-1s", "1w", "99999999999999999999s", "18446744073709551615d", "1.5s"]
        {
            let error = duration(wrong).unwrap_err();
            assert!(error.contains("with a unit"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_how_long_ago() {
        let now: Timestamp = "2024-03-15T10:00:00Z".parse().unwrap();
        assert_eq!(moment("2h").unwrap().at(now).to_string(), "2024-03-15T08:00:00Z");
        assert_eq!(moment("2024-01-01T00:00:00Z").unwrap().at(now).to_string(), "2024-01-01T00:00:00Z");
        assert!(moment("yesterday").is_err());
    }

    #[test]
    fn a_rate_gives_the_time_between_one_and_the_next() {
        assert_eq!(rate("10/s"), Ok(Duration::from_millis(100)));
        assert_eq!(rate("60/m"), Ok(Duration::from_secs(1)));
        assert!(rate("0/s").is_err() && rate("10").is_err() && rate("10/d").is_err());
    }
}
