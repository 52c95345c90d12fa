//! The HTTP API as its callers see it: a real server on a real socket, on the engine in memory.

#![allow(clippy::unwrap_used, reason = "a test")]

mod client;
mod hostile;
mod idempotency;
mod jobs;
mod queues;
mod rights;
mod work;
