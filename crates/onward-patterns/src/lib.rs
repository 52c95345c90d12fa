//! Patterns over any engine: the claim check, the outbox, the inbox, request-reply.
//!
//! They are made of the engine's own operations and need no runtime, so that the conformance suite runs on every engine
//! what users run. Users meet them as modules of `onward`; ADR 10 says how they are made and why.

pub mod claim_check;
mod destination;
pub mod inbox;
pub mod outbox;
pub mod reply;
#[cfg(test)]
mod still;

pub use destination::Destination;
