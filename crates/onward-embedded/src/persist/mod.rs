//! The durable store: a data folder with a log of facts, snapshots of the state, and the care of their space.

mod ahead;
mod ballast;
mod care;
mod config;
mod error;
mod events;
mod folder;
mod forward;
mod keeper;
mod live;
mod log_store;
mod mover;
mod needed;
mod open;
pub mod outside;
mod pieces;
mod pieces_streams;
mod recover;
mod relay;
mod snapshot;
mod snapshot_file;

pub use care::CareReport;
pub use open::{EmbeddedEngine, OpenOptions};
pub use recover::OpenReport;

#[cfg(test)]
mod tests;
