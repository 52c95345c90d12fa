//! Messages and events: sent many at a time, one sync for all of them, each with its own result.

use super::{Fate, Importer};
use crate::exit::Outcome;
use onward_core::{Error, Event, Expected, Message, MessageState, Name, Op, Receipt, StreamName, Tag};
use serde_json::value::RawValue;

/// Messages sent together.
const BATCH_MAX: usize = 500;

/// An operation that waits to be sent with others.
pub(super) struct Item {
    line: u64,
    what: &'static str,
    id: String,
    op: Op,
}

/// Where a message goes.
pub(super) enum Place {
    Queue(Name, Option<MessageState>),
    Topic(Name),
    Stream(StreamName, u64, Vec<Tag>),
    /// A dead letter of a subscription: nobody can put one there.
    Nowhere,
}

impl Importer<'_> {
    pub(super) async fn message(&mut self, line: u64, into: Place, message: &RawValue) -> Outcome<()> {
        let message = match Message::from_json(message.get().as_bytes()) {
            Ok(message) => message,
            Err(error) => {
                self.tell(line, "message", "", Err(error));
                return Ok(());
            }
        };
        let id = message.id.to_string();
        let (what, op) = match into {
            Place::Queue(_, Some(MessageState::Dead)) if !self.dead_as_work => {
                self.tell(line, "message", &id, Ok(Fate::LeftOut));
                return Ok(());
            }
            Place::Nowhere => {
                self.tell(line, "message", &id, Ok(Fate::LeftOut));
                return Ok(());
            }
            Place::Queue(queue, _) => ("message", Op::Enqueue { queue, message: Box::new(message) }),
            Place::Topic(topic) => ("message", Op::Publish { topic, message: Box::new(message) }),
            Place::Stream(stream, revision, tags) => match self.expected(&stream, revision) {
                Ok(expected) => {
                    let events = vec![Event { message, tags }];
                    ("event", Op::Append { stream, events, expected, condition: None })
                }
                Err(error) => {
                    self.tell(line, "event", &id, Err(error));
                    return Ok(());
                }
            },
        };
        self.batch.push(Item { line, what, id, op });
        if self.batch.len() >= BATCH_MAX { self.flush().await } else { Ok(()) }
    }

    /// What a stream must be for an event to be its next: a stream whose older events were truncated begins anew.
    fn expected(&mut self, stream: &StreamName, revision: u64) -> Result<Expected, Error> {
        let first = *self.firsts.entry(stream.clone()).or_insert(revision);
        match revision.checked_sub(first) {
            Some(0) => Ok(Expected::NoStream),
            Some(number) => Ok(Expected::Revision(number - 1)),
            None => Err(Error::invalid(format!("revision {revision} comes behind {first}"))
                .at(format!("stream `{stream}`"))
                .mend("keep a stream's lines in the order in which they were exported")),
        }
    }

    /// Sends what waits.
    pub(super) async fn flush(&mut self) -> Outcome<()> {
        let (mut sent, mut commits) = (Vec::new(), Vec::new());
        for Item { line, what, id, op } in std::mem::take(&mut self.batch) {
            match self.engine.prepare(vec![op]) {
                Ok(prepared) => {
                    sent.push((line, what, id));
                    commits.push(prepared);
                }
                Err(error) => self.tell(line, what, &id, Err(error)),
            }
        }
        if commits.is_empty() {
            return Ok(());
        }
        let answers = self.engine.submit(commits).await?;
        for ((line, what, id), answer) in sent.into_iter().zip(answers) {
            self.settle(line, what, &id, answer.map(|receipts| fate(&receipts)))?;
        }
        Ok(())
    }
}

fn fate(receipts: &[Receipt]) -> Fate {
    match receipts.first() {
        Some(Receipt::Accepted(accepted)) if accepted.duplicate => Fate::Unchanged,
        Some(Receipt::Appended(appended)) if appended.duplicate => Fate::Unchanged,
        _ => Fate::Accepted,
    }
}
