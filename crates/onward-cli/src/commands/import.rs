//! `onward import`: takes lines that `onward export` wrote, each with its own result.

use crate::{
    context::Context,
    exit::{Exit, Failure, Outcome},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use onward_core::{
    Engine, Error, ErrorKind, InletConfig, Message, MessageState, Name, Op, Receipt, RecordExpect, RecordKey,
    RecordQuery, Timestamp, TopologyChange,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{io::BufRead, path::PathBuf, sync::Arc};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward import everything.ndjson --data-dir ./copy
  onward export --data-dir ./old | onward import - --data-dir ./new
  onward import emails.ndjson --dead-as-work --json

Each line has its own result. A line that was imported before changes nothing: messages are known by their source and id \
as long as the queue remembers them, records are only written where there is none. Dead letters are left out, since they \
failed elsewhere, unless --dead-as-work makes work of them. What was leased is work.
Exit code 65 when a line was refused; the others are imported all the same.";

/// Messages sent together: one sync for all of them.
const BATCH_MAX: usize = 500;
/// Longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Make work of dead letters
    #[arg(long)]
    dead_as_work: bool,
}

/// A line as it may come; which fields are there says what it is.
#[derive(Deserialize)]
struct Line {
    queue: Option<Name>,
    config: Option<Box<InletConfig>>,
    #[serde(default)]
    paused: bool,
    in_queue: Option<Name>,
    state: Option<MessageState>,
    message: Option<Box<RawValue>>,
    record: Option<RecordKey>,
    text: Option<String>,
    base64: Option<String>,
    expires: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Fate {
    Accepted,
    Unchanged,
    LeftOut,
    Refused,
}

#[derive(Serialize)]
struct Told<'a> {
    line: u64,
    what: &'a str,
    id: &'a str,
    outcome: Fate,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

/// Imports and counts.
struct Importer<'a> {
    context: &'a Context,
    engine: Arc<dyn Engine>,
    dead_as_work: bool,
    batch: Vec<(u64, Name, Message)>,
    counts: [u64; 4],
}

/// Imports every line.
pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let place = args.file.display().to_string();
    let failed = |error: std::io::Error| -> Failure {
        Error::not_found(format!("can't be read: {error}"))
            .at(&place)
            .mend("name a file, or `-` for stdin")
            .into()
    };
    let mut input: Box<dyn BufRead> = match place.as_str() {
        "-" => Box::new(std::io::BufReader::new(std::io::stdin())),
        _ => Box::new(std::io::BufReader::new(std::fs::File::open(&args.file).map_err(failed)?)),
    };
    let engine = context.open().await?;
    let (batch, counts) = (Vec::new(), [0; 4]);
    let mut importer = Importer { context, engine, dead_as_work: args.dead_as_work, batch, counts };
    let (mut text, mut number) = (Vec::new(), 0);
    loop {
        text.clear();
        // One byte more than allowed shows that a line is longer.
        let mut limited = std::io::Read::take(&mut input, LINE_BYTES_MAX as u64 + 1);
        if limited.read_until(b'\n', &mut text).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        if text.len() > LINE_BYTES_MAX {
            return Err(Error::invalid(format!("line {number} is longer than {LINE_BYTES_MAX} bytes"))
                .at(&place)
                .into());
        }
        importer.line(number, &text).await?;
    }
    importer.flush().await?;
    let [accepted, unchanged, left_out, refused] = importer.counts;
    context.out.note(format_args!(
        "{accepted} imported, {unchanged} were there, {left_out} dead letters left out, {refused} refused"
    ));
    Ok(if refused > 0 { Exit::Data } else { Exit::Ok })
}

