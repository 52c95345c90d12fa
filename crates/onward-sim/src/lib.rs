//! Simulated disk, clock, randomness and executor; a history checker for any engine.
//!
//! Everything here follows from a seed: the same seed and the same code give the same run. What a run did is
//! noted in a [`Trace`], what its clients saw in a history that is checked without knowing the engine.

mod disk;
mod env;
mod executor;
pub mod history;
mod inode;
mod names;
mod random;
mod seeds;
mod trace;
mod world;

pub use disk::{Loss, SimDisk};
pub use env::SimEnv;
pub use executor::{SimExecutor, TaskId};
pub use random::Random;
pub use seeds::{SEED_VARIABLE, SEEDS_VARIABLE, each_seed};
pub use trace::Trace;
pub use world::{Calls, Fault, Step};
