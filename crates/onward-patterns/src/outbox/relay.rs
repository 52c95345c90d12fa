//! The relay: leases what is staged, sends it, and acknowledges what the destination has confirmed.

use super::{Outbox, unstage};
use futures::future::{Either, select};
use onward_core::{
    Capability, CauseKind, Delivery, Engine, Env, Error, ErrorKind, Failure, Holder, Inlet, LeaseRequest,
    Message, Op, Outcome, Prepared, Receipt, RequestId, Result, RetryDelay, RetryHint,
};
use std::{sync::Arc, time::Duration};

/// Most messages of one round.
pub const RELAY_COUNT_MAX: u32 = 256;
/// How long a message is put back for when the destination can't be reached.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Carries staged messages from an outbox to their destinations, in another engine or the same.
///
/// Guarantees: a message is acknowledged only after its destination has confirmed it; what is repeated has the same id.
/// Any number of relays may run: a message, and a whole order key, is with one of them at a time. One that slept past
/// its lease sends nothing more under it, and its acknowledgement settles nothing.
#[derive(Debug, Clone)]
pub struct Relay {
    outbox: Outbox,
    store: Arc<dyn Engine>,
    target: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    holder: Holder,
}

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Confirmed by their destination, and gone from the outbox.
    pub sent: u64,
    /// To be sent again: the destination did not take them now, its answer was lost, or the lease was.
    pub again: u64,
    /// Set aside as dead letters of the outbox: their destination will never take them as they are.
    pub dead: u64,
}

impl Relay {
    /// A relay of an outbox in `store`, to `target`. No I/O.
    pub fn new(
        outbox: Outbox,
        store: Arc<dyn Engine>,
        target: Arc<dyn Engine>,
        env: Arc<dyn Env>,
        holder: Holder,
    ) -> Self {
        Self { outbox, store, target, env, holder }
    }

    /// One round: waits up to `wait` for something to send, and sends at most [`RELAY_COUNT_MAX`] messages.
    ///
    /// # Errors
    /// The store's. What a destination answers is no error of the round: it stands in the answer and in the outbox.
    ///
    /// # Cancel safety
    /// Dropped, it may leave messages leased, or sent and not acknowledged: they are sent again with the same ids.
    pub async fn round(&self, wait: Duration) -> Result<Relayed> {
        let deliveries = self.store.lease(self.request(wait)).await?;
        let received = self.env.monotonic();
        let Some(lease) = deliveries.iter().map(|delivery| delivery.lease).min() else {
            return Ok(Relayed::default());
        };
        let outcomes = self.send(&deliveries, received + lease).await;
        self.settle(&deliveries, outcomes).await
    }

    /// Rounds until one finds nothing; the sum of them.
    ///
    /// # Errors
    /// Those of [`Relay::round`].
    pub async fn drain(&self) -> Result<Relayed> {
        let mut all = Relayed::default();
        loop {
            let round = self.round(Duration::ZERO).await?;
            if round == Relayed::default() {
                return Ok(all);
            }
            all = Relayed {
                sent: all.sent + round.sent,
                again: all.again + round.again,
                dead: all.dead + round.dead,
            };
        }
    }

    fn request(&self, wait: Duration) -> LeaseRequest {
        let inlet = Inlet::Queue(self.outbox.queue().clone());
        let request = LeaseRequest::one(inlet, self.holder.clone(), RequestId::generate(&*self.env));
        LeaseRequest { count_max: RELAY_COUNT_MAX, wait, ..request }
    }

