//! Handing out: what is asked for, what is given, and the token that fences it.

use crate::{Cause, Inlet, Message, MessageId, Payload, Position, RequestId, Timestamp};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The right to settle one delivery. A stale token never settles anything.
///
/// Opaque: only the engine that gave it reads the handle. It carries an epoch that was made durable when the engine
/// was opened, so that no token of an earlier life is taken for one of this.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseToken {
    /// Where the message was leased from.
    pub inlet: Inlet,
    /// The message.
    pub id: MessageId,
    /// The engine's own mark of this lease.
    pub handle: Bytes,
}

impl std::fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}#", self.inlet, self.id)?;
        self.handle.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One start of one process: tells the death of a process from the end of a lease.
///
/// A worker's name is not one: it is reused. Made once at start: host, process id and a random number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId(pub Arc<str>);

/// Who asks for leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// The worker's name, for people.
    pub worker: Arc<str>,
    /// The process that it runs in.
    pub process: ProcessId,
}

/// One inlet of a lease request and its weight among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedInlet {
    /// The inlet.
    pub inlet: Inlet,
    /// Its share when several have work; at least 1.
    pub weight: u32,
}

/// A request for deliveries.
///
/// A repeat with the same `request_id` gets the same deliveries while their leases live, and burns no attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// The caller's id of this request.
    pub request_id: RequestId,
    /// Where from, with weights.
    pub inlets: Vec<WeightedInlet>,
    /// At most so many deliveries; at least 1.
    pub count_max: u32,
    /// Stop adding deliveries once their payloads together have so many bytes; the first one always fits.
    pub bytes_max: u64,
    /// How long to wait for the first one; zero answers at once.
    pub wait: Duration,
    /// The lease's length, from receipt; `None` takes the inlet's `lease_ms`.
    pub lease: Option<Duration>,
    /// Who asks.
    pub holder: Holder,
    /// Message types to take; empty takes all. Others stay for other workers.
    pub accepts: Vec<Arc<str>>,
}

impl LeaseRequest {
    /// One delivery from one inlet, without waiting.
    pub fn one(inlet: Inlet, holder: Holder, request_id: RequestId) -> Self {
        Self {
            request_id,
            inlets: vec![WeightedInlet { inlet, weight: 1 }],
            count_max: 1,
            bytes_max: 8 * 1024 * 1024,
            wait: Duration::ZERO,
            lease: None,
            holder,
            accepts: Vec::new(),
        }
    }
}

/// One message handed out for one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The right to settle it. On an at-most-once inlet the message is gone already and settling only counts.
    pub token: LeaseToken,
    /// The message.
    pub message: Message,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How long the lease lasts from now; the holder's own clock runs from the moment of receipt.
    pub lease: Duration,
    /// When the message was accepted.
    pub accepted_at: Timestamp,
    /// Its place in the store, where the engine has one.
    pub position: Option<Position>,
    /// What the last attempt left by [`crate::Op::Progress`].
    pub progress: Option<Payload>,
    /// The failed attempts so far.
    pub causes: Vec<Cause>,
    /// A suspect of a process's death: it is handed out alone, and its death alone counts as a crash.
    pub suspect: bool,
    /// Of a subscription: how often it had been moved to process again when it reached this message. Whoever remembers
    /// what was processed makes it part of the key, so that handlers run again.
    #[serde(default, skip_serializing_if = "is_first")]
    pub replay: u32,
}

fn is_first(replay: &u32) -> bool {
    *replay == 0
}

/// The answer to extending one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extended {
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// Somebody asked to cancel this message: the handler should stop.
    pub cancel_requested: bool,
}
