//! The real binary, command by command, with good and bad input, and several of it on one folder.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]

mod streams;
mod support;

mod dead;
mod demo;
mod enqueue;
mod exec;
mod json;
mod keeping;
mod looking;
mod processes;
mod queues;
mod readme;
mod schedules;
mod topics;
mod usage;
mod verify;
