//! What the library tells of itself: to stderr, in the form of everything else there.

use crate::args::Global;
use std::io::{IsTerminal, stderr};
use tracing::Level;

/// Warnings and errors; more with `--verbose`, only errors with `--quiet`.
pub(crate) fn write_to_stderr(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => Level::ERROR,
        (false, 0) => Level::WARN,
        (false, 1) => Level::INFO,
        (false, _) => Level::DEBUG,
    };
    let coloured =
        stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let journal = tracing_subscriber::fmt().with_max_level(level).with_writer(stderr);
    match global.json {
        true => journal.json().init(),
        false => journal.with_ansi(coloured).with_target(false).init(),
    }
}
