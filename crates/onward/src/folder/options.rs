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
    /// Where this process, as the host, ships the folder to: a path or the URL of an object store.
    pub ship: Option<Arc<str>>,
    /// From one pass of shipping to the next, in milliseconds.
    pub ship_every_ms: u64,
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
            ship: None,
            ship_every_ms: 1_000,
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
