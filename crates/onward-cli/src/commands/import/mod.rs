//! `onward import`: takes lines that `onward export` wrote, each with its own result.

mod batch;
mod declared;

use crate::{
    context::Context,
    exit::{Exit, Failure, Outcome},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use batch::{Item, Place};
use bytes::Bytes;
use onward_core::{
    Engine, Error, ErrorKind, Filter, Inlet, MessageState, Name, RecordKey, StreamName, Tag, Timestamp,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{collections::HashMap, io::BufRead, path::PathBuf, sync::Arc};

pub(crate) const EXAMPLES: &str = "\
Examples:
  onward import everything.ndjson --data-dir ./copy
  onward export --data-dir ./old | onward import - --data-dir ./new
  onward import emails.ndjson --dead-as-work --json

Each line has its own result. A line that was imported before changes nothing: messages are known by their source and id \
as long as the queue or topic remembers them, events for ever, records are only written where there is none. Dead letters \
are left out, since they failed elsewhere, unless --dead-as-work makes work of those of queues. What was leased is work. A \
subscription begins with the first message that it had not finished: what it had finished behind that comes again.
Exit code 65 when a line was refused; the others are imported all the same.";

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
    topic: Option<Name>,
    subscription: Option<Inlet>,
    schedule: Option<Name>,
    config: Option<Box<RawValue>>,
    filter: Option<Filter>,
    plan: Option<Box<RawValue>>,
    #[serde(default)]
    paused: bool,
    in_queue: Option<Name>,
    in_topic: Option<Name>,
    in_subscription: Option<Inlet>,
    in_stream: Option<StreamName>,
    #[serde(default)]
    revision: u64,
    #[serde(default)]
    tags: Vec<Tag>,
    state: Option<MessageState>,
    message: Option<Box<RawValue>>,
    record: Option<RecordKey>,
    text: Option<String>,
    base64: Option<String>,
    expires: Option<Timestamp>,
}

impl Line {
    /// Where its message goes, if it is one's.
    fn place(&self) -> Option<Place> {
        match (&self.in_queue, &self.in_topic, &self.in_stream, &self.in_subscription) {
            (Some(queue), None, None, None) => Some(Place::Queue(queue.clone(), self.state)),
            (None, Some(topic), None, None) => Some(Place::Topic(topic.clone())),
            (None, None, Some(stream), None) => {
                Some(Place::Stream(stream.clone(), self.revision, self.tags.clone()))
            }
            (None, None, None, Some(_)) => Some(Place::Nowhere),
            _ => None,
        }
    }
}

/// What is said of a line that is none.
const NO_LINE: &str = "name one of `queue`, `topic`, `subscription`, `schedule` and `record` with what it is, or one of \
`in_queue`, `in_topic`, `in_stream` and `in_subscription` with a `message`";

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
    batch: Vec<Item>,
    /// The first revision that came of each stream.
    firsts: HashMap<StreamName, u64>,
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
    let (dead_as_work, firsts) = (args.dead_as_work, HashMap::new());
    let mut importer = Importer { context, engine, dead_as_work, batch, firsts, counts };
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
        let message = line.message.as_deref();
        match (line.place(), message) {
            (Some(place), Some(message)) => self.message(number, place, message).await,
            (Some(_), None) => {
                self.tell(number, "message", "", Err(Error::invalid("it has no `message`")));
                Ok(())
            }
            (None, _) => self.declared(number, line).await,
        }
    }

    /// A line that declares something, or a record.
    async fn declared(&mut self, number: u64, line: Line) -> Outcome<()> {
        self.flush().await?;
        let Line { config, paused, filter, plan, text, base64, expires, .. } = line;
        match (line.queue, line.topic, line.subscription, line.schedule, line.record) {
            (Some(name), None, None, None, None) => {
                let outcome = match read(config, "config") {
                    Ok(config) => self.queue(name.clone(), config, paused).await,
                    Err(error) => Err(error),
                };
                self.settle(number, "queue", name.full(), outcome)
            }
            (None, Some(name), None, None, None) => {
                let outcome = match read(config, "config") {
                    Ok(config) => self.topic(name.clone(), config).await,
                    Err(error) => Err(error),
                };
                self.settle(number, "topic", name.full(), outcome)
            }
            (None, None, Some(inlet), None, None) => {
                let outcome = match read(config, "config") {
                    Ok(config) => {
                        self.subscription(inlet.clone(), config, filter.unwrap_or_default(), paused).await
                    }
                    Err(error) => Err(error),
                };
                self.settle(number, "subscription", &inlet.to_string(), outcome)
            }
            (None, None, None, Some(name), None) => {
                let outcome = match read(plan, "plan") {
                    Ok(schedule) => self.schedule(name.clone(), schedule).await,
                    Err(error) => Err(error),
                };
                self.settle(number, "schedule", name.full(), outcome)
            }
            (None, None, None, None, Some(key)) => {
                let outcome = match value(text, base64) {
                    Ok(value) => self.record(&key, value, expires).await,
                    Err(error) => Err(error),
                };
                self.settle(number, "record", key.as_str(), outcome)
            }
            _ => {
                self.tell(number, "line", "", Err(Error::invalid("is no line of an export").mend(NO_LINE)));
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
}

/// Whether no further line would fare better.
fn ends(error: &Error) -> bool {
    use ErrorKind::{Closed, Corrupt, Internal, Poisoned, Unavailable};
    matches!(error.kind(), Closed | Corrupt | Internal | Poisoned | Unavailable)
}

fn read<T: DeserializeOwned>(json: Option<Box<RawValue>>, field: &str) -> Result<T, Error> {
    let Some(json) = json else { return Err(Error::invalid(format!("it has no `{field}`"))) };
    serde_json::from_str(json.get())
        .map_err(|error| Error::invalid(format!("`{field}` can't be read: {error}")))
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
