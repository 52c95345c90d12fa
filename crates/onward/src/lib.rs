//! Asynchronous work that doesn't get lost: what users import.

mod connect;
pub mod folder;
pub mod gather;
mod handle;
pub mod jobs;
mod process;
mod producer;
pub mod schedule;
mod spacing;
#[cfg(feature = "embedded")]
pub mod testing;
#[cfg(feature = "embedded")]
mod verify;
mod view_json;
pub mod work;

pub use connect::{connect, engine_at, open, open_folder};
pub use folder::{Folder, FolderOptions};
pub use gather::{Gather, GatherState, GatherView};
pub use handle::{IntoMessage, Onward, UNKNOWN_REPEATS_MAX};
pub use onward_client::this_process;
#[cfg(feature = "embedded")]
pub use onward_keeping as keeping;
pub use onward_patterns::{Destination, claim_check, inbox, outbox, reply};
pub use process::Process;
pub use producer::{Producer, WhenFull};
pub use spacing::Spaced;
#[cfg(feature = "embedded")]
pub use verify::{OpenReport, Verified, verify};
pub use view_json::{envelope_json, event_json, payload_json, view_json};

pub use onward_core as core;
pub use onward_core::{
    Delivery, Engine, Env, Error, ErrorKind, Filter, Inlet, InletConfig, Message, MessageId, Name, Op,
    Outcome, Payload, Result, RetryHint, SeekMode, SeekTo, StartFrom, TopicConfig,
};
pub use onward_env::SystemEnv;

/// The guide's examples are run by the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/pubsub.md")]
mod guide {}
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/patterns.md")]
mod patterns_guide {}
