//! Copying forward: what lives on in a segment that is mostly dead goes to the log's end, so that the segment can go.

use super::care::Held;
use super::error::log_error;
use super::log_store::{LogStore, unreadable};
use crate::codec::decode;
use crate::{At, Fact, MessageRef, State, TopicId};
use bytes::Bytes;
use onward_core::{Error, Result, Timestamp};
use onward_log::{LogError, Position, RecordRef};

/// Copies forward what is still needed of a segment, in batches of about `bytes_max`; answers how many bodies.
///
/// # Errors
/// As the store refuses an append or can't read the segment; what was moved before stays moved.
pub(super) fn move_segment(store: &LogStore, held: &dyn Held, index: u32, bytes_max: usize) -> Result<u64> {
    let mut mover = Mover { held, bytes_max, batch: Vec::new(), bytes: 0, moved: 0, problem: None };
    let (from, to) = (Position::at(index, 0), Position::at(index + 1, 0));
    let scanned = store.log.scan(from, to, &mut |record| mover.record(record));
    if let Some(problem) = mover.problem.take() {
        return Err(problem);
    }
    scanned.map_err(log_error)?;
    mover.flush()?;
    Ok(mover.moved)
}

/// A body that may have to be copied forward.
struct Candidate {
    whose: Whose,
    position: u64,
    fact: Fact,
}

/// Whose body it is.
enum Whose {
    /// A queue's message, or a dead letter's latest edition.
    Inlet(At, bool),
    /// A topic's message.
    Topic(TopicId, u64),
}

impl Candidate {
    /// Whether it stands where its owner looks for it.
    fn is_needed(&self, state: &State) -> bool {
        let place = match self.whose {
            Whose::Inlet(at, edition) => state.body_at(at, edition),
            Whose::Topic(topic, seq) => state.topic_body_at(topic, seq),
        };
        place == Some(self.position)
    }
}

/// Goes over a segment and copies forward, in small batches, what is still needed.
struct Mover<'a> {
    held: &'a dyn Held,
    bytes_max: usize,
    batch: Vec<Candidate>,
    bytes: usize,
    moved: u64,
    problem: Option<Error>,
}

impl Mover<'_> {
    /// Takes one record. The log's walk is ended by an error of its own kind; ours is kept beside it.
    fn record(&mut self, record: RecordRef<'_>) -> std::result::Result<(), LogError> {
        let taken = self.take(record);
        taken.map_err(|problem| {
            let text = problem.to_string();
            self.problem = Some(problem);
            LogError::Invalid(text)
        })
    }

    fn take(&mut self, record: RecordRef<'_>) -> Result<()> {
        let Some(candidate) = candidate(record)? else { return Ok(()) };
        self.bytes += record.bytes.len();
        self.batch.push(candidate);
        if self.bytes >= self.bytes_max { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let mut moved = 0;
        self.held.write(&mut |state| {
            let facts: Vec<Fact> =
                batch.iter().filter(|c| c.is_needed(state)).map(|c| c.fact.clone()).collect();
            moved = facts.len() as u64;
            facts
        })?;
        self.moved += moved;
        Ok(())
    }
}

/// What a record's body would be copied forward as.
fn candidate(record: RecordRef<'_>) -> Result<Option<Candidate>> {
    let fact = decode(record.kind, &Bytes::copy_from_slice(record.bytes))
        .map_err(|malformed| unreadable(record.position, malformed.0))?;
    let position = record.position.0;
    let accepted = Timestamp::from_micros(record.time);
    let (whose, fact) = match fact {
        Fact::Enqueued { inlet, message, marks, .. } => {
            let at = At { inlet, message: MessageRef { seq: position, id_hash: marks.id } };
            let moved = Fact::Moved { at, edition: false, accepted_at: accepted, message };
            (Whose::Inlet(at, false), moved)
        }
        Fact::Edited { at, message } => {
            let moved = Fact::Moved { at, edition: true, accepted_at: accepted, message };
            (Whose::Inlet(at, true), moved)
        }
        Fact::Published { topic, message, marks, .. } => {
            let which = MessageRef { seq: position, id_hash: marks.id };
            let moved = Fact::TopicMoved { topic, which, accepted_at: accepted, message };
            (Whose::Topic(topic, position), moved)
        }
        Fact::Moved { at, edition, .. } => (Whose::Inlet(at, edition), fact),
        Fact::TopicMoved { topic, which, .. } => (Whose::Topic(topic, which.seq), fact),
        _ => return Ok(None),
    };
    Ok(Some(Candidate { whose, position, fact }))
}
