//! The claim check on the engine in memory, with payloads in a folder.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

mod collecting;
mod stage;
mod way;
