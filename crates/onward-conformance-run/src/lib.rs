//! The engines under the conformance suite: one harness each, all of them listed in one place.

mod memory;

pub use memory::Memory;

use onward_conformance::{Harness, model::ModelHarness};

/// Every engine that the suite runs on, the reference model last: it is run only where it is named.
pub fn harnesses() -> Vec<Box<dyn Harness>> {
    vec![Box::new(Memory), Box::new(ModelHarness)]
}

/// The engine that is run only when it is asked for by name.
pub const ONLY_BY_NAME: &str = "model";
