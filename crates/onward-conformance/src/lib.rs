//! One conformance suite for every engine: each check exists once and runs on all of them.
//!
//! The way of a check: [`Suite::checks`] names it, with the capabilities it needs and the statements it proves; a
//! [`Harness`] makes an empty engine; [`run`] gives it to the check as a [`Bench`] and turns what happened into a
//! [`Verdict`]. Where the engine refuses what a check needs, the negative twin runs instead: it proves that the engine
//! answers `Unsupported` before any effect.
//!
//! Two more things keep the suite honest: the reference [`model`], a second and obvious implementation that random
//! operations are compared with, and the faulty [`doubles`], each of which breaks one rule and must be caught by the
//! check of that rule.

mod bench;
mod check;
pub mod checks;
mod clock;
pub mod doubles;
mod harness;
mod make;
pub mod model;
mod runner;
mod twin;

pub use bench::Bench;
pub use check::{Check, Done, Need, Status, Stop, Verdict};
pub use checks::Suite;
pub use clock::{Step, SteppedEnv};
pub use harness::{Answer, Clock, Harness, Later, Subject};
pub use runner::{Options, run};
