//! The engine in memory, under a clock that the tests move.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

mod core;
mod crash;
mod dead;
mod dedup;
mod fair;
mod limits;
mod order;
mod random;
mod recording;
mod records;
mod repeats;
mod schedules;
mod seam;
mod streams;
mod streams_random;
mod support;
mod time;
mod topics;
mod topics_random;
mod topics_steps;
