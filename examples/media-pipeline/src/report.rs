//! What the demo tells: one event a line, for people or as JSON.

use crate::upload::UploadState;
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// One thing that happened; the fields are what they are called.
#[allow(missing_docs, reason = "each variant's sentence covers its few plain fields")]
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The demo began.
    Began { folder: String, storage: String, durability: String, pictures: usize, formats: &'static str },
    /// The app announced a picture and got its id and target.
    Created { upload: String, file: String, bytes: usize },
    /// The bytes are in object storage, and its event queued the work.
    Stored { upload: String, file: String },
    /// The bytes are in object storage, but the event that should say so was lost on purpose.
    EventLost { upload: String, file: String },
    /// The reconciler found a durable object whose event was lost.
    Reconciled { upload: String, file: String },
    /// A worker process began.
    WorkerBegan { worker: String, pid: u32 },
    /// A worker process began a picture.
    Working { worker: String, upload: String, attempt: u32 },
    /// A worker process was killed with SIGKILL in the middle of a picture.
    WorkerKilled { worker: String, pid: u32, upload: String },
    /// The picture of the killed worker was done by another.
    TakenOver { upload: String, by: String },
    /// An upload is final.
    Final {
        upload: String,
        file: String,
        state: UploadState,
        reason: Option<String>,
        thumbnail: Option<String>,
    },
    /// The end.
    Summary(Summary),
}

/// What it came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Pictures announced.
    pub uploads: usize,
    /// Thumbnails made.
    pub ready: usize,
    /// Pictures that can't be processed; the app sees why.
    pub failed: usize,
    /// Uploads that never came.
    pub expired: usize,
    /// Dead letters in the queue: one for each damaged picture.
    pub dead_letters: usize,
    /// Events that were lost and made up for.
    pub reconciled: usize,
    /// Workers killed.
    pub workers_killed: usize,
    /// Accepted equals done, dead, waiting and the rest.
    pub books_balance: bool,
    /// Where thumbnails, originals and the queue are, when they were kept.
    pub kept: Option<String>,
}

/// Prints events as they come.
#[derive(Debug)]
pub struct Reporter {
    json: bool,
    colour: bool,
}

impl Reporter {
    /// For people, or one JSON object a line.
    pub fn new(json: bool) -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { json, colour: colour && !json }
    }

    /// Prints one event. A reader that has gone away (`| head`) is no failure of the demo.
    pub fn tell(&self, event: &Event) {
        let line = match self.json {
            true => serde_json::to_string(event)
                .unwrap_or_else(|e| format!("{{\"event\":\"unprintable\",\"error\":\"{e}\"}}")),
            false => self.words(event),
        };
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }

    fn words(&self, event: &Event) -> String {
        match event {
            Event::Began { folder, storage, durability, pictures, formats } => format!(
                "Media pipeline: {pictures} pictures ({formats} are taken)\n  queue and records  {folder} (durability: {durability})\n  object storage     {storage}\n"
            ),
            Event::Created { upload, file, bytes } => {
                self.line("", "created", file, &format!("{upload}, {bytes} bytes to come"))
            }
            Event::Stored { upload: _, file } => self.line("", "stored", file, "its event queued the work"),
            Event::EventLost { upload: _, file } => {
                self.line("33", "stored", file, "its event is lost, on purpose")
            }
            Event::Reconciled { upload: _, file } => {
                self.line("32", "reconciled", file, "durable though its event was lost: queued now")
            }
            Event::WorkerBegan { worker, pid } => self.line("", "worker", worker, &format!("process {pid}")),
            Event::Working { worker, upload, attempt } => {
                self.line("", "working", worker, &format!("{upload}, attempt {attempt}"))
            }
            Event::WorkerKilled { worker, pid, upload } => self.line(
                "33",
                "killed",
                worker,
                &format!("process {pid} with SIGKILL, in the middle of {upload}"),
            ),
            Event::TakenOver { upload, by } => {
                self.line("32", "taken over", by, &format!("{upload}: nothing was lost"))
            }
            Event::Final { file, state, reason, thumbnail, .. } => {
                let (colour, more) = match (reason, thumbnail) {
                    (Some(reason), _) => ("31", reason.as_str()),
                    (None, thumbnail) => ("32", thumbnail.as_deref().unwrap_or("")),
                };
                self.line(colour, &state.to_string(), file, more)
            }
            Event::Summary(summary) => self.summary(summary),
        }
    }

    fn line(&self, colour: &str, what: &str, who: &str, more: &str) -> String {
        // Names of files and texts of decoders may hold anything; a terminal must not act on it.
        let (who, more) = (printable(who), printable(more));
        match self.colour && !colour.is_empty() {
            true => format!("  \u{1b}[{colour}m{what:<11}\u{1b}[0m {who:<18} {more}"),
            false => format!("  {what:<11} {who:<18} {more}"),
        }
    }

    fn summary(&self, s: &Summary) -> String {
        let kept = s.kept.as_ref().map_or_else(
            || "Everything was in a temporary folder, which is gone. Keep it with --keep DIR.".to_owned(),
            |dir| format!("Kept in {dir}: look with `onward --data-dir {dir} dead list media/thumbnails`."),
        );
        format!(
            "\n{} uploads: {} ready, {} failed (dead letters: {}), {} expired. {} lost event reconciled, {} worker killed and replaced.\nThe books {}.\n{kept}",
            s.uploads,
            s.ready,
            s.failed,
            s.dead_letters,
            s.expired,
            s.reconciled,
            s.workers_killed,
            if s.books_balance { "balance" } else { "DO NOT BALANCE" },
        )
    }
}

fn printable(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
