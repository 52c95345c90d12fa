//! The binary form of facts: what stands in a record of the log.

mod core;
mod event;
mod fact;
mod message;
mod parts;
mod reader;
mod schedule;
mod topic;
pub(crate) mod wire;

pub(crate) use fact::{Encoded, decode, decode_body, encode};
pub(crate) use reader::BodyReader;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
