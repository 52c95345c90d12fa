//! Times, sizes and foreign text in a form for people.

use onward_core::Timestamp;
use std::time::Duration;

/// A span in its two largest units: `4ms`, `12s`, `3m 20s`, `2d 4h`.
pub(crate) fn span(span: Duration) -> String {
    let secs = span.as_secs();
    match secs {
        0 => format!("{}ms", span.as_millis()),
        1..60 => format!("{secs}s"),
        60..3_600 => two(secs / 60, "m", secs % 60, "s"),
        3_600..86_400 => two(secs / 3_600, "h", secs % 3_600 / 60, "m"),
        _ => two(secs / 86_400, "d", secs % 86_400 / 3_600, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit} {small}{small_unit}"),
    }
}

/// How long ago, and when exactly: `3m 20s ago (2024-03-15T10:23:45Z)`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago ({at})", span(now.since(at)))
}

/// How long until then, and when exactly; a past time is due now.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> String {
    match at > now {
        true => format!("in {} ({at})", span(at.since(now))),
        false => format!("now ({at})"),
    }
}

/// Bytes in binary units: `512 B`, `1.5 KiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Foreign text in one line of at most `width` characters, with nothing in it that a terminal would obey.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(width).map(safe).collect();
    if text.chars().nth(width).is_some() {
        line.pop();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_their_two_largest_units() {
        for (millis, text) in
            [(4, "4ms"), (12_000, "12s"), (200_000, "3m 20s"), (7_200_000, "2h"), (187_200_000, "2d 4h")]
        {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn foreign_text_can_not_drive_the_terminal() {
        assert_eq!(one_line("a\x1b[2Jb\nc", 80), "a [2Jb c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    #[test]
    fn sizes_are_told_in_binary_units() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(3 << 40), "3.0 TiB");
    }
}
