//! The topics and subscriptions of every run, and what producers and administrators do with them.

use std::time::Duration;

use onward_core::{
    Env, Filter, Inlet, InletConfig, Message, Name, SeekTo, StartFrom, TopicConfig, TopologyChange,
};
use onward_sim::history::{Sent, content_mark};

use super::calls::Ask;
use super::parts::Part;
use super::queues::{DEDUP_WINDOW, config, inlet};
use super::streams;
use super::workload::Workload;

/// A topic that keeps everything, and one that keeps what a subscription has still to reach.
pub(crate) const TOPICS: [&str; 2] = ["news", "brief"];
/// Their subscriptions: without order, with both kinds of order, and with a filter.
pub(crate) const SUBSCRIPTIONS: [&str; 5] =
    ["news:plain", "news:wait", "news:odd", "brief:aside", "brief:plain"];
/// Longer than any run.
const RETENTION: Duration = Duration::from_secs(100 * 24 * 3_600);
/// What `news:odd` takes, and nothing else.
const ODD: &str = "sim.odd";
/// Messages that are remembered, to be published again.
const LATELY_MAX: usize = 8;

/// Whether this topic keeps everything for as long as a run lasts.
pub(crate) fn keeps(topic: &str) -> bool {
    topic == "news"
}

/// The topics and subscriptions, in the order in which they are declared.
pub(crate) fn declarations() -> Vec<TopologyChange> {
    let topics = TOPICS.iter().map(|topic| {
        let retention_ms = keeps(topic).then_some(RETENTION.as_millis() as u64);
        let dedup_window_ms = DEDUP_WINDOW.as_millis() as u64;
        let config = TopicConfig { retention_ms, dedup_window_ms, ..TopicConfig::default() };
        TopologyChange::Topic { name: name(topic), config, update: false }
    });
    let subscriptions = SUBSCRIPTIONS.iter().map(|subscription| {
        let (topic, own) = subscription.split_once(':').expect("a constant");
        let mut filter = Filter::default();
        if own == "odd" {
            filter.types.push(ODD.into());
        }
        TopologyChange::Subscription {
            topic: name(topic),
            name: own.into(),
            config: Box::new(InletConfig { dedup_window_ms: 0, ..config(own) }),
            filter,
            start: StartFrom::Now,
            update: false,
        }
    });
    topics.chain(subscriptions).collect()
}

pub(crate) fn name(name: &str) -> Name {
    name.parse().expect("a constant name")
}

/// The subscriptions of a topic that take a message.
pub(crate) fn takers(topic: &Name, message: &Message) -> Vec<Inlet> {
    let all = SUBSCRIPTIONS.iter().map(|subscription| inlet(subscription));
    let takes = |taker: &Inlet| match taker {
        Inlet::Subscription { topic: of, name } => of == topic && (&**name != "odd" || *message.kind == *ODD),
        Inlet::Queue(_) => false,
    };
    all.filter(takes).collect()
}

impl Workload {
    fn topic(&mut self) -> &'static str {
        if self.random.once_in(3) { "brief" } else { "news" }
    }

    pub(super) fn publish(&mut self) -> Part {
        self.messages += 1;
        let (topic, id) = (self.topic(), format!("m{}", self.messages));
        let pad = self.pad();
        let kind = if self.random.once_in(3) { ODD } else { "sim.news" };
        let mut message = Message::builder(kind).json(&serde_json::json!({ "of": id, "pad": pad }));
        message = message.id(id.as_str().try_into().expect("a short id"));
        if !self.random.once_in(4) {
            message = message.order_key(&format!("key-{}", self.random.below(3)));
        }
        if self.random.once_in(6) {
            message = message.priority(self.random.below(10) as u8);
        }
        let mut not_after = None;
        if self.expiry && self.random.once_in(20) {
            let ttl = Duration::from_millis(41_000 + self.random.below(60_000));
            not_after = Some(self.env.elapsed() + ttl);
            message = message.ttl(ttl);
        }
        let message = message.build(&self.env).expect("a message within the limits");
        let sent = Sent {
            inlet: inlet(topic),
            id: message.id.clone(),
            content: content_mark(&message),
            dedup_key: None,
            order_key: message.order_key.clone(),
            not_before: Duration::ZERO,
            not_after,
            duplicate_of: None,
            position: None,
        };
        if self.published.len() == LATELY_MAX {
            self.published.remove(0);
        }
        self.published.push((message.clone(), sent.clone(), topic));
        Part::Publish(Box::new(message), sent, name(topic))
    }

    fn publish_again(&mut self) -> Part {
        if self.published.is_empty() {
            return self.publish();
        }
        let place = self.random.below(self.published.len() as u64) as usize;
        let (message, sent, topic) = self.published[place].clone();
        Part::Publish(Box::new(message), sent, name(topic))
    }

    fn seek(&mut self) -> Part {
        let subscription = SUBSCRIPTIONS[self.random.below(SUBSCRIPTIONS.len() as u64) as usize];
        let known = self.places.iter().filter(|(of, _)| subscription.starts_with(of));
        let known: Vec<_> = known.map(|(_, position)| *position).collect();
        let to = match self.random.below(6) {
            0 | 1 => SeekTo::Beginning,
            2 => SeekTo::End,
            3 => SeekTo::Time(self.env.now().minus(Duration::from_millis(self.random.below(60_000)))),
            _ if known.is_empty() => SeekTo::Beginning,
            _ => SeekTo::Position(known[self.random.below(known.len() as u64) as usize]),
        };
        Part::Seek { inlet: inlet(subscription), to, again: self.random.once_in(2) }
    }

    /// Something about topics.
    pub(super) fn about_topics(&mut self) -> Ask {
        match self.random.below(12) {
            0 | 1 => Ask::Commit(vec![self.publish_again()]),
            2 => Ask::Commit(vec![self.publish(), self.publish(), self.send()]),
            3 => Ask::Submit((0..=self.random.below(3)).map(|_| self.publish()).collect()),
            4 | 5 => Ask::Commit(vec![self.seek()]),
            6 => Ask::Events(Box::new(streams::topic_read(self.topic()))),
            _ => Ask::Commit(vec![self.publish()]),
        }
    }
}
