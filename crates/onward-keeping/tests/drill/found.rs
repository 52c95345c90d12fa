//! What is there after a machine was lost, and what is missing.

use crate::machine::{Accepted, inlet, options};
use onward_core::{
    Engine, Env, FindBy, Holder, LeaseRequest, MessageQuery, MessageState, ProcessId, RequestId,
};
use onward_embedded::EmbeddedEngine;
use onward_env::SystemEnv;
use std::{collections::BTreeMap, path::Path, time::Duration};

/// A folder that took the lost one's place.
pub struct Found {
    /// From the beginning of `begun` until the first message was handed out.
    pub took: Duration,
    /// When each message was made, in microseconds, by its id.
    there: BTreeMap<String, i64>,
}

impl Found {
    /// Opens the folder and takes the first message from it; the clock has run since `begun`.
    pub async fn in_folder(dir: &Path, begun: Duration) -> Self {
        let engine = EmbeddedEngine::open(dir, options(), SystemEnv::shared()).unwrap();
        let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
        let request = LeaseRequest::one(inlet(), holder, RequestId::generate(&SystemEnv));
        let first = engine.lease(request).await.unwrap();
        let took = SystemEnv.monotonic().saturating_sub(begun);
        let mut there: BTreeMap<String, i64> = first
            .iter()
            .map(|first| (first.message.id.to_string(), first.message.timestamp.as_micros()))
            .collect();
        let mut after = None;
        loop {
            let by = FindBy::State(MessageState::Waiting);
            let page = engine.find(MessageQuery { inlet: inlet(), by, after, limit: 1000 }).await.unwrap();
            let message = page.items.iter().map(|view| &view.message);
            there.extend(message.map(|message| (message.id.to_string(), message.timestamp.as_micros())));
            after = page.next;
            if after.is_none() {
                return Self { took, there };
            }
        }
    }

    /// Accepted messages that are not there, oldest first.
    pub fn missing<'a>(&self, accepted: &'a [Accepted]) -> Vec<&'a Accepted> {
        let mut missing: Vec<_> = accepted.iter().filter(|(_, id)| !self.there.contains_key(id)).collect();
        missing.sort();
        missing
    }

    /// How long after `moment` the last message that is there was made.
    pub fn beyond(&self, moment: i64) -> Duration {
        let last = self.there.values().max().copied().unwrap_or(moment);
        Duration::from_micros(u64::try_from(last - moment).unwrap_or(0))
    }
}

/// Prints one drill's figures: a line of a table.
pub fn tell(drill: &str, accepted: &[Accepted], lost: &[&Accepted], until: i64, copied: u64, took: Duration) {
    let span = lost.first().map_or(0, |(at, _)| (until - at) / 1000);
    println!(
        "| {drill} | {} | {} | {span} ms | {} KiB | {} ms |",
        accepted.len(),
        lost.len(),
        copied >> 10,
        took.as_millis()
    );
}
