//! How a folder is opened; every bound with its unit.

use onward_core::{Curve, Durability, Jitter, RetryPolicy};
use std::sync::Arc;

/// What a process wants to be in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// The host when nobody is it, else a client of the host.
    #[default]
    Any,
    /// The host, or nothing: refused with the holder's name when another process is it.
    Host,
}

/// How a [`super::Folder`] is opened.
#[derive(Debug, Clone)]
pub struct FolderOptions {
    /// The worker's name, for people.
    pub worker: Arc<str>,
    /// What this process wants to be.
    pub role: Role,
    /// What a receipt means where this process becomes the host; a client has its host's.
    pub durability: Durability,
    /// Longest time to open the folder while its host starts, in milliseconds.
    pub open_ms: u64,
    /// How long a call waits for the next host when the last one went away, in milliseconds.
    pub takeover_wait_ms: u64,
    /// Waits between attempts to become the host or to reach it; its number of attempts is not used.
    pub backoff: RetryPolicy,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self {
            worker: "onward".into(),
            role: Role::Any,
            durability: Durability::Fsync,
            open_ms: 60_000,
            takeover_wait_ms: 10_000,
            backoff: RetryPolicy {
                attempts_max: u32::MAX,
                curve: Curve::Exponential { base_ms: 10, factor: 1.5 },
                delay_max_ms: 250,
                delay_min_ms: 2,
                jitter: Jitter::Full,
            },
        }
    }
}
