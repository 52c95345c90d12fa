//! What the command says: results to stdout, everything else to stderr, for people or as JSON lines.
//!
//! With `--json` both streams carry one object a line: results on stdout, `{"error":...}` and `{"note":...}` on stderr.
//! A reader that goes away (`| head`) is no error: what follows is not written, and the command ends as it would have.

mod progress;
mod style;
mod table;
mod text;

pub(crate) use progress::Progress;
pub(crate) use style::Style;
pub(crate) use table::Table;
pub(crate) use text::{ago, bytes, one_line, span, until};

use crate::exit::Failure;
use serde::Serialize;
use std::{
    fmt::Display,
    io::{IsTerminal, Write, stderr, stdout},
    sync::atomic::{AtomicBool, Ordering},
};

/// Where results and notes go, and in which form.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    closed: AtomicBool,
}

impl Output {
    /// JSON lines or text; `quiet` leaves out notes and progress.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet, closed: AtomicBool::new(false) }
    }

    /// Whether results are JSON lines.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether the reader of stdout has gone: a listing may stop.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Colours for stdout, where it is a terminal.
    pub(crate) fn style(&self) -> Style {
        Style::for_terminal(!self.json && stdout().is_terminal())
    }

    /// One line of result.
    pub(crate) fn line(&self, text: impl Display) {
        self.write(format!("{text}\n").as_bytes());
    }

    /// One JSON object of result.
    pub(crate) fn object(&self, value: &impl Serialize) {
        let line =
            serde_json::to_string(value).expect("plain structs of strings and numbers always serialise");
        self.line(line);
    }

    /// Bytes of result as they are.
    pub(crate) fn write(&self, bytes: &[u8]) {
        if self.closed() {
            return;
        }
        let mut out = stdout().lock();
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Something worth knowing that is not the result; left out by `--quiet`.
    pub(crate) fn note(&self, text: impl Display) {
        #[derive(Serialize)]
        struct Note {
            note: String,
        }
        if self.quiet {
            return;
        }
        match self.json {
            true => {
                self.to_stderr(&serde_json::to_string(&Note { note: text.to_string() }).unwrap_or_default())
            }
            false => self.to_stderr(&format!("onward: {text}")),
        }
    }

    /// An error: what, where and the mend.
    pub(crate) fn error(&self, failure: &Failure) {
        match self.json {
            true => self.to_stderr(&failure.to_json()),
            false => {
                let style = Style::for_terminal(stderr().is_terminal());
                self.to_stderr(&format!("{} {}", style.red("error:"), failure.error));
            }
        }
    }

    /// A bar for work of known or unknown length; shown only to a person who sees stderr.
    pub(crate) fn progress(&self, total: Option<u64>, what: &str) -> Progress {
        Progress::new(!self.json && !self.quiet && stderr().is_terminal(), total, what)
    }

    fn to_stderr(&self, line: &str) {
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(stderr().lock(), "{line}");
    }
}
