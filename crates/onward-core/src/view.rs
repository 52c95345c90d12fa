//! A message as people and pages see it.

use crate::{Cause, Inlet, LeaseView, Message, Payload, Position, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a message is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Accepted, not yet handed out, or to be handed out again now.
    Waiting,
    /// Not due yet, or waiting after a failure.
    Delayed,
    /// Held by a worker.
    Leased,
    /// Set aside with its causes.
    Dead,
    /// Finished.
    Done,
    /// Its time ran out before it was handed out.
    Expired,
    /// Cancelled.
    Cancelled,
}

impl MessageState {
    /// Every state, in the order of a message's life.
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Delayed, Self::Leased, Self::Dead, Self::Done, Self::Expired, Self::Cancelled];
}

impl fmt::Display for MessageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Delayed => "delayed",
            Self::Leased => "leased",
            Self::Dead => "dead",
            Self::Done => "done",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        })
    }
}

/// One message with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageView {
    /// Where it is.
    pub inlet: Inlet,
    /// The message, in its latest edition.
    pub message: Message,
    /// The first edition, where it was edited.
    pub original: Option<Box<Message>>,
    /// Its state.
    pub state: MessageState,
    /// Attempts made so far.
    pub attempts: u32,
    /// Deaths of a process alone with it.
    pub crashes: u32,
    /// It waits behind another message of its order key.
    pub blocked: bool,
    /// It is a suspect of a process's death.
    pub suspect: bool,
    /// Somebody asked to cancel it while it was leased.
    pub cancel_requested: bool,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it will be handed out at the earliest, where that is later.
    pub due: Option<Timestamp>,
    /// Since when it is dead or finished.
    pub ended_at: Option<Timestamp>,
    /// Who holds it.
    pub lease: Option<LeaseView>,
    /// Its failed attempts, oldest first.
    pub causes: Vec<Cause>,
    /// What the last attempt left by progress.
    pub progress: Option<Payload>,
    /// Its result, where results are kept.
    pub result: Option<Payload>,
    /// Its place, where the engine has one.
    pub position: Option<Position>,
}
