//! The embedded engine: a pure state machine over the durable log, and the same one in memory.
//!
//! A write is planned against [`State`], which yields [`Fact`]s; they are appended to a [`Store`], then
//! applied to the state. The state is a pure function of the facts: a replay is [`State::apply`] in log order.

mod codec;
mod engine;
mod fact;
mod marks;
mod memory;
mod part;
mod persist;
mod plan;
mod state;
mod store;
#[cfg(test)]
mod test_env;
mod token;

pub use engine::{Embedded, HINTS_MAX, Options};
pub use fact::Fact;
pub use memory::{MemoryEngine, MemoryStore};
pub use part::{At, BulkMark, End, Given, InletId, Marks, MessageRef, Removal, Said, StreamId, TopicId};
pub use persist::outside;
pub use persist::{CareReport, EmbeddedEngine, OpenOptions, OpenReport};
pub use plan::{AUDIT_DAYS, AUDIT_MAX, BULK_STEP_MAX, TICK_STEP_MAX};
pub use state::{
    BULKS_MAX, Body, Counts, EVENT_IDS_MAX, EventFound, KEPT_BYTES_MAX, KEPT_MAX, LeaseImage, LeaseMark,
    ListOf, MessageImage, Piece, QueueImage, ReaderImage, Remembered, SETTLED_MAX, SPANS_MAX, ScheduleImage,
    SettledMark, ShelvedImage, Side, State, StreamPiece, TopicImage,
};
pub use store::{
    AppendError, Class, EventPlace, How, Progress, Store, StoreObserver, Stored, StoredEvent, Writer,
};
