//! What a handler may know and do about the delivery that it works on.

use super::{
    heart::{SharedHold, Stop},
    states::States,
};
use crate::{IntoMessage, Onward, handle::accepted};
use onward_core::{
    Accepted, AtomicScope, Cause, Delivery, Error, Inlet, LeaseToken, Message, MessageId, Op, Outcome,
    Payload, Result,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// The delivery that a handler works on: which attempt, how long yet, whether to stop; and what goes with it.
///
/// Cheap to clone, and useful only while its handler runs.
#[derive(Clone)]
pub struct Context {
    pub(crate) attempt: Arc<Attempt>,
}

/// One attempt, as handler and runner share it.
pub(crate) struct Attempt {
    pub(crate) onward: Onward,
    pub(crate) delivery: Delivery,
    pub(crate) states: Arc<States>,
    pub(crate) hold: SharedHold,
    pub(crate) idempotent: bool,
    /// Operations that join the acknowledgement's commit.
    pub(crate) staged: Mutex<Vec<Op>>,
    /// Attempts in all, as the inlet says.
    pub(crate) attempts_max: u32,
    /// The handler was called.
    pub(crate) called: AtomicBool,
    /// A layer called the handler again.
    pub(crate) repeated: Notify,
}

impl Attempt {
    /// True the first time.
    pub(crate) fn begin_once(&self) -> bool {
        !self.called.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn take_staged(&self) -> Vec<Op> {
        std::mem::take(&mut self.staged.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Context {
    /// The message.
    pub fn message(&self) -> &Message {
        &self.attempt.delivery.message
    }

    /// Its id.
    pub fn id(&self) -> &MessageId {
        &self.message().id
    }

    /// The queue or subscription that it came from.
    pub fn inlet(&self) -> &Inlet {
        &self.attempt.delivery.token.inlet
    }

    /// The lease, for writes of one's own that must be fenced by it ([`onward_core::Guarded::Lease`]).
    pub fn token(&self) -> &LeaseToken {
        &self.attempt.delivery.token
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt.delivery.attempt
    }

    /// How many attempts the inlet allows, as it was declared when the worker started.
    pub fn attempts_max(&self) -> u32 {
        self.attempt.attempts_max
    }

    /// Whether a failure of this attempt sends the message to the dead letters.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.attempts_max()
    }

    /// The failed attempts so far, oldest first.
    pub fn causes(&self) -> &[Cause] {
        &self.attempt.delivery.causes
    }

    /// The handle that the worker runs on.
    pub fn onward(&self) -> &Onward {
        &self.attempt.onward
    }

    /// How long until this handler's timeout; zero when it is over.
    pub fn time_left(&self) -> Duration {
        let deadline = self.attempt.hold.borrow().deadline.unwrap_or_default();
        deadline.saturating_sub(self.attempt.onward.env().monotonic())
    }

    /// Moves this handler's timeout to `by` from now: for work that goes on longer than usual. Never makes it shorter.
    ///
    /// The lease needs no care: it is extended as long as the handler runs.
    pub fn extend(&self, by: Duration) {
        let deadline = self.attempt.onward.env().monotonic() + by;
        self.attempt.hold.send_modify(|hold| hold.deadline = hold.deadline.max(Some(deadline)));
    }

    /// Why the handler should stop, if it should.
    pub fn stop_reason(&self) -> Option<Stop> {
        self.attempt.hold.borrow().stop.map(|(why, _)| why)
    }

    /// Completes when the handler should stop, and says why: tidy up and return; soon after it is dropped.
    ///
    /// Guarantees: it completes before the lease can be given to another, also when the engine can't be reached.
    pub async fn cancelled(&self) -> Stop {
        let mut hold = self.attempt.hold.subscribe();
        loop {
            if let Some((why, _)) = hold.borrow_and_update().stop {
                return why;
            }
            if hold.changed().await.is_err() {
                // The sender lives in this context, so this is never reached; waiting is then the safe answer.
                return std::future::pending().await;
            }
        }
    }

    /// What the last attempt left by [`Context::save_progress`], if it can be read as `T`.
    pub fn progress<T: DeserializeOwned>(&self) -> Option<T> {
        self.attempt.delivery.progress.as_ref().and_then(|detail| detail.parse().ok())
    }

    /// Keeps what this attempt has reached, for its successor.
    ///
    /// # Errors
    /// `LeaseLost` when the lease is gone; `Unsupported` where the engine does not keep progress.
    pub async fn save_progress<T: Serialize + ?Sized>(&self, detail: &T) -> Result<()> {
        let op = Op::Progress { token: self.token().clone(), detail: Payload::json(detail)? };
        self.onward().commit(vec![op]).await.map(drop)
    }

    /// Puts a message into a queue now, with this message's correlation and as caused by it.
    ///
    /// It is sent even if this attempt fails later, and again by the next attempt: give it an id that is derived
    /// from this message's to have it deduplicated, or use [`Context::emit`].
    ///
    /// # Errors
    /// As [`Onward::enqueue`].
    pub async fn enqueue(&self, queue: &str, message: impl IntoMessage) -> Result<Accepted> {
        let op = self.caused(queue, message)?.1;
        accepted(self.onward().commit(vec![op]).await?.pop())
    }

    /// Puts a message into a queue in the same commit as the acknowledgement, with this message's correlation and as
    /// caused by it: it is sent exactly when this attempt succeeds. Answers its id.
    ///
    /// # Errors
    /// `Unsupported` where the engine can't commit both together; `Invalid` for what is not right.
    pub fn emit(&self, queue: &str, message: impl IntoMessage) -> Result<MessageId> {
        let (id, op) = self.caused(queue, message)?;
        self.commit_with(op).map(|()| id)
    }

    /// Lets an operation join the acknowledgement's commit: all happen, once, or none does.
    ///
    /// Guarantees: effects that are kept in the engine this way happen exactly once, within the scope that
    /// [`onward_core::Capabilities::atomic`] names. A failed attempt writes none of them. When the engine refuses
    /// them at the end (a condition does not hold), the attempt has failed.
    ///
    /// # Errors
    /// `Unsupported` where the commit would reach wider than the engine's scope; `Invalid` for what is not right.
    pub fn commit_with(&self, op: Op) -> Result<()> {
        let engine = self.onward().engine();
        if self.attempt.idempotent && engine.capabilities().atomic != AtomicScope::Store {
            return Err(Error::unsupported("this engine can't keep the inbox's record in the same commit")
                .at("an idempotent handler")
                .mend("send it with `enqueue`, or give the engine a store"));
        }
        let ack = Op::Settle { token: self.token().clone(), outcome: Outcome::Ack { result: None } };
        engine.prepare(vec![op.clone(), ack])?;
        self.attempt.staged.lock().unwrap_or_else(PoisonError::into_inner).push(op);
        Ok(())
    }

    fn caused(&self, queue: &str, message: impl IntoMessage) -> Result<(MessageId, Op)> {
        let mut message = message.into_message(&**self.onward().env())?;
        message.causation_id = Some(self.id().as_str().into());
        message.correlation_id.get_or_insert_with(|| self.message().correlation().into());
        Ok((message.id.clone(), self.onward().enqueue_op(queue, message)?))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} of {} from {}", self.attempt(), self.id(), self.inlet())
    }
}
