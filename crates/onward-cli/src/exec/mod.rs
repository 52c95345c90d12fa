//! Any program as a worker: one process for each delivery.
//!
//! The way of one delivery: [`onward::work`] leases it, keeps its lease and settles it; [`child`] runs the command in
//! its own process group with the whole envelope as one JSON line on stdin; [`verdict`] reads from the command's end
//! what becomes of the message; [`commands`] brings these together and tells of it. [`guard`] is a small process
//! beside the worker that kills the commands when the worker dies, however it dies: what a dead worker held is handed
//! out again at once, and must not go on running here. [`stopping`] says when the worker has had enough.

mod child;
mod commands;
pub(crate) mod guard;
mod output;
mod stopping;
mod verdict;

pub(crate) use child::Runner;
pub(crate) use commands::{Commands, Shown};
pub(crate) use guard::Guard;
pub(crate) use stopping::{Enough, Stopping};
