//! What doubles do wrong with topics and subscriptions.

use super::{Double, Fault};
use onward_core::{
    Delivery, Direction, Error, EventRead, EventScope, Filter, Inlet, LeaseRequest, Message, MessageId, Name,
    Op, OrderPolicy, Outcome, Receipt, Result, SeekMode, SeekTo, StartFrom, TopologyChange,
};

impl Double {
    pub(super) fn bend_topic(&self, change: TopologyChange) -> TopologyChange {
        match change {
            TopologyChange::Topic { name, mut config, update } => {
                match self.fault {
                    Fault::IgnoresRetentionAge => {
                        config.retention_ms = config.retention_ms.map(|_| 1_000_000_000);
                    }
                    Fault::IgnoresRetentionBytes => {
                        config.retention_bytes = config.retention_bytes.map(|_| 1 << 40);
                    }
                    _ => {}
                }
                TopologyChange::Topic { name, config, update }
            }
            TopologyChange::Subscription { topic, name, mut config, mut filter, mut start, update } => {
                match self.fault {
                    Fault::StartsNow => start = StartFrom::Now,
                    Fault::IgnoresFilter => filter = Filter::default(),
                    Fault::SubscriptionsUnordered => config.order = OrderPolicy::Unordered,
                    Fault::SubscriptionsRetryForEver => config.retry.attempts_max = 1_000_000,
                    _ => {}
                }
                TopologyChange::Subscription { topic, name, config, filter, start, update }
            }
            other => other,
        }
    }

    pub(super) fn bend_seek(&self, inlet: Inlet, to: SeekTo, mode: SeekMode) -> Op {
        let to = match (self.fault, to) {
            (Fault::RewindsPositionToBeginning, SeekTo::Position(_))
            | (Fault::RewindsTimeToBeginning, SeekTo::Time(_)) => SeekTo::Beginning,
            (_, to) => to,
        };
        let mode = if self.is(Fault::FillGapsReprocesses) { SeekMode::Reprocess } else { mode };
        Op::Seek { inlet, to, mode }
    }

    pub(super) fn bend_read(&self, read: EventRead) -> EventRead {
        match self.fault {
            Fault::ReadsTopicsForward if matches!(read.scope, EventScope::Topic(_)) => {
                EventRead { direction: Direction::Forward, ..read }
            }
            _ => read,
        }
    }

    /// A repeat is published under another id.
    pub(super) async fn published(
        &self,
        topic: Name,
        message: Message,
        answer: Result<Receipt>,
    ) -> Result<Receipt> {
        match answer {
            Ok(Receipt::Accepted(accepted)) if accepted.duplicate => {
                let id = MessageId::try_from(format!("{}-{}", message.id, self.next()))?;
                let message = Box::new(Message { id, dedup_key: None, ..message });
                self.commit_one(Op::Publish { topic, message }).await
            }
            answer => answer,
        }
    }

    /// Whether another subscription of the same topic has something out.
    pub(super) fn is_held_up(&self, request: &LeaseRequest) -> bool {
        let memory = self.memory.lock();
        request.inlets.iter().any(|weighted| {
            let Inlet::Subscription { topic, .. } = &weighted.inlet else { return false };
            memory.out.iter().any(|out| {
                let of_topic = matches!(&out.token.inlet, Inlet::Subscription { topic: t, .. } if t == topic);
                of_topic && out.token.inlet != weighted.inlet
            })
        })
    }

    /// What one subscription got is acknowledged unseen at the others.
    pub(super) async fn share(&self, deliveries: &mut Vec<Delivery>) -> Result<()> {
        let mut hidden = Vec::new();
        deliveries.retain(|delivery| {
            let Inlet::Subscription { topic, .. } = &delivery.token.inlet else { return true };
            let mut memory = self.memory.lock();
            let elsewhere = memory.gone.iter().any(|(inlet, id)| {
                let of_topic = matches!(inlet, Inlet::Subscription { topic: t, .. } if t == topic);
                of_topic && *inlet != delivery.token.inlet && *id == delivery.message.id
            });
            if elsewhere {
                hidden.push(delivery.token.clone());
            } else {
                memory.gone.push((delivery.token.inlet.clone(), delivery.message.id.clone()));
            }
            !elsewhere
        });
        for token in hidden {
            self.commit_one(Op::Settle { token, outcome: Outcome::Ack { result: None } }).await?;
        }
        Ok(())
    }

    /// Acknowledges what is out of subscriptions.
    pub(super) async fn commit_in_flight(&self) -> Result<()> {
        let out = std::mem::take(&mut self.memory.lock().out);
        for token in out.into_iter().map(|delivery| delivery.token) {
            if matches!(token.inlet, Inlet::Subscription { .. }) {
                let settled =
                    self.commit_one(Op::Settle { token, outcome: Outcome::Ack { result: None } }).await;
                settled.map(drop).or_else(|e: Error| match e.kind() {
                    onward_core::ErrorKind::LeaseLost => Ok(()),
                    _ => Err(e),
                })?;
            }
        }
        Ok(())
    }
}
