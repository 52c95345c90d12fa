//! Sending in batches, repeating what is safe to repeat, and telling each message's fate.

use super::target::Target;
use crate::{
    context::Context,
    exit::{Exit, Failure, Outcome},
    output::Progress,
};
use onward_core::{
    Accepted, COMMIT_BYTES_MAX, Durability, Engine, Error, ErrorKind, Message, MessageId, Name, OPS_MAX, Op,
    Position, Prepared, Receipt, RetryHint,
};
use serde::Serialize;
use std::{sync::Arc, time::Duration};

/// Most messages sent together: one sync for all of them.
const BATCH_MESSAGES_MAX: usize = 1_000;
/// Most payload bytes sent together.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Times that a batch is sent again after an answer that allows it.
const REPEATS_MAX: u32 = 5;

/// Messages to be sent together, each with its place.
#[derive(Debug, Default)]
pub(super) struct Batch {
    messages: Vec<(String, Message)>,
    bytes: usize,
}

impl Batch {
    /// Adds one.
    pub(super) fn push(&mut self, place: String, message: Message) {
        self.bytes += message.size();
        self.messages.push((place, message));
    }

    /// Whether it is time to send.
    pub(super) fn is_full(&self) -> bool {
        self.messages.len() >= BATCH_MESSAGES_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    /// Whether one commit can't hold it.
    pub(super) fn is_over(&self) -> bool {
        self.messages.len() > OPS_MAX || self.bytes > COMMIT_BYTES_MAX
    }
}

/// What `--json` says of one accepted message.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a Name>,
    id: &'a MessageId,
    duplicate: bool,
    declared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    durability: Durability,
    place: &'a str,
}

