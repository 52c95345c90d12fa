//! The outbox, its relay and its reconciler, from one engine in memory to another; and the inbox.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

mod inbox;
mod reconcile;
mod relay;
mod stage;
