//! Spacing work in time by a key: at most once in a window, or once after it has been quiet.

use crate::{IntoMessage, Onward, handle::accepted};
use onward_core::{
    Accepted, Error, ErrorKind, Message, MessageId, Op, Record, RecordExpect, RecordKey, RecordQuery, Result,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const THROTTLE: &str = "onward.throttle/";
const DEBOUNCE: &str = "onward.debounce/";
/// How often a race for one key is run again.
const TRIES: u32 = 16;

/// What became of a message that is spaced by a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spaced {
    /// It was accepted.
    Accepted(Accepted),
    /// It was left out: another one of its key was accepted in this window.
    LeftOut,
}

/// The message that waits for quiet, and since when the first of its kind waits.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    id: MessageId,
    first: Timestamp,
}

impl Onward {
    /// Puts a message into a queue unless an unfinished one of the same key is there; the answer then has that one's id
    /// and `duplicate`. The key is free again once the message is done, dead, cancelled or expired.
    ///
    /// # Errors
    /// As [`Onward::enqueue`].
    pub async fn enqueue_unique(
        &self,
        queue: &str,
        key: &str,
        message: impl IntoMessage,
    ) -> Result<Accepted> {
        let mut message = message.into_message(&**self.env())?;
        message.unique_key = Some(key.try_into()?);
        self.enqueue(queue, message).await
    }

    /// Takes the first message of a key in each window, and leaves the others out.
    ///
    /// Requires records in the engine's commits: the window begins exactly when the message is accepted.
    ///
    /// # Errors
    /// As [`Onward::enqueue`].
    pub async fn throttle(
        &self,
        queue: &str,
        key: &str,
        window: Duration,
        message: impl IntoMessage,
    ) -> Result<Spaced> {
        let message = message.into_message(&**self.env())?;
        let record = record_key(THROTTLE, queue, key)?;
        let id = message.id.clone();
        let enqueue = self.enqueue_op(queue, message)?;
        let begin = Op::PutRecord {
            key: record.clone(),
            value: id.as_str().to_owned().into(),
            expect: RecordExpect::Absent,
            ttl: Some(window),
        };
        match self.commit(vec![begin, enqueue.clone()]).await {
            Ok(mut receipts) => accepted(receipts.pop()).map(Spaced::Accepted),
            Err(error) if error.kind() == ErrorKind::Conflict => match self.record(&record).await? {
                // The answer to this very call was lost; the engine knows the message.
                Some(own) if own.value == id.as_str() => {
                    accepted(self.commit(vec![enqueue]).await?.pop()).map(Spaced::Accepted)
                }
                Some(_) => Ok(Spaced::LeftOut),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Runs the latest message of a key once no other came for `quiet`, and no later than `longest` after the first.
    ///
    /// Each call takes the place of the one that still waits, with its data: the older one is cancelled. One that is
    /// being worked on already is left alone, and the new one runs after its own time.
    ///
    /// # Errors
    /// As [`Onward::enqueue`]; `Conflict` when too many come for one key at the same moment.
    pub async fn debounce(
        &self,
        queue: &str,
        key: &str,
        quiet: Duration,
        longest: Duration,
        message: impl IntoMessage,
    ) -> Result<Accepted> {
        let mut message = message.into_message(&**self.env())?;
        let record = record_key(DEBOUNCE, queue, key)?;
        let mut last = None;
        for _ in 0..TRIES {
            let found = self.record(&record).await?;
            let now = self.env().now();
            let waiting =
                found.as_ref().and_then(|found| serde_json::from_slice::<Waiting>(&found.value).ok());
            if waiting.as_ref().is_some_and(|waiting| waiting.id == message.id) {
                // The answer to an earlier try was lost.
                return self.enqueue(queue, message).await;
            }
            let first = waiting.as_ref().map_or(now, |waiting| waiting.first);
            let due = now.plus(quiet).min(first.plus(longest.max(quiet)));
            let replaced = match &waiting {
                Some(old) => self.hold_back(queue, &old.id, due.max(now.plus(quiet))).await?,
                None => false,
            };
            let first = if replaced { first } else { now };
            message.due = Some(if replaced { due } else { now.plus(quiet) });
            let old = waiting.filter(|_| replaced).map(|waiting| waiting.id);
            match self.replace(queue, &record, found.as_ref(), old, first, &message, quiet + longest).await {
                Err(error) if error.kind() == ErrorKind::Conflict => last = Some(error),
                answer => return answer,
            }
        }
        Err(last.unwrap_or_else(|| Error::internal("no try was made")))
    }

    /// Moves a waiting message away from its due time, so that it can be taken out of the queue; false when it runs.
    async fn hold_back(&self, queue: &str, id: &MessageId, due: Timestamp) -> Result<bool> {
        let (inlet, id) = (queue.parse()?, id.clone());
        match self.commit(vec![Op::Reschedule { inlet, id, due }]).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one commit, told apart by its parts")]
    async fn replace(
        &self,
        queue: &str,
        record: &RecordKey,
        found: Option<&Record>,
        old: Option<MessageId>,
        first: Timestamp,
        message: &Message,
        kept: Duration,
    ) -> Result<Accepted> {
        let inlet = queue.parse()?;
        let waiting = Waiting { id: message.id.clone(), first };
        let value = serde_json::to_vec(&waiting).map_err(|e| Error::internal(e.to_string()))?;
        let expect = found.map_or(RecordExpect::Absent, |found| RecordExpect::Revision(found.revision));
        let put = Op::PutRecord { key: record.clone(), value: value.into(), expect, ttl: Some(kept) };
        let cancel = old.map(|id| Op::Cancel { inlet, id });
        let enqueue = self.enqueue_op(queue, message.clone())?;
        let ops = [put].into_iter().chain(cancel).chain([enqueue]).collect();
        accepted(self.commit(ops).await?.pop())
    }

    async fn record(&self, key: &RecordKey) -> Result<Option<Record>> {
        let query = RecordQuery::Keys(vec![key.clone()]);
        Ok(self.engine().get_records(query).await?.items.pop())
    }
}

fn record_key(prefix: &str, queue: &str, key: &str) -> Result<RecordKey> {
    RecordKey::try_from(format!("{prefix}{queue}/{key}"))
}