impl Importer<'_> {
    fn tell(&mut self, line: u64, what: &str, id: &str, outcome: Result<Fate, Error>) {
        let (fate, error) = match &outcome {
            Ok(fate) => (*fate, None),
            Err(error) => (Fate::Refused, Some(error)),
        };
        self.counts[fate as usize] += 1;
        match (self.context.out.is_json(), error) {
            (true, error) => self.context.out.object(&Told { line, what, id, outcome: fate, error }),
            (false, Some(error)) => {
                self.context.out.error(&Failure::from(
                    Error::invalid(format!("{what} {id}: {error}")).at(format!("line {line}")),
                ));
            }
            (false, None) => {}
        }
    }

    async fn line(&mut self, number: u64, text: &[u8]) -> Outcome<()> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let line: Line = match serde_json::from_slice(text) {
            Ok(line) => line,
            Err(error) => {
                let error = Error::invalid(format!("is no line of an export: {error}"));
                self.tell(number, "line", "", Err(error));
                return Ok(());
            }
        };
        match line {
            Line { queue: Some(queue), config: Some(config), paused, .. } => {
                self.flush().await?;
                let (outcome, name) = (self.queue(&queue, config, paused).await, queue.to_string());
                self.settle(number, "queue", &name, outcome)
            }
            Line { in_queue: Some(queue), message: Some(message), state, .. } => {
                self.message(number, queue, state, &message).await
            }
            Line { record: Some(record), text, base64, expires, .. } => {
                let outcome = match value(text, base64) {
                    Ok(value) => self.record(&record, value, expires).await,
                    Err(error) => Err(error),
                };
                self.settle(number, "record", record.as_str(), outcome)
            }
            _ => {
                let mend = "it has neither `queue` and `config`, nor `in_queue` and `message`, nor `record`";
                self.tell(number, "line", "", Err(Error::invalid("is no line of an export").mend(mend)));
                Ok(())
            }
        }
    }

    /// What no line would escape ends the import; what is wrong with one line is told.
    fn settle(&mut self, number: u64, what: &str, id: &str, outcome: Result<Fate, Error>) -> Outcome<()> {
        match outcome {
            Err(error) if ends(&error) => Err(error.at(format!("line {number}")).into()),
            outcome => {
                self.tell(number, what, id, outcome);
                Ok(())
            }
        }
    }

    async fn queue(&self, queue: &Name, config: Box<InletConfig>, paused: bool) -> Result<Fate, Error> {
        let inlet = onward_core::Inlet::Queue(queue.clone());
        if self.engine.topology().await?.inlets.iter().any(|(known, _)| *known == inlet) {
            return Ok(Fate::Unchanged);
        }
        let change = TopologyChange::Queue { name: queue.clone(), config, update: false };
        self.engine.declare(change).await?;
        if paused {
            let pause = self.engine.prepare(vec![Op::Pause { inlet }])?;
            self.engine.commit(pause).await?;
        }
        Ok(Fate::Accepted)
    }

    async fn message(
        &mut self,
        number: u64,
        queue: Name,
        state: Option<MessageState>,
        message: &RawValue,
    ) -> Outcome<()> {
        match Message::from_json(message.get().as_bytes()) {
            Err(error) => self.tell(number, "message", "", Err(error)),
            Ok(message) if state == Some(MessageState::Dead) && !self.dead_as_work => {
                self.tell(number, "message", message.id.as_str(), Ok(Fate::LeftOut));
            }
            Ok(message) => self.batch.push((number, queue, message)),
        }
        if self.batch.len() >= BATCH_MAX { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Outcome<()> {
        let (mut sent, mut commits) = (Vec::new(), Vec::new());
        for (number, queue, message) in std::mem::take(&mut self.batch) {
            let id = message.id.to_string();
            match self.engine.prepare(vec![Op::Enqueue { queue, message: Box::new(message) }]) {
                Ok(prepared) => {
                    sent.push((number, id));
                    commits.push(prepared);
                }
                Err(error) => self.tell(number, "message", &id, Err(error)),
            }
        }
        if commits.is_empty() {
            return Ok(());
        }
        let answers = self.engine.submit(commits).await?;
        for ((number, id), answer) in sent.into_iter().zip(answers) {
            let fate = |receipts: Vec<Receipt>| match receipts.first() {
                Some(Receipt::Accepted(accepted)) if accepted.duplicate => Fate::Unchanged,
                _ => Fate::Accepted,
            };
            self.settle(number, "message", &id, answer.map(fate))?;
        }
        Ok(())
    }

    async fn record(&self, key: &RecordKey, value: Bytes, expires: Option<Timestamp>) -> Result<Fate, Error> {
        let now = self.context.env.now();
        if expires.is_some_and(|expires| expires <= now) {
            return Ok(Fate::Unchanged);
        }
        let ttl = expires.map(|expires| expires.since(now));
        let put = Op::PutRecord { key: key.clone(), value: value.clone(), expect: RecordExpect::Absent, ttl };
        match self.engine.commit(self.engine.prepare(vec![put])?).await {
            Ok(_) => Ok(Fate::Accepted),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) => {
                let found = self.engine.get_records(RecordQuery::Keys(vec![key.clone()])).await?;
                let same = found.items.first().is_some_and(|record| record.value == value);
                if same { Ok(Fate::Unchanged) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether no further line would fare better.
fn ends(error: &Error) -> bool {
    use ErrorKind::{Closed, Corrupt, Internal, Poisoned, Unavailable};
    matches!(error.kind(), Closed | Corrupt | Internal | Poisoned | Unavailable)
}

fn value(text: Option<String>, base64: Option<String>) -> Result<Bytes, Error> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes().into()),
        (None, Some(base64)) => STANDARD
            .decode(base64)
            .map(Bytes::from)
            .map_err(|error| Error::invalid(format!("`base64` can't be read: {error}"))),
        _ => Err(Error::invalid("a record has either `text` or `base64`")),
    }
}
