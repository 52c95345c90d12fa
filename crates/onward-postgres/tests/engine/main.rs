//! The engine on a real server; the rules that every engine keeps are tried by the suite.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]

mod commit_in;
mod own_server;
mod policy;
mod server;
mod support;
