//! Where a message goes.

use onward_core::{Inlet, Message, Name, Op};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a message goes: into a queue, or into a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// Into a queue.
    Queue(Name),
    /// Into a topic.
    Topic(Name),
}

impl Destination {
    /// The operation that sends a message there.
    pub fn op(self, message: Message) -> Op {
        let message = Box::new(message);
        match self {
            Self::Queue(queue) => Op::Enqueue { queue, message },
            Self::Topic(topic) => Op::Publish { topic, message },
        }
    }

    /// Where a message that is leased from `inlet` went.
    pub fn of(inlet: &Inlet) -> Self {
        match inlet {
            Inlet::Queue(name) => Self::Queue(name.clone()),
            Inlet::Subscription { topic, .. } => Self::Topic(topic.clone()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue {name}"),
            Self::Topic(name) => write!(f, "topic {name}"),
        }
    }
}
