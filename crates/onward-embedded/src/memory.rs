//! The store of the in-memory engine: nothing outlives the process.

use crate::{
    AppendError, Class, Embedded, Fact, How, Options, Progress, State, Store, StoreObserver, Stored,
    StoredEvent, Writer,
};
use hashbrown::HashMap;
use onward_core::{AtomicScope, Durability, Env, Error, Problem, Result, Timestamp};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Keeps message bodies in a map and forgets the facts themselves.
#[derive(Debug, Default)]
pub struct MemoryStore {
    bodies: Mutex<HashMap<u64, Stored>>,
    end: AtomicU64,
}

/// The in-memory engine: the embedded engine's state machine without a log.
pub type MemoryEngine = Embedded<MemoryStore>;

impl Embedded<MemoryStore> {
    /// An empty engine. Does no I/O; its clock starts with the first call that is made within a tokio runtime.
    pub fn new(env: Arc<dyn Env>, options: Options) -> Self {
        Self::open(env, MemoryStore::default(), State::new(), options, "memory", AtomicScope::Store)
            .expect("memory refuses no append")
    }
}

impl Store for MemoryStore {
    fn append(
        &self,
        time: Timestamp,
        _class: Class,
        facts: &[Fact],
        positions: &mut Vec<u64>,
        _writer: Writer,
    ) -> Result<u64, AppendError> {
        positions.clear();
        let mut position = self.end.load(Ordering::Relaxed);
        for fact in facts {
            position += 1;
            positions.push(position);
            if let Some(message) = fact.body() {
                let accepted_at = match fact {
                    Fact::Moved { accepted_at, .. } | Fact::TopicMoved { accepted_at, .. } => *accepted_at,
                    _ => time,
                };
                let event = fact.event().map(Box::new);
                self.bodies.lock().insert(position, Stored { message: message.clone(), accepted_at, event });
            }
        }
        self.end.store(position, Ordering::Release);
        Ok(position + 1)
    }

    fn write(&self, _how: How) {}

    fn read(&self, position: u64) -> Result<Stored> {
        let found = self.bodies.lock().get(&position).cloned();
        found.ok_or_else(|| Error::not_found("the message is gone").at(format!("position {position}")))
    }

    fn read_events(&self, positions: &[u64], each: &mut dyn FnMut(StoredEvent) -> bool) -> Result<()> {
        for position in positions {
            let found = self.bodies.lock().get(position).cloned();
            if let Some(event) = found.and_then(|stored| stored.into_event(*position))
                && !each(event)
            {
                break;
            }
        }
        Ok(())
    }

    fn read_many(&self, positions: &[u64], each: &mut dyn FnMut(usize, Stored)) -> Result<()> {
        for (index, position) in positions.iter().enumerate() {
            let found = self.bodies.lock().get(position).cloned();
            if let Some(stored) = found {
                each(index, stored);
            }
        }
        Ok(())
    }

    fn released(&self, positions: &[u64]) {
        let mut bodies = self.bodies.lock();
        positions.iter().for_each(|position| drop(bodies.remove(position)));
    }

    fn progress(&self) -> Progress {
        let end = self.end.load(Ordering::Acquire) + 1;
        Progress { written: end, synced: end }
    }

    fn observe(&self, _observer: Arc<dyn StoreObserver>) {}

    fn durability(&self) -> Durability {
        Durability::Memory
    }

    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
