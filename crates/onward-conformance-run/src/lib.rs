//! The engines under the conformance suite: one harness each, all of them listed in one place.

mod client;
mod folder;
mod memory;
mod server;

pub use client::OverSocket;
pub use folder::Embedded;
pub use memory::Memory;
pub use server::{SERVE, serve};

use onward_conformance::{Harness, model::ModelHarness};
use std::path::PathBuf;

/// Every engine that the suite runs on; `program` is the binary `conformance`, which is the client's server too.
pub fn harnesses(program: PathBuf) -> Vec<Box<dyn Harness>> {
    let client = OverSocket::new(program);
    vec![Box::new(Embedded), Box::new(Memory), Box::new(client), Box::new(ModelHarness)]
}

/// The engine that is run only when it is asked for by name.
pub const ONLY_BY_NAME: &str = "model";
