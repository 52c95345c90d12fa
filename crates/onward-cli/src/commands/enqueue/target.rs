//! Where messages go: into a queue or into a topic.

use onward_core::{Message, Name, Op};

/// Where messages go.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Into a queue.
    Queue(Name),
    /// Into a topic.
    Topic(Name),
}

impl Target {
    /// Its name.
    pub(super) fn name(&self) -> &Name {
        match self {
            Self::Queue(name) | Self::Topic(name) => name,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Queue(_) => "queue",
            Self::Topic(_) => "topic",
        }
    }

    pub(super) fn op(&self, message: Message) -> Op {
        let message = Box::new(message);
        match self.clone() {
            Self::Queue(queue) => Op::Enqueue { queue, message },
            Self::Topic(topic) => Op::Publish { topic, message },
        }
    }
}
