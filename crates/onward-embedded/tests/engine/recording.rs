//! A store that keeps every fact, so that a replay can be compared with what is.

use onward_core::*;
use onward_embedded::{
    AppendError, Class, Fact, How, MemoryStore, Piece, Progress, State, Store, StoreObserver, Stored,
    StoredEvent, Writer,
};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc};

/// A store in memory that also keeps every fact.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    memory: MemoryStore,
    pub(crate) facts: Mutex<Vec<(Fact, u64, Timestamp)>>,
    /// Bodies that were stored and not released.
    pub(crate) bodies: Mutex<BTreeSet<u64>>,
}

impl Store for Recording {
    fn append(
        &self,
        time: Timestamp,
        class: Class,
        facts: &[Fact],
        at: &mut Vec<u64>,
        writer: Writer,
    ) -> Result<u64, AppendError> {
        let end = self.memory.append(time, class, facts, at, writer)?;
        let recorded = facts.iter().zip(at.iter()).map(|(fact, position)| (fact.clone(), *position, time));
        self.facts.lock().extend(recorded);
        let with_body = facts.iter().zip(at.iter()).filter(|(fact, _)| fact.body().is_some());
        self.bodies.lock().extend(with_body.map(|(_, position)| *position));
        Ok(end)
    }
    fn write(&self, how: How) {
        self.memory.write(how);
    }
    fn read(&self, position: u64) -> Result<Stored> {
        self.memory.read(position)
    }
    fn read_events(
        &self,
        positions: &[u64],
        each: &mut dyn FnMut(StoredEvent) -> bool,
    ) -> onward_core::Result<()> {
        self.memory.read_events(positions, each)
    }
    fn read_many(&self, positions: &[u64], each: &mut dyn FnMut(usize, Stored)) -> onward_core::Result<()> {
        self.memory.read_many(positions, each)
    }
    fn released(&self, positions: &[u64]) {
        for position in positions {
            assert!(self.bodies.lock().remove(position), "the body at {position} is released twice");
        }
        self.memory.released(positions);
    }
    fn progress(&self) -> Progress {
        self.memory.progress()
    }
    fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.memory.observe(observer);
    }
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

/// Every piece of a snapshot of the state.
pub(crate) fn pieces(state: &State) -> Vec<Piece> {
    let mut all = Vec::new();
    state.pieces(&mut |piece| all.push(piece));
    all
}

pub(crate) fn wait<T>(future: impl std::future::Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
