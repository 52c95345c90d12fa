//! A durable segmented log of bytes at positions, with group commit and crash recovery.
//!
//! Many callers append *units* (records that are kept all or none); what is ready is written as one *group* with
//! one write and one sync; an [`Observer`] is told in log order what is written and what is durable. The log
//! knows nothing of what the bytes mean. It does no I/O while appending: [`Log::spawn_io`] starts the threads
//! that do, or [`Log::step`] does it by hand, so that a simulation decides what happens when.
//!
//! The bytes on the disk, and what durability promises, are in `docs/adr/0002-log-format.md`.

mod ahead;
mod aligned;
mod append;
pub mod archive;
mod atomic;
mod bulk;
mod config;
mod disk;
mod error;
mod flow;
mod frame;
mod group;
mod head;
mod hurry;
mod io;
mod keep;
mod log;
mod look;
mod overlay;
mod position;
mod reading;
mod real;
mod recover;
mod segment;
mod stock;
mod tail;
mod threads;
mod walk;

pub use append::Appended;
pub use atomic::{atomic_write, read_file};
pub use bulk::Found;
pub use config::Config;
pub use disk::{Disk, DiskFile, DiskInfo, DiskLock, LockError, Mode};
pub use error::LogError;
pub use flow::{Observer, Progress};
pub use frame::FORMAT;
pub use group::{Unit, UnitSize};
pub use head::Purpose;
pub use io::InFlight;
pub use log::{Log, SegmentInfo};
pub use look::{Group, Part, SegmentLook};
pub use overlay::Overlay;
pub use position::{Position, SEGMENT_SPAN};
pub use reading::Record;
pub use real::RealDisk;
pub use recover::{Cut, RecoveryReport};
pub use segment::{segment_index, segment_name};
pub use threads::IoThreads;
pub use walk::RecordRef;
