//! What the library tells of itself: to stderr, in the form of everything else there.

use crate::args::Global;
use std::io::{IsTerminal, stderr};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt::layer,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// What the command tells of itself, with the next step: the fate of each message, new dead letters.
const TOLD_ANYWAY: [&str; 2] = ["onward::work::alarm", "onward::work::attempt"];

/// Warnings and errors; more with `--verbose`, only errors with `--quiet`.
pub(crate) fn write_to_stderr(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let told = if global.verbose == 0 { LevelFilter::OFF } else { level };
    let shown = Targets::new().with_default(level).with_targets(TOLD_ANYWAY.map(|target| (target, told)));
    let coloured =
        stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let form = match global.json {
        true => layer().with_writer(stderr).json().boxed(),
        false => layer().with_writer(stderr).with_ansi(coloured).with_target(false).without_time().boxed(),
    };
    tracing_subscriber::registry().with(form.with_filter(shown)).init();
}
