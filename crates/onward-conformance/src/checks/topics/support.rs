//! A topic with a subscription, and the few calls that checks of them are made of.

use crate::bench::accepted;
use crate::check::ensure_eq;
use crate::{Answer, Bench, Done, Stop};
use onward_core::{
    Accepted, Delivery, Filter, Inlet, InletConfig, LeaseRequest, MessageBuilder, MessageQuery, MessageView,
    Name, Op, Receipt, RequestId, Result, SeekMode, SeekTo, Sought, StartFrom, Stats, TopicConfig,
    TopologyChange,
};

/// Rules of a topic that keeps its messages for an hour.
pub(super) fn keeping() -> TopicConfig {
    TopicConfig { retention_ms: Some(3_600_000), ..TopicConfig::default() }
}

/// A subscription of a topic of its own.
pub(in crate::checks) struct Sub {
    pub(in crate::checks) topic: Name,
    pub(in crate::checks) inlet: Inlet,
}

impl Sub {
    /// A new topic with one subscription.
    pub(in crate::checks) async fn new(b: &Bench, topic: TopicConfig, config: InletConfig) -> Result<Self> {
        let name: Name = format!("check-{}", b.next()).parse()?;
        let change = TopologyChange::Topic { name: name.clone(), config: topic, update: false };
        b.engine().declare(change).await?;
        Self::declare(b, &name, "first", config, Filter::default(), StartFrom::Now).await
    }

    async fn declare(
        b: &Bench,
        topic: &Name,
        name: &str,
        config: InletConfig,
        filter: Filter,
        start: StartFrom,
    ) -> Result<Self> {
        let change = TopologyChange::Subscription {
            topic: topic.clone(),
            name: name.into(),
            config: Box::new(config),
            filter,
            start,
            update: false,
        };
        b.engine().declare(change).await?;
        Ok(Self { topic: topic.clone(), inlet: Inlet::subscription(topic.clone(), name)? })
    }

    /// Another subscription of the same topic.
    pub(super) async fn declare_beside(
        &self,
        b: &Bench,
        name: &str,
        config: InletConfig,
        filter: Filter,
        start: StartFrom,
    ) -> Result<Self> {
        Self::declare(b, &self.topic, name, config, filter, start).await
    }

    pub(in crate::checks) async fn beside(&self, b: &Bench, name: &str) -> Result<Self> {
        self.declare_beside(b, name, crate::bench::rules(), Filter::default(), StartFrom::Now).await
    }

    pub(super) async fn publish(&self, b: &Bench, message: MessageBuilder) -> Result<Accepted> {
        let message = Box::new(message.build(b.env())?);
        accepted(b.op(Op::Publish { topic: self.topic.clone(), message }).await?)
    }

    pub(super) async fn publish_ids(&self, b: &Bench, ids: &[&str]) -> Result<()> {
        for id in ids {
            self.publish(b, b.message(id)).await?;
        }
        Ok(())
    }

    pub(super) fn request(&self, b: &Bench) -> LeaseRequest {
        let holder = crate::bench::holder("w", "p");
        LeaseRequest::one(self.inlet.clone(), holder, RequestId::generate(b.env()))
    }

    pub(super) async fn await_take(&self, b: &Bench) -> Answer<Delivery> {
        b.await_request(self.request(b)).await
    }

    /// These come next, in this order, and are acknowledged.
    pub(super) async fn takes(&self, b: &Bench, ids: &[&str]) -> Done {
        for id in ids {
            let delivery = self.await_take(b).await?;
            ensure_eq!(delivery.message.id.as_str(), *id, "what {} hands out next", self.inlet);
            b.ack(&delivery).await?;
        }
        Ok(())
    }

    /// Nothing is there, and nothing comes soon.
    pub(super) async fn nothing(&self, b: &Bench) -> Done {
        for _ in 0..3 {
            let got = b.engine().lease(self.request(b)).await?;
            if let Some(delivery) = got.first() {
                let what = format!("{} was handed out of {} and must not", delivery.message.id, self.inlet);
                return Err(Stop::Failed(what));
            }
            b.pass(crate::bench::millis(5)).await;
        }
        Ok(())
    }

    pub(super) async fn seek(&self, b: &Bench, to: SeekTo, mode: SeekMode) -> Answer<Sought> {
        match b.op(Op::Seek { inlet: self.inlet.clone(), to, mode }).await? {
            Receipt::Sought(sought) => Ok(sought),
            other => Err(Stop::Failed(format!("a seek answered {other:?}"))),
        }
    }

    pub(super) async fn stats(&self, b: &Bench) -> Answer<Stats> {
        let found = b.engine().stats(vec![self.inlet.clone()]).await?;
        found.into_iter().next().ok_or_else(|| Stop::Failed(format!("no stats of {}", self.inlet)))
    }

    pub(super) async fn view(&self, b: &Bench, id: &str) -> Result<Option<MessageView>> {
        let query = MessageQuery::id(self.inlet.clone(), b.id(id));
        Ok(b.engine().find(query).await?.items.into_iter().next())
    }
}
