//! Where the tasks speak: results on stdout, everything else on stderr. A closed pipe is no error.

use std::io::Write;

/// Writes one line of the result to stdout.
pub(crate) fn say(line: impl AsRef<str>) {
    if cfg!(test) {
        return captured(line.as_ref());
    }
    let _ = writeln!(std::io::stdout().lock(), "{}", line.as_ref());
}

/// Writes one line of progress or advice to stderr.
pub(crate) fn note(line: impl AsRef<str>) {
    if cfg!(test) {
        return captured(line.as_ref());
    }
    let _ = writeln!(std::io::stderr().lock(), "{}", line.as_ref());
}

/// In tests: only `println!` goes through the test runner's capture.
fn captured(line: &str) {
    println!("{line}");
}

/// Speaks to people on stdout, or on stderr where stdout belongs to JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Human {
    pub(crate) json: bool,
}

impl Human {
    pub(crate) fn line(self, line: impl AsRef<str>) {
        if self.json { note(line) } else { say(line) }
    }
}

/// Cuts `text` to `chars_max` characters, marking the cut.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_long_line_is_cut_by_characters_and_marked() {
        assert_eq!(short("größer als", 20), "größer als");
        assert_eq!(short("größer als", 7), "größer…");
    }
}
