//! Request-reply: a message with a status and a result that its caller, or anybody with its id, looks up later.
//!
//! A job is a message in the queue of its type, and a record that finds the queue again by the job's id. Both are
//! written in one commit, so a job that was accepted is always found, and a repeat of its id never makes a second one
//! for as long as the record lives. Handlers need nothing special: what they return is the job's result.

mod record;
mod status;
mod wait;

pub use status::{Job, JobState};

use crate::{Onward, handle::IntoMessage};
use onward_core::{
    AtomicScope, CancelOutcome, Capability, Error, ErrorKind, Inlet, InletConfig, Message, MessageId,
    MessageQuery, Name, Op, RecordExpect, Result, TopologyChange,
};
use record::Entry;
use std::time::Duration;

/// How long a job and its result are kept where nothing else is said.
pub const KEEP_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// The longest that one call waits for a job.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// Jobs over one handle: submit, look up, wait, cancel.
#[derive(Debug, Clone)]
pub struct Jobs<'a> {
    onward: &'a Onward,
    keep: Duration,
}

/// A job was accepted: durable, not done. It has no result on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's stable id: the message's.
    pub id: MessageId,
    /// A job of this id and content was accepted before; nothing was added.
    pub duplicate: bool,
    /// Its queue.
    pub queue: Name,
}

impl Onward {
    /// Jobs that are kept for [`KEEP_DEFAULT`] after they end.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { onward: self, keep: KEEP_DEFAULT }
    }
}

impl Jobs<'_> {
    /// Keeps jobs so long: from their submission to be found by id, from their end for the result.
    ///
    /// A queue that exists keeps results as it was declared; this is for queues made by the first job.
    pub fn keep(self, keep: Duration) -> Self {
        Self { keep, ..self }
    }

    /// Submits a job to a queue. The answer says that it is durable, never that it is done.
    ///
    /// Guarantees: a repeat of the same id with the same type, version and data answers `duplicate`, as long as the job
    /// is kept, whether it is pending, running or done, and also when several do it at once.
    ///
    /// # Errors
    /// `Conflict` for a known id with other content or in another queue; `Invalid` for a queue that keeps no results;
    /// `Unsupported` where the engine can't keep results or can't write message and record at once; those of
    /// [`Onward::enqueue`].
    ///
    /// # Cancel safety
    /// The job is fully there or not at all; submit it again with the same id.
    pub async fn submit(&self, queue: &str, message: impl IntoMessage) -> Result<Submitted> {
        let queue: Name = queue.parse()?;
        let message = message.into_message(&**self.onward.env())?;
        self.require()?;
        self.queue_keeps(&queue).await?;
        let entry = Entry::of(&queue, &message);
        let id = message.id.clone();
        let ops = vec![
            entry.put(&id, RecordExpect::Absent, self.keep)?,
            Op::Enqueue { queue: queue.clone(), message: Box::new(message) },
        ];
        match self.onward.commit(ops).await {
            Ok(_) => Ok(Submitted { id, duplicate: false, queue }),
            Err(error) if error.kind() == ErrorKind::Conflict => self.known(id, &entry, error).await,
            Err(error) => Err(error),
        }
    }

    /// The job of an id; `None` when there never was one, or it is kept no longer.
    ///
    /// # Errors
    /// Those of [`Onward::find`].
    pub async fn find(&self, id: &MessageId) -> Result<Option<Job>> {
        let Some(entry) = Entry::read(self.onward, id).await? else { return Ok(None) };
        let query = MessageQuery::id(Inlet::Queue(entry.queue.clone()), id.clone());
        let view = self.onward.engine().find(query).await?.items.pop();
        Ok(view.map(Job::from))
    }

    /// The queue that a job is in, or was; `None` when it is not known.
    ///
    /// # Errors
    /// As [`Jobs::find`].
    pub async fn queue_of(&self, id: &MessageId) -> Result<Option<Name>> {
        Ok(Entry::read(self.onward, id).await?.map(|entry| entry.queue))
    }

    /// Asks for a job to be cancelled: a pending one is gone, a running one is asked to stop.
    ///
    /// # Errors
    /// `NotFound` when it is not known; `Unsupported` where the engine can't.
    pub async fn cancel(&self, id: &MessageId) -> Result<CancelOutcome> {
        let entry = Entry::read(self.onward, id).await?.ok_or_else(|| unknown(id))?;
        match self.onward.cancel(&entry.queue.to_string(), id).await {
            // It ended, and what is left of it is its result.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(CancelOutcome::AlreadyFinished),
            outcome => outcome,
        }
    }

    fn require(&self) -> Result<()> {
        let capabilities = self.onward.engine().capabilities();
        for capability in [Capability::Results, Capability::Records, Capability::Browse] {
            capabilities.require(capability, "a job")?;
        }
        if capabilities.atomic != AtomicScope::Store {
            return Err(Error::unsupported(format!(
                "a job needs its record and its message in one commit, which the engine {} does not do",
                capabilities.engine
            ))
            .mend("give it a store"));
        }
        Ok(())
    }

    /// Declares the queue where it is missing; refuses one that would forget the results.
    async fn queue_keeps(&self, queue: &Name) -> Result<()> {
        let engine = self.onward.engine();
        let inlet = Inlet::Queue(queue.clone());
        let known = engine.topology().await?.inlets.into_iter().find(|(known, _)| *known == inlet);
        let Some((_, config)) = known else {
            let result_retention_ms = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
            let config = Box::new(InletConfig { result_retention_ms, ..InletConfig::default() });
            let change = TopologyChange::Queue { name: queue.clone(), config, update: false };
            return match engine.declare(change).await {
                // Somebody else was first, with rules of his own.
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
                declared => declared.map(drop),
            };
        };
        if config.result_retention_ms == 0 {
            return Err(Error::invalid("keeps no results, so a job's outcome would be forgotten")
                .at(format!("the queue `{queue}`"))
                .mend("declare it with `result_retention_ms`, or submit to another queue"));
        }
        Ok(())
    }

    /// What a conflict was about: the same job again, another one with its id, or something else.
    async fn known(&self, id: MessageId, wanted: &Entry, error: Error) -> Result<Submitted> {
        match Entry::read(self.onward, &id).await? {
            Some(entry) if entry == *wanted => Ok(Submitted { id, duplicate: true, queue: entry.queue }),
            Some(_) => Err(Error::conflict("a job of this id exists with other content or in another queue")
                .at(id)
                .mend("use a new id for new work; the same id only to repeat the same request")),
            None => Err(error),
        }
    }
}

pub(crate) fn unknown(id: &MessageId) -> Error {
    Error::not_found("there is no such job, or it is kept no longer").at(id)
}

impl Entry {
    fn of(queue: &Name, message: &Message) -> Self {
        Self { queue: queue.clone(), fingerprint: record::fingerprint(message) }
    }
}
