//! Backups and restores on real folders, while an engine works on them.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]

mod backup;
mod damage;
mod ship;
mod support;
