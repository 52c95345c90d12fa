//! What a double does with the operations of a commit and with a lease request: some answers are not the engine's.

use super::{
    Double, Fault,
    patterns::{cross, is_reply},
    wrapper::LONG,
};
use onward_core::{
    Accepted, CancelOutcome, Delivery, Error, ErrorKind, Guarded, LeaseRequest, LeaseToken, Message,
    MessageId, MessageState, Name, Op, Outcome, Prepared, Receipt, Result, SettledAs,
};

impl Double {
    /// An answer without the operation, where the fault is to answer and do nothing.
    pub(super) fn skips(&self, op: &Op) -> Option<Receipt> {
        let done = SettledAs { state: MessageState::Done, due: None, already: false };
        match (self.fault, op) {
            (Fault::LosesAck, Op::Settle { token, outcome: Outcome::Ack { .. } })
                if self.was_asked_long(token) =>
            {
                Some(Receipt::Settled(done))
            }
            (Fault::KeepsStaged, Op::Settle { token, outcome: Outcome::Ack { .. } })
                if self.is_staged(token) =>
            {
                Some(Receipt::Settled(done))
            }
            (Fault::IgnoresCancel, Op::Cancel { .. }) => Some(Receipt::Cancelled(CancelOutcome::Cancelled)),
            (Fault::IgnoresReschedule, Op::Reschedule { .. })
            | (Fault::IgnoresPause, Op::Pause { .. })
            | (Fault::KeepsSchedules, Op::PutSchedule { schedule: None, .. })
            | (Fault::IgnoresGuards, Op::Guard(_)) => Some(Receipt::Done),
            (Fault::IgnoresTruncate, Op::Truncate { .. }) => Some(Receipt::Done),
            (Fault::IgnoresEdit, Op::EditDead { .. }) => Some(Receipt::Edited { edition: 2 }),
            _ => None,
        }
    }

    pub(super) async fn commit_all(&self, ops: Prepared) -> Result<Vec<Receipt>> {
        let mut receipts: Vec<Option<Receipt>> = ops.ops().iter().map(|op| self.skips(op)).collect();
        self.lose(ops.ops(), &mut receipts);
        let kept: Vec<Op> = ops
            .ops()
            .iter()
            .zip(&receipts)
            .filter(|(_, r)| r.is_none())
            .map(|(op, _)| self.bend(op.clone()))
            .collect();
        let answers = if kept.is_empty() { Vec::new() } else { self.pass_on(kept).await? };
        let mut answers = answers.into_iter();
        receipts.iter_mut().filter(|r| r.is_none()).for_each(|receipt| *receipt = answers.next());
        Ok(receipts.into_iter().map(|receipt| receipt.unwrap_or(Receipt::Done)).collect())
    }

    pub(super) async fn pass_on(&self, ops: Vec<Op>) -> Result<Vec<Receipt>> {
        if self.is(Fault::PartialCommit) {
            let mut receipts = Vec::new();
            for op in ops {
                receipts.extend(self.inner.commit(self.inner.prepare(vec![op])?).await?);
            }
            return Ok(receipts);
        }
        if let [op] = ops.as_slice() {
            return self.one(op.clone()).await.map(|receipt| vec![receipt]);
        }
        let answer = self.inner.commit(self.inner.prepare(ops.clone())?).await;
        if self.is(Fault::SendsStaleReplies) && answer.is_err() {
            self.send_stale(&ops).await?;
        }
        answer
    }

    /// The honest engine's word on a lease.
    pub(super) async fn is_live(&self, token: &LeaseToken) -> Result<()> {
        self.commit_one(Op::Guard(Guarded::Lease { token: token.clone() })).await.map(drop)
    }

    pub(super) async fn commit_one(&self, op: Op) -> Result<Receipt> {
        let receipts = self.inner.commit(self.inner.prepare(vec![op])?).await?;
        receipts.into_iter().next().ok_or_else(|| Error::internal("a commit without a receipt"))
    }