/// Sends batches and counts.
pub(super) struct Sender<'a> {
    context: &'a Context,
    engine: Arc<dyn Engine>,
    target: Target,
    all_or_nothing: bool,
    progress: Progress,
    accepted: u64,
    duplicates: u64,
    refused: u64,
    exit: Exit,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        context: &'a Context,
        engine: Arc<dyn Engine>,
        target: Target,
        all_or_nothing: bool,
    ) -> Self {
        let progress = context.out.progress(None, "sent");
        let (accepted, duplicates, refused) = (0, 0, 0);
        Self {
            context,
            engine,
            target,
            all_or_nothing,
            progress,
            accepted,
            duplicates,
            refused,
            exit: Exit::Ok,
        }
    }

    /// Tells that a message was refused; the command ends with the first refusal's code.
    ///
    /// # Errors
    /// The refusal itself, where all or nothing was asked for.
    pub(super) fn refuse(&mut self, failure: Failure) -> Outcome<()> {
        if self.all_or_nothing {
            let mend = failure.error.mend_text().unwrap_or("mend it, and send all of them again").to_owned();
            let what = format!("{} (nothing was accepted)", failure.error.what());
            let place = failure.error.place().unwrap_or("the messages").to_owned();
            let error =
                Error::new(failure.error.kind(), failure.error.retry_hint(), what).at(place).mend(mend);
            return Err(Failure { error, ..failure });
        }
        self.context.out.error(&failure);
        self.refused += 1;
        if self.exit == Exit::Ok {
            self.exit = failure.exit;
        }
        Ok(())
    }

    /// Sends a batch: each message for itself, or all in one commit.
    pub(super) async fn send(&mut self, batch: Batch) -> Outcome<()> {
        if batch.messages.is_empty() {
            return Ok(());
        }
        match self.all_or_nothing {
            true => self.send_whole(batch).await,
            false => self.send_each(batch).await,
        }
    }

    async fn send_whole(&mut self, batch: Batch) -> Outcome<()> {
        if batch.is_over() {
            let what = format!("{} messages of {} bytes in one commit", batch.messages.len(), batch.bytes);
            return Err(Error::invalid(what)
                .at("--all-or-nothing")
                .mend(format!("give at most {OPS_MAX} messages of {COMMIT_BYTES_MAX} bytes together"))
                .into());
        }
        let (places, ops): (Vec<String>, Vec<Op>) =
            batch.messages.into_iter().map(|(place, message)| (place, self.op(message))).unzip();
        let prepared = self.engine.prepare(ops)?;
        let mut answer = self.engine.commit(prepared.clone()).await;
        for _ in 0..REPEATS_MAX {
            let Some(wait) = answer.as_ref().err().and_then(repeat_after) else { break };
            self.context.env.sleep(wait).await;
            answer = self.engine.commit(prepared.clone()).await;
        }
        let receipts = answer?;
        places.iter().zip(receipts).try_for_each(|(place, receipt)| self.accept(place, receipt))
    }

    async fn send_each(&mut self, batch: Batch) -> Outcome<()> {
        let mut left = Vec::with_capacity(batch.messages.len());
        for (place, message) in batch.messages {
            match self.engine.prepare(vec![self.op(message)]) {
                Ok(prepared) => left.push((place, prepared)),
                Err(error) => self.refuse(placed(&place, error).into())?,
            }
        }
        for round in 0.. {
            let (again, wait) = self.submit(left, round == REPEATS_MAX).await?;
            if again.is_empty() {
                break;
            }
            self.context.env.sleep(wait).await;
            left = again;
        }
        self.progress.at(self.accepted);
        Ok(())
    }

    /// Sends once; answers what should be sent again, and after how long.
    async fn submit(
        &mut self,
        items: Vec<(String, Prepared)>,
        last: bool,
    ) -> Outcome<(Vec<(String, Prepared)>, Duration)> {
        if items.is_empty() {
            return Ok((items, Duration::ZERO));
        }
        let answer = self.engine.submit(items.iter().map(|(_, prepared)| prepared.clone()).collect()).await;
        let answers = match answer {
            Ok(answers) => answers,
            Err(error) => match repeat_after(&error).filter(|_| !last) {
                Some(wait) => return Ok((items, wait)),
                None => return Err(self.give_up(error)),
            },
        };
        let (mut again, mut longest, mut hopeless) = (Vec::new(), Duration::ZERO, None);
        for ((place, prepared), answer) in items.into_iter().zip(answers) {
            match answer {
                Ok(receipts) => receipts.into_iter().try_for_each(|receipt| self.accept(&place, receipt))?,
                Err(error) => match repeat_after(&error).filter(|_| !last) {
                    Some(wait) => {
                        longest = longest.max(wait);
                        again.push((place, prepared));
                    }
                    None if is_about_the_message(&error) => self.refuse(placed(&place, error).into())?,
                    // The others would fail likewise: what is accepted of this batch is told, then it ends.
                    None => {
                        hopeless.get_or_insert(placed(&place, error));
                    }
                },
            }
        }
        if let Some(error) = hopeless {
            return Err(self.give_up(error));
        }
        Ok((again, longest))
    }

    fn op(&self, message: Message) -> Op {
        self.target.op(message)
    }

    fn accept(&mut self, place: &str, receipt: Receipt) -> Outcome<()> {
        let Receipt::Accepted(accepted) = receipt else {
            return Err(Error::internal("the engine answered an enqueue with something else").into());
        };
        if accepted.declared && self.accepted == 0 {
            let (kind, name) = (self.target.kind(), self.target.name());
            self.context.out.note(format_args!("the {kind} {name} is new: made with default rules"));
        }
        self.accepted += 1;
        self.duplicates += u64::from(accepted.duplicate);
        let Accepted { id, duplicate, declared, position, durability } = accepted;
        match (self.context.out.is_json(), duplicate) {
            (true, _) => self.context.out.object(&Line {
                queue: matches!(self.target, Target::Queue(_)).then(|| self.target.name()),
                topic: matches!(self.target, Target::Topic(_)).then(|| self.target.name()),
                id: &id,
                duplicate,
                declared,
                position,
                durability,
                place,
            }),
            (false, true) => self.context.out.line(format_args!("{id} duplicate")),
            (false, false) => self.context.out.line(id),
        }
        Ok(())
    }

    /// Ends with an error that no further message would escape.
    fn give_up(&self, error: Error) -> Failure {
        self.sum_up();
        self.context.out.note("what follows was not sent; send it again when the cause is mended");
        let (mut failure, health) = (Failure::from(error), self.engine.health());
        // Whether the last write was lost or refused, its cause is the disk, and the exit code says so.
        if failure.exit == Exit::Unavailable && health.readable && !health.writable {
            failure.exit = Exit::Storage;
        }
        failure
    }

    /// Says what became of all of them.
    pub(super) fn finish(self) -> Outcome {
        self.sum_up();
        Ok(self.exit)
    }

    fn sum_up(&self) {
        let Self { context, accepted, duplicates, refused, .. } = self;
        let name = self.target.name();
        let durability = self.engine.capabilities().durability;
        let parts = [
            Some(format!("{accepted} accepted in {name} (durability: {durability})")),
            (*duplicates > 0).then(|| format!("{duplicates} of them known already")),
            (*refused > 0).then(|| format!("{refused} refused")),
        ];
        context.out.note(parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
}

/// Whether another message may fare better.
fn is_about_the_message(error: &Error) -> bool {
    use ErrorKind::{AlreadyExists, Conflict, Invalid, NotFound, Unsupported};
    matches!(error.kind(), AlreadyExists | Conflict | Invalid | NotFound | Unsupported)
}

/// How long to wait before the same is sent again; every message has its id, so a repeat adds nothing twice.
fn repeat_after(error: &Error) -> Option<Duration> {
    match error.retry_hint() {
        RetryHint::Never => None,
        RetryHint::Now => Some(Duration::from_millis(1)),
        RetryHint::Unknown => Some(Duration::from_millis(200)),
        RetryHint::After(wait) => Some(wait.min(Duration::from_secs(5))),
    }
}

/// The error with the message's place instead of the operation's, which nobody gave.
fn placed(place: &str, error: Error) -> Error {
    error.at(place)
}
