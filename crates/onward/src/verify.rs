//! Checking a data folder without changing it.

use onward_core::{
    Cursor, Engine, Env, Error, EventRead, EventScope, Inlet, MessageQuery, MessageState, PAGE_MAX,
    RecordQuery, Result, Stats,
};
use onward_embedded::EmbeddedEngine;
use std::{path::Path, sync::Arc, time::Duration};

pub use onward_embedded::OpenReport;

/// States of messages that are still stored.
const STORED: [MessageState; 4] =
    [MessageState::Waiting, MessageState::Delayed, MessageState::Leased, MessageState::Dead];

/// What checking a data folder found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// What an opening would find.
    pub opening: OpenReport,
    /// The numbers of each inlet, with its books.
    pub inlets: Vec<Stats>,
    /// Messages that were read, data and all.
    pub messages: u64,
    /// Messages that topics keep and that were read.
    pub topic_messages: u64,
    /// Events of streams that were read.
    pub events: u64,
    /// Records that were read.
    pub records: u64,
}

/// Checks a data folder that no process has open: brings it back as an opening would, reads every message, event and
/// record, and tells what it found. The folder is not changed.
///
/// # Errors
/// `NotFound` where no data folder is, `AlreadyExists` while a process has it open, `Corrupt` with file and place for
/// damage, `Unsupported` for a folder of a newer version.
///
/// Limits: memory as for the open engine.
pub async fn verify(folder: impl AsRef<Path>, env: Arc<dyn Env>) -> Result<Verified> {
    let folder = folder.as_ref().to_owned();
    // Opening reads the disk and waits for it.
    let opened = tokio::task::spawn_blocking(move || EmbeddedEngine::look_at(&folder, env)).await;
    let engine = opened.map_err(|failed| Error::internal(format!("opening failed: {failed}")))??;
    let inlets = engine.stats(Vec::new()).await?;
    let mut messages = 0;
    for stats in &inlets {
        for state in STORED {
            messages += read_messages(&engine, stats.inlet.clone(), state).await?;
        }
    }
    let topics = engine.topology().await?.topics;
    let mut topic_messages = 0;
    for (topic, _) in topics {
        topic_messages += read_all(&engine, EventScope::Topic(topic)).await?;
    }
    let events = read_all(&engine, EventScope::All).await?;
    let records = read_records(&engine).await?;
    let opening = engine.report().clone();
    engine.close(Duration::ZERO).await?;
    Ok(Verified { opening, inlets, messages, topic_messages, events, records })
}

async fn read_all(engine: &dyn Engine, scope: EventScope) -> Result<u64> {
    let mut read = EventRead { bytes_max: 8 << 20, ..EventRead::all_of(scope) };
    let mut count = 0;
    loop {
        let slice = engine.read_events(read.clone()).await?;
        count += slice.events.len() as u64;
        match slice.next {
            Some(next) => read.from = next,
            None => return Ok(count),
        }
    }
}

async fn read_messages(engine: &dyn Engine, inlet: Inlet, state: MessageState) -> Result<u64> {
    let mut query = MessageQuery::state(inlet, state, PAGE_MAX);
    let mut count = 0;
    loop {
        let page = engine.find(query.clone()).await?;
        count += page.items.len() as u64;
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(count),
        }
    }
}

async fn read_records(engine: &dyn Engine) -> Result<u64> {
    let (mut after, mut count): (Option<Cursor>, u64) = (None, 0);
    loop {
        let query = RecordQuery::Prefix { prefix: String::new(), after, limit: PAGE_MAX };
        let page = engine.get_records(query).await?;
        count += page.items.len() as u64;
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}