    /// One operation alone, with the faults that look at its answer.
    pub(super) async fn one(&self, op: Op) -> Result<Receipt> {
        match &op {
            Op::Enqueue { queue, message } => {
                let (queue, message) = (queue.clone(), message.clone());
                let answer = self.commit_one(op).await;
                self.enqueued(queue, *message, answer).await
            }
            Op::Settle { token, outcome } => {
                let (token, outcome) = (token.clone(), outcome.clone());
                self.before_settle(&token, &outcome).await?;
                self.free_slot();
                let answer = self.commit_one(op).await;
                self.settled(&token, answer)
            }
            Op::Publish { topic, message } if self.is(Fault::PublishesTwice) => {
                let (topic, message) = (topic.clone(), message.clone());
                let answer = self.commit_one(op).await;
                self.published(topic, *message, answer).await
            }
            Op::Seek { .. } if self.is(Fault::AcceptsUnknownPosition) => {
                let answer = self.commit_one(op).await;
                answer.or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(Receipt::Done) } else { Err(e) })
            }
            Op::EndProcess { .. } if self.is(Fault::CommitsPastGap) => {
                self.commit_in_flight().await?;
                self.commit_one(op).await
            }
            Op::PutSchedule { name, schedule: Some(schedule) } if self.is(Fault::SchedulesTwice) => {
                let (name, schedule) = (format!("{name}-again").parse()?, Some(schedule.clone()));
                self.commit_one(Op::PutSchedule { name, schedule }).await?;
                self.commit_one(op).await
            }
            Op::Progress { token, .. } if self.is(Fault::LosesProgress) => {
                self.is_live(token).await.map(|()| Receipt::Done)
            }
            Op::Append { .. } => self.append(op).await,
            _ => self.commit_one(op).await,
        }
    }

    pub(super) async fn enqueued(
        &self,
        queue: Name,
        message: Message,
        answer: Result<Receipt>,
    ) -> Result<Receipt> {
        let first = self.memory.lock().receipts.get(&message.id).cloned();
        match (self.fault, answer) {
            (Fault::ForgetsDedup, Ok(Receipt::Accepted(accepted))) if accepted.duplicate => {
                let id = MessageId::try_from(format!("{}-{}", message.id, self.next()))?;
                self.commit_one(Op::Enqueue {
                    queue,
                    message: Box::new(Message { id, dedup_key: None, ..message }),
                })
                .await
            }
            (Fault::IgnoresFingerprint, Err(error)) if error.kind() == ErrorKind::Conflict => {
                first.map(|a| Receipt::Accepted(Accepted { duplicate: true, ..a })).ok_or(error)
            }
            (Fault::DedupsOverQueues, Ok(_)) if first.is_some() => Ok(Receipt::Accepted(Accepted {
                duplicate: true,
                ..first.ok_or_else(|| Error::internal("seen"))?
            })),
            (_, Ok(Receipt::Accepted(accepted))) => {
                self.memory.lock().receipts.entry(message.id).or_insert(accepted.clone());
                Ok(Receipt::Accepted(accepted))
            }
            (_, answer) => answer,
        }
    }

    pub(super) async fn before_settle(&self, token: &LeaseToken, outcome: &Outcome) -> Result<()> {
        let is_ack = matches!(outcome, Outcome::Ack { .. });
        let mut earlier = Vec::new();
        {
            let mut memory = self.memory.lock();
            let Some(place) = memory.out.iter().position(|d| d.token == *token) else { return Ok(()) };
            if self.is(Fault::CumulativeAck) && is_ack {
                earlier = memory
                    .out
                    .drain(..=place)
                    .map(|d| d.token)
                    .filter(|t| t != token && t.inlet == token.inlet)
                    .collect();
            } else {
                let delivery = memory.out.remove(place);
                let is_reject = matches!(outcome, Outcome::Reject { .. });
                let long = delivery.lease == LONG;
                let subscription = matches!(token.inlet, onward_core::Inlet::Subscription { .. });
                let twice = match self.fault {
                    Fault::RepeatsInSubscription => is_ack && subscription,
                    Fault::DeliversTwice => is_ack && !subscription,
                    Fault::DeadComesAgain => is_reject,
                    Fault::RepeatsReplies => is_ack && is_reply(&delivery.message),
                    _ => false,
                };
                if twice && (long || self.is(Fault::RepeatsReplies)) {
                    memory.again.push(delivery);
                }
            }
        }
        for token in earlier {
            self.commit_one(Op::Settle { token, outcome: Outcome::Ack { result: None } })
                .await
                .map(drop)
                .or_else(|e| if e.kind() == ErrorKind::Internal { Err(e) } else { Ok(()) })?;
        }
        Ok(())
    }

    pub(super) fn settled(&self, token: &LeaseToken, answer: Result<Receipt>) -> Result<Receipt> {
        let done = SettledAs { state: MessageState::Done, due: None, already: false };
        match (self.fault, answer) {
            (Fault::AcceptsStaleTokens, Err(error)) if error.kind() == ErrorKind::LeaseLost => {
                Ok(Receipt::Settled(done))
            }
            (Fault::SwallowsConflict, Err(error)) if error.kind() == ErrorKind::Conflict => {
                Ok(Receipt::Settled(SettledAs { already: true, ..done }))
            }
            (Fault::ForgetsSettlements, Ok(Receipt::Settled(settled))) if settled.already => {
                Err(Error::lease_lost(format!("the lease of {} ended", token.id)))
            }
            (_, answer) => answer,
        }
    }

    pub(super) async fn hand_out(&self, request: LeaseRequest) -> Result<Vec<Delivery>> {
        let asked = request.lease;
        let mut request = request;
        match self.slots_left(&request) {
            Some(0) => return Ok(Vec::new()),
            Some(left) => request.count_max = request.count_max.min(left),
            None => {}
        }
        self.forget_limits(&request).await?;
        let counts = self.slots_left(&request).is_some();
        if let Some(again) = self.memory.lock().again.pop() {
            return Ok(vec![again]);
        }
        if self.is(Fault::SlowHoldsUpAll) && self.is_held_up(&request) {
            return Ok(Vec::new());
        }
        let deliveries = self.inner.lease(self.bend_request(request)).await?;
        let mut deliveries: Vec<Delivery> = deliveries.into_iter().map(|d| self.bend_delivery(d)).collect();
        if counts {
            self.count_slots(&deliveries);
        }
        match self.fault {
            Fault::LeaseEndsEarly => deliveries.iter_mut().for_each(|d| d.lease = asked.unwrap_or(d.lease)),
            Fault::BatchBackward => deliveries.reverse(),
            Fault::CrossesReplies => cross(&mut deliveries),
            Fault::SharesAcrossSubscriptions => self.share(&mut deliveries).await?,
            Fault::LosesAMessage => self.lose_one(&mut deliveries).await?,
            _ => {}
        }
        self.memory.lock().out.extend(deliveries.iter().cloned());
        Ok(deliveries)
    }

    /// One hand-out in a hundred is acknowledged unseen.
    pub(super) async fn lose_one(&self, deliveries: &mut Vec<Delivery>) -> Result<()> {
        for index in (0..deliveries.len()).rev() {
            if self.next().is_multiple_of(97) {
                let token = deliveries.remove(index).token;
                self.commit_one(Op::Settle { token, outcome: Outcome::Ack { result: None } }).await?;
            }
        }
        Ok(())
    }
}
