//! The worker, seen by what its handlers and the engine see. Each test runs on every engine there is.
//!
//! The clock is tokio's, paused: it goes on by itself when every task waits, so no test takes real time to wait.

#![allow(clippy::unwrap_used, reason = "a test")]

#[macro_use]
mod stage;
mod alerts;
mod deploys;
mod faulty;
mod flow;
mod gather;
mod gauge;
mod guards;
mod inbox;
mod kinds;
mod kit;
mod leases;
mod limits;
mod outcomes;
mod retries;
mod spacing;
mod stop;
mod suspects;
