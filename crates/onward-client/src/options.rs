//! How a client behaves; every bound with its unit.

use onward_core::{Curve, Env, Jitter, ProcessId, RetryPolicy};
use std::{sync::Arc, time::Duration};

/// How a [`crate::Client`] behaves. [`ClientOptions::new`] fits a process on the host's machine.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The worker's name, for people.
    pub worker: Arc<str>,
    /// The start of this process: what it has leased ends when it dies.
    pub process: ProcessId,
    /// Longest time from a call to its answer, in milliseconds; the wait of a lease request comes on top.
    pub answer_ms: u64,
    /// Longest time to connect and be welcomed, in milliseconds.
    pub connect_ms: u64,
    /// Whether to connect again after the connection was lost.
    pub reconnect: bool,
    /// How long a call waits for a lost connection to come back, in milliseconds.
    pub reconnect_wait_ms: u64,
    /// Waits between attempts to connect again; its number of attempts is not used.
    pub backoff: RetryPolicy,
    /// Time between two pings, in milliseconds.
    pub ping_ms: u64,
    /// So many pings in a row without any word from the host, and the connection counts as lost.
    pub silent_pings_max: u32,
}

impl ClientOptions {
    /// For this process, with answers within 30 s, and silence noticed within 10 s.
    pub fn new(worker: &str, env: &dyn Env) -> Self {
        Self {
            worker: worker.into(),
            process: crate::this_process(env),
            answer_ms: 30_000,
            connect_ms: 5_000,
            reconnect: true,
            reconnect_wait_ms: 10_000,
            backoff: RetryPolicy {
                attempts_max: u32::MAX,
                curve: Curve::Exponential { base_ms: 20, factor: 2.0 },
                delay_max_ms: 1_000,
                delay_min_ms: 5,
                jitter: Jitter::Half,
            },
            ping_ms: 2_000,
            silent_pings_max: 5,
        }
    }

    pub(crate) fn answer(&self) -> Duration {
        Duration::from_millis(self.answer_ms)
    }
}
