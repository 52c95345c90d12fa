//! What an operator may set, each with a safe default.

use crate::Grants;
use std::time::Duration;

/// Bounds and rules of one server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Who may do what. Empty: no token is asked for, so the server listens on loopback only.
    pub grants: Grants,
    /// Most open connections; more wait in the system's queue.
    pub connections_max: usize,
    /// Largest body of one request, in bytes.
    pub body_bytes_max: usize,
    /// Most bytes of request bodies in memory at once, over all connections; more are told to come again (503).
    pub bodies_bytes_max: usize,
    /// How long the head of a request may take.
    pub head_timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// Most requests that wait for something to happen (long polls, followers) at once; more are answered at once.
    pub waits_max: usize,
    /// How long requests may go on after the server was asked to stop.
    pub drain: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            grants: Grants::default(),
            connections_max: 20_000,
            body_bytes_max: 25 * 1024 * 1024,
            bodies_bytes_max: 256 * 1024 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            waits_max: 20_000,
            drain: Duration::from_secs(20),
        }
    }
}
