//! Simulated disk, clock and randomness; invariants and a history checker.

mod disk;
mod random;
mod world;

pub use disk::{Loss, SimDisk};
pub use random::Random;
pub use world::{Fault, Step};