    /// Sends all that can be sent before `fence`; how each is to be settled.
    async fn send(&self, deliveries: &[Delivery], fence: Duration) -> Vec<Outcome> {
        let prepared: Vec<_> = deliveries.iter().map(|delivery| self.prepare(&delivery.message)).collect();
        let ready: Vec<Prepared> = prepared.iter().filter_map(|one| one.as_ref().ok().cloned()).collect();
        let count = ready.len();
        let mut answers = self.submit(ready, fence).await.unwrap_or_else(|e| vec![Err(e); count]).into_iter();
        let missing =
            || Err(Error::unknown("the destination answered fewer results than it was sent messages"));
        let outcome = |one: std::result::Result<Prepared, Outcome>| match one {
            Ok(_) => match answers.next().unwrap_or_else(missing) {
                Ok(_) => Outcome::Ack { result: None },
                Err(error) => self.outcome_of(&error),
            },
            Err(outcome) => outcome,
        };
        prepared.into_iter().map(outcome).collect()
    }

    /// The write at the destination, or how to settle what can't be sent now or ever.
    fn prepare(&self, staged: &Message) -> std::result::Result<Prepared, Outcome> {
        let (to, mut message) = unstage(staged.clone()).map_err(|error| self.outcome_of(&error))?;
        if let Some(due) = message.due.take_if(|_| !self.target.capabilities().has(Capability::Delay)) {
            let early = due.since(self.env.now());
            if !early.is_zero() {
                return Err(self.put_back(early, "it is not due, and its destination has no delay"));
            }
        }
        self.target.prepare(vec![to.op(message)]).map_err(|error| self.outcome_of(&error))
    }

    async fn submit(&self, ready: Vec<Prepared>, fence: Duration) -> Result<Vec<Result<Vec<Receipt>>>> {
        if ready.is_empty() {
            return Ok(Vec::new());
        }
        let left = fence.saturating_sub(self.env.monotonic());
        if left.is_zero() {
            return Err(Error::unavailable("the relay's lease ended before it could send"));
        }
        match select(self.target.submit(ready), self.env.sleep(left)).await {
            Either::Left((answers, _)) => answers,
            Either::Right(_) => {
                Err(Error::unknown("the destination gave no answer within the relay's lease"))
            }
        }
    }

    /// What becomes of a message that was not confirmed: set aside only where its destination will never take it.
    fn outcome_of(&self, error: &Error) -> Outcome {
        let failure = |kind| Failure::new(kind, error.to_string());
        match (error.kind(), error.retry_hint()) {
            (ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::Conflict, _) => {
                Outcome::Reject { failure: failure(CauseKind::Permanent) }
            }
            (ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::Internal, _) => {
                Outcome::Retry { delay: RetryDelay::Policy, failure: failure(CauseKind::Transient) }
            }
            (_, RetryHint::After(delay)) => self.put_back(delay.max(AGAIN_AFTER), &error.to_string()),
            _ => self.put_back(AGAIN_AFTER, &error.to_string()),
        }
    }

    /// A destination that is away is not the message's failure: no attempt is counted, where the store can do that.
    fn put_back(&self, delay: Duration, why: &str) -> Outcome {
        match self.store.capabilities().has(Capability::Release) {
            true => Outcome::Release { delay },
            false => Outcome::Retry {
                delay: RetryDelay::After(delay),
                failure: Failure::new(CauseKind::Transient, why),
            },
        }
    }

    async fn settle(&self, deliveries: &[Delivery], outcomes: Vec<Outcome>) -> Result<Relayed> {
        let settle = |(delivery, outcome): (&Delivery, &Outcome)| {
            let op = Op::Settle { token: delivery.token.clone(), outcome: outcome.clone() };
            self.store.prepare(vec![op])
        };
        let commits = deliveries.iter().zip(&outcomes).map(settle).collect::<Result<Vec<_>>>()?;
        let answers = self.store.submit(commits).await?;
        let mut relayed = Relayed::default();
        for (outcome, answer) in outcomes.iter().zip(answers) {
            match (outcome, answer) {
                (Outcome::Ack { .. }, Ok(_)) => relayed.sent += 1,
                (Outcome::Reject { .. }, Ok(_)) => relayed.dead += 1,
                // A lease that was lost is another relay's now; a lost answer shows when the lease ends.
                _ => relayed.again += 1,
            }
        }
        Ok(relayed)
    }
}
