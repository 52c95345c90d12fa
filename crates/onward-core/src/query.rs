//! Finding messages, a page at a time.

use crate::{Inlet, MessageId, MessageState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where a page ended; opaque, of one query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor(pub String);

/// One page of a read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Where to go on; `None` when this was all.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// A page that is all there is.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// A search for messages of one inlet. It never changes anything and hands nothing out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageQuery {
    /// Where.
    pub inlet: Inlet,
    /// By what.
    pub by: FindBy,
    /// Where to go on.
    pub after: Option<Cursor>,
    /// At most so many; at most [`crate::PAGE_MAX`].
    pub limit: usize,
}

impl MessageQuery {
    /// The message of an id, in whatever state.
    pub fn id(inlet: Inlet, id: MessageId) -> Self {
        Self { inlet, by: FindBy::Id(id), after: None, limit: 1 }
    }

    /// The first page of a state, in the order in which they would be worked on.
    pub fn state(inlet: Inlet, state: MessageState, limit: usize) -> Self {
        Self { inlet, by: FindBy::State(state), after: None, limit }
    }
}

/// What messages are found by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindBy {
    /// Its id.
    Id(MessageId),
    /// Its state, oldest first.
    State(MessageState),
    /// Its correlation id; unfinished messages and dead letters.
    Correlation(Arc<str>),
    /// Its order key; unfinished messages and dead letters, in order.
    OrderKey(crate::Key),
}
