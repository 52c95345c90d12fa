//! What client and host say to each other. Transports carry these as they stand; `docs/protocol.md` explains them.
//!
//! Names go over the wire, not numbers, and unknown fields are skipped: a field may be added with a default, never
//! renamed or given another meaning. A new kind of call is refused as `Unsupported` by a host that does not know it.

use onward_core::{
    Capabilities, Delivery, Error, EventRead, EventSlice, Extended, Health, Hint, Inlet, Interest,
    LeaseRequest, LeaseToken, MessageQuery, MessageView, Page, Prepared, ProcessId, Receipt, Record,
    RecordQuery, Result, Stats, Topology, TopologyChange, TopologyDiff,
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The newest protocol version of this build.
pub const PROTOCOL: u32 = 1;
/// The oldest protocol version that this build still speaks.
pub const PROTOCOL_OLDEST: u32 = 1;

/// The first thing that a client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The newest protocol version that the client speaks.
    pub protocol: u32,
    /// The oldest one.
    pub protocol_oldest: u32,
    /// The start of the process that speaks; its leases end when it dies.
    pub process: ProcessId,
    /// Its number at the operating system, as it sees it itself.
    pub pid: u32,
    /// The worker's name, for people.
    pub worker: Arc<str>,
}

/// The host's answer to a [`Hello`] that it accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol version that both speak from here.
    pub protocol: u32,
    /// The start of the host's process.
    pub process: ProcessId,
    /// What the engine behind the host does.
    pub capabilities: Capabilities,
    /// How it is.
    pub health: Health,
    /// Most calls without a wait that the client may have unanswered.
    pub calls_max: u32,
    /// Most leases with a wait that the client may have unanswered.
    pub waits_max: u32,
    /// Most watches of the client.
    pub watches_max: u32,
}

/// Everything that a client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToHost {
    /// Who it is; must come first, once.
    Hello(Hello),
    /// Asks for something; answered by [`ToClient::Answer`] of the same id, in any order.
    Call {
        /// The client's number for it, unique in this connection.
        id: u64,
        /// What.
        call: Call,
    },
    /// Nobody waits for that answer any more.
    Drop {
        /// Of which call.
        id: u64,
    },
    /// Wants hints from now on.
    Watch {
        /// The client's number for it, unique in this connection.
        id: u64,
        /// About what.
        interest: Interest,
    },
    /// Wants no more hints.
    Unwatch {
        /// Of which watch.
        id: u64,
    },
    /// Is the host there? Answered by [`ToClient::Pong`].
    Ping {
        /// Comes back with the answer.
        number: u64,
    },
    /// The client's process is done with this host: what it still holds is released.
    Goodbye,
}

/// Everything that a host says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToClient {
    /// The client is accepted.
    Welcome(Box<Welcome>),
    /// It is not, and why; the connection ends.
    Refused(Error),
    /// The answer to a call.
    Answer {
        /// Of which call.
        id: u64,
        /// What came of it.
        answer: Result<Answer>,
    },
    /// Something may have happened.
    Hint {
        /// For which watch.
        id: u64,
        /// What.
        hint: Hint,
    },
    /// The host is there.
    Pong {
        /// The number of the ping.
        number: u64,
    },
    /// How the engine is, sent when it changed.
    Health(Health),
    /// All that was said before was taken; the answer to a goodbye.
    Goodbye,
}

/// One call of an engine's method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// [`onward_core::Engine::declare`].
    Declare(TopologyChange),
    /// [`onward_core::Engine::topology`].
    Topology,
    /// [`onward_core::Engine::commit`]; the host prepares the operations anew before it commits them.
    Commit(Prepared),
    /// [`onward_core::Engine::submit`]; likewise.
    Submit(Vec<Prepared>),
    /// [`onward_core::Engine::lease`].
    Lease(LeaseRequest),
    /// [`onward_core::Engine::extend`].
    Extend {
        /// Which leases.
        leases: Vec<LeaseToken>,
        /// To how long from now.
        by: Duration,
    },
    /// [`onward_core::Engine::find`].
    Find(MessageQuery),
    /// [`onward_core::Engine::read_events`].
    ReadEvents(EventRead),
    /// [`onward_core::Engine::get_records`].
    GetRecords(RecordQuery),
    /// [`onward_core::Engine::stats`].
    Stats(Vec<Inlet>),
}

impl Call {
    /// Whether it changes nothing, so that it may be sent again when its answer was lost.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Topology | Self::Find(_) | Self::ReadEvents(_) | Self::GetRecords(_) | Self::Stats(_) => {
                true
            }
            Self::Declare(_) | Self::Commit(_) | Self::Submit(_) | Self::Lease(_) | Self::Extend { .. } => {
                false
            }
        }
    }

    /// How long the host may wait by the caller's own wish before it answers.
    pub fn wait(&self) -> Duration {
        match self {
            Self::Lease(request) => request.wait,
            _ => Duration::ZERO,
        }
    }

    /// Its name in messages to people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Declare(_) => "declare",
            Self::Topology => "topology",
            Self::Commit(_) => "commit",
            Self::Submit(_) => "submit",
            Self::Lease(_) => "lease",
            Self::Extend { .. } => "extend",
            Self::Find(_) => "find",
            Self::ReadEvents(_) => "read events",
            Self::GetRecords(_) => "get records",
            Self::Stats(_) => "stats",
        }
    }
}

/// What a call answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To declare.
    Declared(TopologyDiff),
    /// To topology.
    Topology(Topology),
    /// To commit.
    Committed(Vec<Receipt>),
    /// To submit.
    Submitted(Vec<Result<Vec<Receipt>>>),
    /// To lease.
    Leased(Vec<Delivery>),
    /// To extend.
    Extended(Vec<Result<Extended>>),
    /// To find.
    Found(Page<MessageView>),
    /// To read events.
    Events(EventSlice),
    /// To get records.
    Records(Page<Record>),
    /// To stats.
    Stats(Vec<Stats>),
}

/// What is readable of a call that this build does not know: enough to refuse it by its id.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnlyId {
    /// A call from a client.
    Call {
        /// Its id.
        id: u64,
    },
    /// An answer from a host.
    Answer {
        /// Its id.
        id: u64,
    },
}
