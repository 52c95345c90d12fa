//! Messages, names, settlement, errors, capabilities and the engine seam: what every other crate speaks.
//!
//! Nothing here does I/O, knows an engine or needs a runtime. The way of one message through these types:
//! a [`Message`] is put into an [`Op::Enqueue`], [`Engine::prepare`] checks it, [`Engine::commit`] makes it durable and
//! answers a [`Receipt`]; a worker's [`Engine::lease`] hands it out as a [`Delivery`] with a [`LeaseToken`];
//! an [`Op::Settle`] with that token ends the attempt.

mod capability;
mod engine;
mod env;
mod error;
mod event;
mod health;
mod id;
mod lease;
mod limits;
mod local_time;
mod message;
mod message_json;
mod name;
mod op;
mod payload;
mod prepared;
mod query;
mod receipt;
mod record;
mod retry;
mod schedule;
mod settle;
mod stats;
mod text;
mod ticks;
mod time;
mod topic;
mod topology;
mod view;

pub use capability::{AtomicScope, Capabilities, Capability, Durability, EngineLimits, Support};
pub use engine::{BoxStream, Engine, Fut};
pub use env::Env;
pub use error::{Error, ErrorKind, Result, RetryHint};
pub use event::{
    AppendCondition, Direction, Event, EventQuery, EventRead, EventScope, EventSlice, Expected, ReadFrom,
    RecordedEvent, Tag,
};
pub use health::{Health, Hint, Interest, Problem};
pub use id::{MessageId, Position, RequestId};
pub use lease::{Delivery, Extended, Holder, LeaseRequest, LeaseToken, ProcessId, WeightedInlet};
pub use limits::*;
pub use message::{Key, Message, MessageBuilder, Priority};
pub use name::{Inlet, Name, StreamName};
pub use op::{BulkId, DeadEdit, Guarded, Op, PurgeWhat, SeekMode, SeekTo, Selection};
pub use payload::Payload;
pub use prepared::Prepared;
pub use query::{Cursor, FindBy, MessageQuery, Page};
pub use receipt::{Accepted, Appended, BulkReport, CancelOutcome, Receipt, SettledAs, Sought};
pub use record::{AUDIT_PREFIX, Record, RecordExpect, RecordKey, RecordQuery};
pub use retry::{Curve, Jitter, RetryPolicy};
pub use schedule::{
    CatchUp, Overlap, SCHEDULE_HEADER, Schedule, ScheduleView, ScheduleWhen, TICK_HEADER, tick_id,
};
pub use settle::{Cause, CauseKind, Failure, Outcome, RetryDelay};
pub use stats::{Books, Lag, LeaseView, Stats};
pub use ticks::Ticks;
pub use time::Timestamp;
pub use topic::{Filter, StartFrom, TopicConfig, TopicKeeps};
pub use topology::{
    DeliveryGuarantee, InletConfig, OrderPolicy, Overflow, RateLimit, StuckHead, Topology, TopologyChange,
    TopologyDiff,
};
pub use view::{MessageState, MessageView};
