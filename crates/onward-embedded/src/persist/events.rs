//! Reading many events: decoding them takes longer than reading them, so a second thread takes a half of it.

use super::log_store::{LogStore, unreadable};
use crate::StoredEvent;
use crate::codec::BodyReader;
use onward_core::Result;

/// Reads of at least so many events, within so many bytes of the log, are done by two threads.
pub(super) const HELPED_EVENTS: usize = 500;
pub(super) const HELPED_BYTES_MAX: u64 = 16 << 20;

impl LogStore {
    /// The events at these positions, in their order, until `each` wants no more.
    pub(super) fn events(&self, positions: &[u64], each: &mut dyn FnMut(StoredEvent) -> bool) -> Result<()> {
        // A simulation has one thread only.
        if self.by_hand || !is_much(positions) {
            return self.events_by_one(positions, each);
        }
        self.events_by_two(positions, each)
    }

    pub(super) fn events_by_one(
        &self,
        positions: &[u64],
        each: &mut dyn FnMut(StoredEvent) -> bool,
    ) -> Result<()> {
        let mut reader = BodyReader::default();
        self.many(positions, &mut |found, position| {
            let event = reader.event(found.kind, found.bytes, position.0);
            Ok(each(event.map_err(|malformed| unreadable(position, malformed.0))?))
        })
    }

    /// The same with the second half read by a thread of its own meanwhile.
    pub(super) fn events_by_two(
        &self,
        positions: &[u64],
        each: &mut dyn FnMut(StoredEvent) -> bool,
    ) -> Result<()> {
        let (first, second) = positions.split_at(positions.len() / 2);
        std::thread::scope(|scope| {
            let helper = std::thread::Builder::new().name("log-read".to_owned());
            let helper = helper.spawn_scoped(scope, || {
                let mut events = Vec::with_capacity(second.len());
                let read = self.events_by_one(second, &mut |event| {
                    events.push(event);
                    true
                });
                (events, read)
            });
            let mut more = true;
            self.events_by_one(first, &mut |event| {
                more = each(event);
                more
            })?;
            let Ok(helper) = helper else {
                // There was no thread to be had.
                return if more { self.events_by_one(second, each) } else { Ok(()) };
            };
            let (events, read) = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for event in events {
                more = more && each(event);
            }
            if more { read } else { Ok(()) }
        })
    }
}

/// Whether decoding these events is worth a second thread; and what both hold of them is little.
pub(super) fn is_much(positions: &[u64]) -> bool {
    let (least, most) = (positions.iter().min(), positions.iter().max());
    let apart = most.zip(least).map_or(0, |(most, least)| most - least);
    positions.len() >= HELPED_EVENTS && apart <= HELPED_BYTES_MAX
}
